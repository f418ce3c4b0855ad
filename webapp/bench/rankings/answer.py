"""Rankings as structs for the API, and as a table for files. Values are in stored units: 1/s, B/s, ns."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from webapp.bench.rankings.catalogue import Load
from webapp.bench.rankings.groups import Entry, Group
from webapp.bench.rankings.ranking import Ranking
from webapp.bench.rankings.scores import Score, ScoreGroup
from webapp.bench.rankings.standings import Lead, Standing
from webapp.bench.rankings.standings import Ranked as Placed
from webapp.core.table_files import Column, Kind, Table
from webapp.results.metrics import Missing
from webapp.results.models import known


class RankedLoad(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    block_size: int  # bytes
    iodepth: int
    numjobs: int


class RankedEntry(msgspec.Struct, frozen=True, kw_only=True):
    product: str  # as in an address of Bench
    name: str
    where: tuple[str, ...]  # host and controller; of hosts and controllers, the drives
    mean: float  # geometric
    low: float | None  # of the 95 % confidence interval
    high: float | None
    n: int  # blocks: repeats of a run or an import
    results: int
    p99_ns: float | None
    share: int | None
    less_than: float | None
    reference: bool
    standing: Standing  # first; level: cannot be told from the first; behind; seen_behind: in too few repeats
    ratio: float | None  # of the first to this one, above 1 if the first is better
    ratio_low: float | None
    ratio_high: float | None
    shares_ceiling: bool


class RankedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that may be compared, the best first."""

    tool: str
    place: tuple[str, ...]  # what all entries have in common; empty if hosts are put together
    metric: str
    unit: str
    lower_is_better: bool
    lead: Lead
    may_be_drift: bool
    entries: tuple[RankedEntry, ...]


