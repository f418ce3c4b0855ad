"""The page Rankings: every drive, controller, host or layout at one workload. Its address contains everything."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render

from webapp.analysis.conclusions import ZERO
from webapp.analysis.equals import same_for_all
from webapp.bench.rankings.answer import answer, ranking_table
from webapp.bench.rankings.catalogue import Load, Origins, observed_controllers
from webapp.bench.rankings.groups import Entry, Group
from webapp.bench.rankings.question import CHOICES, KEYS, LIMITS_NS, LISTS, Question, RankingRefused, read_question
from webapp.bench.rankings.ranking import Ranking, rank
from webapp.bench.rankings.scores import MIN_WEIGHT, ScoreGroup
from webapp.bench.rankings.standings import Lead, Standing
from webapp.bench.workloads import Workload, chart_order, chart_words, in_words
from webapp.core.formatting import bytes_binary, latency
from webapp.core.formatting import ratio as as_ratio
from webapp.core.table_files import file_response
from webapp.pictures.axes import Scale, round_step, tick_text
from webapp.plans.factors import FACTORS
from webapp.plans.points import in_order, varying
from webapp.screens.access import page
from webapp.screens.bench.address import with_value
from webapp.screens.choices import Choice, Option, options_of
from webapp.screens.choices import Group as OptionGroup
from webapp.screens.rankings.words import (
    KINDS,
    WITHIN,
    apart_words,
    caveats,
    flight_words,
    holds_words,
    lead_words,
    load_words,
    place_words,
    verdict,
)

# Bars: lengths in percent of an axis that begins at 0.

TICKS = 4  # about
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Tick:
    at: str  # percent, as SVG wants it
    text: str


@dataclass(frozen=True)
class Bar:
    """`low` and `high` are "" without an interval; `end` is where the value stands."""

    length: str
    low: str
    high: str
    end: str


@dataclass(frozen=True)
class Axis:
    longest: float  # bar or whisker
    room: float  # the axis is so many times as long, for the value at the end of a bar

    @property
    def top(self) -> float:
        """The value at 100 %."""
        return self.longest * self.room

    def at(self, value: float) -> str:
        return f"{Scale(0.0, self.top).at(value, 0, 100):.2f}%" if self.top else "0%"

    def bar(self, value: float, low: float | None, high: float | None) -> Bar:
        if low is None or high is None:
            return Bar(self.at(value), "", "", self.at(value))
        return Bar(self.at(value), self.at(low), self.at(high), self.at(max(value, high)))

    def ticks(self, text_of: Callable[[float], str]) -> tuple[Tick, ...]:
        return tuple(Tick(self.at(value), tick_text(text_of(value))) for value in self._values())

    def _values(self) -> Iterator[float]:
        if not self.longest:
            return
        step = round_step(self.longest / TICKS, STEPS)
        count = math.floor(self.longest / step + 1e-9)
        yield from (step * place for place in range(count + 1))


def axis_of(values: Sequence[float], highs: Sequence[float | None], room: float) -> Axis:
    return Axis(max([*values, *(high for high in highs if high is not None)], default=0.0), room)


NAME = "sweetspot-rankings"
FIRST, MOST_GROUPS = 15, 12  # bars of a group that are open; groups that are shown
MOST_LOADS = 4  # beside the shown one; the others are in a menu
_LABELS = {"model": "Drive model", "controller": "Controller", "layout": "Layout", "host": "Host", "tool": "Tool"}
_SOURCES = {Origins.ALL: "Own and references", Origins.OWN: "Own results", Origins.REFERENCES: "References"}


def _question(data: QueryDict) -> Question:
    """Raises RankingRefused or Refusal."""
    return read_question({key: data.get(key, "") for key in KEYS}, {key: data.getlist(key) for key in LISTS})


@page
def rankings_file(request: HttpRequest, ending: str) -> HttpResponseBase:
    """JSON has the shape of `GET /api/v1/rankings`."""
    ranking_answer = answer(rank(_question(request.GET)))
    if ending != "json":
        return file_response(ranking_table(ranking_answer), NAME, ending)
    name = {"Content-Disposition": f'attachment; filename="{NAME}.json"'}
    return HttpResponse(msgspec.json.encode(ranking_answer), content_type="application/json", headers=name)


@page
def rankings_page(request: HttpRequest) -> HttpResponse:
    try:
        question = _question(request.GET)
    except RankingRefused as refusal:
        return render(request, "screens/rankings.html", {"refusal": refusal.message}, status=422)
    return render(request, "screens/rankings.html", _context(request.GET, rank(question)))


def _context(data: QueryDict, ranking: Ranking) -> dict[str, object]:
    groups = ranking.groups[:MOST_GROUPS]
    shown_groups = [_shown(group, ranking) for group in groups]
    scores = [_shown_scores(group, ranking) for group in ranking.scores[:MOST_GROUPS]]
    is_latency = ranking.question.metric != "rate" and ranking.question.limit_ns is None
    return {
        "ranking": ranking,
        "kind": KINDS[ranking.question.ranked],
        "verdict": verdict(ranking),
        "load": load_words(ranking.load) if ranking.load else "",
        "where": holds_words(groups[0], ranking) if groups else "",
        "apart": apart_words(ranking),
        "caveats": list(caveats(ranking)),
        "metric": groups[0].panel.metric if groups else None,
        "groups": shown_groups,
        "has_whiskers": any(each.bar.low for group in shown_groups for each in group.all)
        or any(score.bar.low for group_scores in scores for score in group_scores.all),
        "more_groups": len(ranking.groups) - len(groups),
        "with_p99": not is_latency and any(entry.p99_ns for group in groups for entry in group.entries),
        "alone": [_alone(group) for group in ranking.alone],
        "same": list(same_for_all([dict(group.kind.conditions) for group in ranking.groups])),
        "kinds": [
            (f"{words}s".capitalize(), with_value(data, rank=key), key == ranking.question.ranked)
            for key, words in KINDS.items()
        ],
        "choices": list(_choices(ranking)),
        "loads": (loads := _loads(data, ranking)),
        "has_more_loads": not all(each.is_first for each in loads),
        "chips": list(_chips(data, ranking.question)),
        "picks": _picks(ranking),
        "sources": options_of(_SOURCES.items(), ranking.question.filter.origins),
        "hosts": [
            (text, with_value(data, hosts=key), ranking.question.across_hosts == (key == "together"))
            for key, text in (("apart", "apart"), ("together", "together"))
        ],
        "kept": _kept(data, ranking, "pattern", "block_size", "metric"),
        "kept_by_filter": _kept(data, ranking, "source", *_LABELS),
        "kept_by_weights": _kept(data, ranking, "weight", "base"),
        "query": data.urlencode(),
        "uses": [
            (use_case, _with_use(data, use_case.key), use_case is ranking.question.use_case, is_covered)
            for use_case, is_covered in ranking.use_cases
        ],
        "weights": _weights(ranking),
        "scores": scores,
        "bases": _bases(ranking),
        "min_weight": round(100 * MIN_WEIGHT),
    }


def _kept(data: QueryDict, ranking: Ranking, *changed: str) -> list[tuple[str, str]]:
    """The choices that a form keeps, with the shown workload; `changed` are those that it has fields for."""
    load = ranking.load
    shown = {"pattern": load.pattern, "block_size": str(load.block_size)} if load else {}
    given = {key: data.getlist(key) for key in (*KEYS, *LISTS)} | {key: [text] for key, text in shown.items()}
    return [(key, text) for key, texts in given.items() if key not in changed for text in texts if text]


# ---- bars


@dataclass(frozen=True)
class ShownEntry:
    product: str  # as in an address of Bench
    name: str
    where: str
    value: str
    interval: str
    n: int
    p99: str
    bar: Bar
    mark: str  # lead | seen | level | "": how the bar looks
    ratio: str  # of the first to this one
    standing: str
    ceiling: bool
    reference: bool


@dataclass(frozen=True)
class ShownGroup:
    title: str
    about: str  # what else tells it from other groups, and who leads if that is not certain
    entries: tuple[ShownEntry, ...]
    more: tuple[ShownEntry, ...]  # folded
    ticks: tuple[Tick, ...]
    unit: str

    @property
    def all(self) -> tuple[ShownEntry, ...]:
        return (*self.entries, *self.more)


_STANDINGS = {
    Standing.FIRST: "first", Standing.LEVEL: "not told from the first", Standing.BEHIND: "behind",
    Standing.SEEN_BEHIND: "behind, too few repeats", Standing.NOT_COMPARED: f"not compared: {ZERO}",
}  # fmt: skip


def _shown(group: Group, ranking: Ranking) -> ShownGroup:
    metric = group.panel.metric
    summaries = [entry.summary for entry in group.entries]
    room = 1.6 if any(entry.shares_ceiling for entry in group.entries) else 1.3  # for the words beside values
    axis = axis_of([summary.mean for summary in summaries], [summary.high for summary in summaries], room)
    entries = [_entry(group, place, axis) for place in range(len(group.entries))]
    return ShownGroup(
        _title(group, ranking), _about(group, ranking), tuple(entries[:FIRST]), tuple(entries[FIRST:]),
        axis.ticks(metric.format), f"{metric.label}, {'lower' if metric.lower_is_better else 'higher'} is better",
    )  # fmt: skip


def _entry(group: Group, place: int, axis: Axis) -> ShownEntry:
    entry, placed, metric = group.entries[place], group.order.ranked[place], group.panel.metric
    summary = entry.summary
    has_interval = summary.low is not None and summary.high is not None
    return ShownEntry(
        product=str(entry.product),
        name=_model(entry),
        where=_where(entry, group.kind.place),
        value=metric.format(summary.mean),
        interval=f"{metric.format(summary.low)} to {metric.format(summary.high)}" if has_interval else "",
        n=summary.n,
        p99=latency(entry.p99_ns) if entry.p99_ns else "",
        bar=axis.bar(summary.mean, summary.low, summary.high),
        mark=_mark(group.order.lead, placed.standing),
        ratio=as_ratio(placed.ratio.value) if placed.ratio else "",
        standing=_STANDINGS[placed.standing],
        ceiling=entry.shares_ceiling,
        reference=entry.is_reference,
    )


def _mark(lead: Lead, standing: Standing) -> str:
    if standing is Standing.FIRST and lead in (Lead.CLAIMED, Lead.SEEN):
        return "lead" if lead is Lead.CLAIMED else "seen"
    return "level" if lead is Lead.NONE and standing in (Standing.FIRST, Standing.LEVEL) else ""


def _model(entry: Entry) -> str:
    """The drive of an import without its layout, which stands below."""
    row = entry.rows[0]
    return row.model if entry.product.part and row.model else entry.name


def _where(entry: Entry, place: Sequence[str]) -> str:
    """What the title of the group does not say; `place` is that of the group."""
    layout = entry.rows[0].layout if _model(entry) != entry.name else ""
    share = f"{entry.share} % of its highest" if entry.share else ""
    return " · ".join(filter(None, (layout, "" if place else place_words(entry.where), share)))


def _title(group: Group, ranking: Ranking) -> str:
    """`fio · storage1`"""
    place = place_words(group.kind.place) or ("" if ranking.question.across_hosts else "host not stated")
    return " · ".join(filter(None, (group.kind.tool, place)))


def _about(group: Group, ranking: Ranking) -> str:
    size = f"{len(group.entries)} {KINDS[ranking.question.ranked]}s"
    return " · ".join(filter(None, (size, _conditions(group, ranking.groups), lead_words(group))))


def _conditions(group: Group, groups: Sequence[Group]) -> str:
    """The factors in which groups of one tool and place differ, at the levels of this one."""
    kind = group.kind
    alike = [
        dict(other.kind.conditions)
        for other in groups
        if other.kind.tool == kind.tool and other.kind.place == kind.place
    ]
    conditions = dict(kind.conditions)
    return in_words(Workload("", conditions), [name for name in in_order(varying(alike)) if name in conditions])


@dataclass(frozen=True)
class Alone:
    """A value that is comparable with nothing."""

    name: str
    product: str
    value: str
    where: str


def _alone(group: Group) -> Alone:
    entry = group.first
    conditions = same_for_all([dict(group.kind.conditions)])
    where = " · ".join(filter(None, (group.kind.tool, place_words(entry.where), *conditions)))
    return Alone(entry.name, str(entry.product), group.panel.metric.format(entry.summary.mean), where)


# ---- choices


def _choices(ranking: Ranking) -> Iterator[Choice]:
    """Pattern, block size and metric. Only what was measured is offered."""
    load, loads = ranking.load, ranking.offered.counts
    if load is not None:
        patterns = sorted({each.pattern for each in loads}, key=chart_order)
        yield _choice(
            "pattern", FACTORS["pattern"].label, [(pattern, chart_words(pattern)) for pattern in patterns], load.pattern
        )
        sizes = sorted({each.block_size for each in loads if each.pattern == load.pattern})
        yield _choice(
            "block_size",
            FACTORS["block_size"].label,
            [(str(size), bytes_binary(size)) for size in sizes],
            str(load.block_size),
        )
    has_shares, chosen = bool(ranking.catalogue.of_shares.loads), ranking.question.metric
    metrics = [(key, text) for key, text in CHOICES.items() if has_shares or key not in LIMITS_NS or key == chosen]
    if ranking.catalogue.loads:
        yield _choice("metric", "Metric", metrics, chosen)


def _choice(name: str, label: str, pairs: Iterable[tuple[str, str]], chosen: str) -> Choice:
    return Choice(f"rank-{name}", name, label, (OptionGroup("", options_of(pairs, chosen)),))


@dataclass(frozen=True)
class ShownLoad:
    text: str
    address: str
    is_shown: bool
    is_first: bool  # in the row, not in the menu


def _loads(data: QueryDict, ranking: Ranking) -> list[ShownLoad]:
    """Those of the pattern and block size, by requests in flight. The row has those that most drives have."""
    load, counts = ranking.load, ranking.offered.counts
    if load is None:
        return []
    alike = [each for each in counts if _is_alike(each, load)]
    usual = sorted(alike, key=lambda each: (-counts[each], each.in_flight, each.numjobs))[:MOST_LOADS]
    return [
        ShownLoad(flight_words(each), _at_load(data, each), each == load, each in usual or each == load)
        for each in sorted(alike, key=lambda each: (each.in_flight, each.numjobs))
    ]


def _at_load(data: QueryDict, load: Load) -> str:
    levels = {"block_size": load.block_size, "iodepth": load.iodepth, "numjobs": load.numjobs}
    return with_value(data, pattern=load.pattern, **{name: str(level) for name, level in levels.items()})


def _is_alike(first: Load, second: Load) -> bool:
    return first.pattern == second.pattern and first.block_size == second.block_size


def _chips(data: QueryDict, question: Question) -> Iterator[tuple[str, str]]:
    """What the filter asks, and the address without it."""
    for key in _LABELS:
        for text in filter(None, data.getlist(key)):
            yield text, with_value(data, **{key: [other for other in data.getlist(key) if other != text]})
    if question.filter.origins is not Origins.ALL:
        yield _SOURCES[question.filter.origins], with_value(data, source="")


@dataclass(frozen=True)
class Pick:
    name: str
    label: str
    options: tuple[Option, ...]


def _picks(ranking: Ranking) -> list[Pick]:
    """What the filter offers: all values, also those that it leaves out now."""
    chosen = ranking.question.filter
    sources = ranking.whole.all_sources
    values: Mapping[str, tuple[Iterable[str | None], frozenset[str]]] = {
        "model": ((source.model for source in sources), chosen.models),
        "controller": ((*(source.controller for source in sources), *observed_controllers()), chosen.controllers),
        "layout": ((source.layout for source in sources), chosen.layouts),
        "host": ((source.host for source in sources), chosen.hosts),
        "tool": ((source.tool for source in sources), chosen.tools),
    }
    return [
        Pick(name, _LABELS[name], options_of(((text, text) for text in _sorted(texts, chosen_values)), *chosen_values))
        for name, (texts, chosen_values) in values.items()
    ]


def _sorted(texts: Iterable[str | None], chosen: frozenset[str]) -> list[str]:
    return sorted({*filter(None, texts), *chosen}, key=str.lower)


# ---- use cases


def _with_use(data: QueryDict, key: str) -> str:
    return with_value(data, use=key, weight=[], base="")


@dataclass(frozen=True)
class Weight:
    label: str
    value: int
    share: str
    workload: str  # that stands for it in the first group; "" if too few products have it


def _weights(ranking: Ranking) -> list[Weight]:
    question, total = ranking.question, sum(ranking.question.weights)
    taken = {basis.part: basis.load for basis in ranking.scores[0].bases} if ranking.scores else {}
    pairs = zip(question.use_case.parts, question.weights, strict=True)
    return [
        Weight(part.label, weight, f"{100 * weight / total:.0f} %", _taken(taken.get(part))) for part, weight in pairs
    ]


def _taken(load: Load | None) -> str:
    return f"{bytes_binary(load.block_size)}, {flight_words(load)}" if load else ""


@dataclass(frozen=True)
class ShownScore:
    product: str
    name: str
    where: str
    value: str
    interval: str
    bar: Bar
    mark: str


@dataclass(frozen=True)
class ShownScores:
    title: str
    base: str
    hundred: str  # where the line at 100 is
    scores: tuple[ShownScore, ...]
    more: tuple[ShownScore, ...]
    without: tuple[str, ...]  # products without a score, and what they lack
    weight: int  # percent of the weights that the scores rest on
    words: str  # who leads, in words

    @property
    def all(self) -> tuple[ShownScore, ...]:
        return (*self.scores, *self.more)


def _shown_scores(group: ScoreGroup, ranking: Ranking) -> ShownScores:
    highs = [100 * score.ratio.high if score.ratio.high else None for score in group.scores]
    axis = axis_of([score.value for score in group.scores], highs, 1.2)
    scores = []
    for score, placed in zip(group.scores, group.order.ranked, strict=True):
        low, high = (None if end is None else 100 * end for end in (score.ratio.low, score.ratio.high))
        scores.append(
            ShownScore(
                str(score.entry.product), _model(score.entry), _where(score.entry, group.place),
                f"{score.value:.0f}", "" if low is None else f"{low:.0f} to {high:.0f}",
                axis.bar(score.value, low, high), _mark(group.order.lead, placed.standing),
            )
        )  # fmt: skip
    return ShownScores(
        title=" · ".join(filter(None, (group.tool, place_words(group.place)))),
        base=_model(group.base),
        hundred=axis.at(100),
        scores=tuple(scores[:FIRST]),
        more=tuple(scores[FIRST:]),
        without=tuple(f"{each.entry.name}: {', '.join(each.parts)}" for each in group.lacking),
        weight=round(100 * group.weight),
        words=_score_words(group, ranking),
    )


def _score_words(group: ScoreGroup, ranking: Ranking) -> str:
    blocks = [part.summary.n for score in group.scores for part in score.parts]
    wheres = {score.entry.where for score in group.scores}
    seen = "Measured once: no claim." if 1 in blocks else "Too few repeats: no claim."
    lead = {Lead.NONE: f"No leader by more than {WITHIN}.", Lead.SEEN: seen}.get(group.order.lead, "")
    hosts = "Hosts differ." if ranking.question.across_hosts and len(wheres) > 1 else ""
    return " ".join(filter(None, (lead, hosts)))


def _bases(ranking: Ranking) -> tuple[Option, ...]:
    """The products that can have the score 100."""
    names = {str(score.entry.product): score.entry.name for group in ranking.scores for score in group.scores}
    return options_of([("", "the best"), *names.items()], ranking.question.base) if names else ()