class ScorePart(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    weight: float  # share of all weights
    load: RankedLoad | None  # null: too few products have it, so that the scores do not contain it


class RankedScore(msgspec.Struct, frozen=True, kw_only=True):
    product: str
    name: str
    where: tuple[str, ...]
    score: float  # 100 is the base
    low: float | None
    high: float | None
    standing: Standing
    rates: tuple[float, ...]  # of the parts that have a load


class LackingScore(msgspec.Struct, frozen=True, kw_only=True):
    product: str
    name: str
    lacking: tuple[str, ...]  # labels of parts


class ScoresOut(msgspec.Struct, frozen=True, kw_only=True):
    tool: str
    place: tuple[str, ...]
    base: str  # the product with the score 100
    weight: float  # the share of the weights that the scores rest on
    lead: Lead
    parts: tuple[ScorePart, ...]
    scores: tuple[RankedScore, ...]
    without_score: tuple[LackingScore, ...]


class UndecidedProduct(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    choose: str


class BeyondLatency(msgspec.Struct, frozen=True, kw_only=True):
    """No measured share of the load is within the latency."""

    name: str
    where: tuple[str, ...]
    share: int  # the lowest one
    p99_ns: float | None  # at it; null: too few I/Os for a percentile


class RankingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    rank: str  # drive | controller | host | layout
    load: RankedLoad | None  # null: nothing was measured
    is_wanted: bool  # false: the chosen workload was not measured, and this is the nearest one
    hosts_together: bool
    groups: tuple[RankedGroup, ...]  # those with one entry last: comparable with nothing
    not_measured: tuple[str, ...]
    beyond: tuple[BeyondLatency, ...]
    undecided: tuple[UndecidedProduct, ...]
    use_case: str
    scores: tuple[ScoresOut, ...]


def answer(ranking: Ranking) -> RankingAnswer:
    return RankingAnswer(
        rank=ranking.question.ranked,
        load=_load(ranking.load),
        is_wanted=ranking.was_wanted,
        hosts_together=ranking.question.across_hosts,
        groups=tuple(map(_group, (*ranking.groups, *ranking.alone))),
        not_measured=ranking.not_measured,
        beyond=tuple(
            BeyondLatency(name=each.name, where=each.where, share=known(each.share), p99_ns=each.worst_p99_ns)
            for each in ranking.cells.beyond
        ),
        undecided=tuple(UndecidedProduct(name=each.name, choose=each.mixed.text) for each in ranking.cells.undecided),
        use_case=ranking.question.use_case.key,
        scores=tuple(map(_scores, ranking.scores)),
    )


def _load(load: Load | None) -> RankedLoad | None:
    if load is None:
        return None
    return RankedLoad(
        pattern=load.pattern, block_size=load.block_size, iodepth=load.iodepth, numjobs=load.numjobs
    )  # fmt: skip


def _group(group: Group) -> RankedGroup:
    metric = group.panel.metric
    pairs = zip(group.entries, group.order.ranked, strict=True)
    return RankedGroup(
        tool=group.kind.tool,
        place=group.kind.place,
        metric=metric.key,
        unit=metric.unit,
        lower_is_better=metric.lower_is_better,
        lead=group.order.lead,
        may_be_drift=group.order.in_one_order,
        entries=tuple(_entry(entry, placed) for entry, placed in pairs),
    )


def _entry(entry: Entry, placed: Placed) -> RankedEntry:
    summary, ratio = entry.summary, placed.ratio
    return RankedEntry(
        product=str(entry.product),
        name=entry.name,
        where=entry.where,
        mean=summary.mean,
        low=summary.low,
        high=summary.high,
        n=summary.n,
        results=len(entry.rows),
        p99_ns=entry.p99_ns,
        share=entry.share,
        less_than=entry.less_than if entry.less_than is not None and math.isfinite(entry.less_than) else None,
        reference=entry.is_reference,
        standing=placed.standing,
        ratio=ratio.value if ratio else None,
        ratio_low=ratio.low if ratio else None,
        ratio_high=ratio.high if ratio else None,
        shares_ceiling=entry.shares_ceiling,
    )


def _scores(group: ScoreGroup) -> ScoresOut:
    pairs = zip(group.scores, group.order.ranked, strict=True)
    return ScoresOut(
        tool=group.tool,
        place=group.place,
        base=str(group.base.product),
        weight=group.weight,
        lead=group.order.lead,
        parts=tuple(
            ScorePart(label=basis.part.label, weight=basis.weight, load=_load(basis.load)) for basis in group.bases
        ),
        scores=tuple(_score(score, placed) for score, placed in pairs),
        without_score=tuple(
            LackingScore(product=str(each.entry.product), name=each.entry.name, lacking=each.parts)
            for each in group.lacking
        ),
    )


def _score(score: Score, placed: Placed) -> RankedScore:
    low, high = score.ratio.low, score.ratio.high
    return RankedScore(
        product=str(score.entry.product),
        name=score.entry.name,
        where=score.entry.where,
        score=score.value,
        low=None if low is None else 100 * low,
        high=None if high is None else 100 * high,
        standing=placed.standing,
        rates=tuple(part.summary.mean for part in score.parts),
    )


_COLUMNS = (
    Column("Group", Kind.INTEGER), Column("Place", Kind.INTEGER), Column("Product"), Column("Name"), Column("Where"),
    Column("Tool"), Column("Metric"), Column("Unit"), Column("n", Kind.INTEGER), Column("Geometric mean", Kind.NUMBER),
    Column("95 % CI low", Kind.NUMBER), Column("95 % CI high", Kind.NUMBER), Column("p99", Kind.NUMBER, "ns"),
    Column("Load", Kind.INTEGER, "%"),
    Column("Standing"), Column("First better by", Kind.NUMBER), Column("Ratio 95 % CI low", Kind.NUMBER),
    Column("Ratio 95 % CI high", Kind.NUMBER), Column("Shared ceiling", Kind.SWITCH), Column("Reference", Kind.SWITCH),
)  # fmt: skip


def ranking_table(answer: RankingAnswer) -> Table:
    """Groups in their order. What has no value has a line that says why."""
    return Table(_COLUMNS, _lines(answer))


def _lines(answer: RankingAnswer) -> Iterator[Sequence[object]]:
    for number, group in enumerate(answer.groups, start=1):
        for place, entry in enumerate(group.entries, start=1):
            yield (
                number, place, entry.product, entry.name, "; ".join(entry.where), group.tool, group.metric, group.unit,
                entry.n, entry.mean, entry.low, entry.high, entry.p99_ns, entry.share, entry.standing, entry.ratio,
                entry.ratio_low, entry.ratio_high, entry.shares_ceiling, entry.reference,
            )  # fmt: skip
    without = [(product.name, product.choose) for product in answer.undecided]
    without += [(name, Missing.NOT_MEASURED.value) for name in answer.not_measured]
    without += [(each.name, "above the latency at each measured share of the load") for each in answer.beyond]
    for name, why in without:
        yield (None, None, None, name, *(None,) * 10, why, *(None,) * 5)
