"""The share of its speed alone that each stream, or each of several targets, keeps beside others, from matched points.

A stream is matched with itself alone: same target, same direction, and the same levels of all its factors. Blocks of a
run are pairs, so the share is a geometric mean with the interval of `analysis.claims`. Nothing is claimed without a
measurement alone, or with fewer than MIN_BLOCKS repeats. The intervals are of each share by itself, not corrected for
the number of shares.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from msgspec import structs

from webapp.analysis.cells import Measured, cell_of
from webapp.analysis.claims import MIN_BLOCKS, Pair, contrast, same_order
from webapp.core.statistics import Ratio
from webapp.hosts.selectors import members_of
from webapp.plans.factors import AT_ONCE, STREAM
from webapp.plans.points import hosts_at_once, point_key, target_count
from webapp.plans.streams import alone_point, names_of
from webapp.results.ingest.results import directions_of
from webapp.results.metrics import IOPS, Metric, default_metric
from webapp.results.models import WITHOUT_IOS, Result, StreamRun
from webapp.results.reading.content import Point
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.reading.trial_streams import MIN_OVERLAP
from webapp.runs.models import Run

Key = tuple[str, str, str]  # target, key of the point, direction


@dataclass(frozen=True)
class Share:
    """One direction of a stream, or the sum of several streams, beside others against alone."""

    streams: tuple[str, ...]  # one, or those that are added; targets, if these are measured at once
    targets: tuple[str, ...]
    point: Point  # of the first stream beside the others
    direction: str
    metric: Metric
    ratio: Ratio | None  # None: nothing is claimed, see `why_not`
    n: int
    why_not: str = ""  # a clause
    cautions: tuple[str, ...] = ()  # clauses
    together: tuple[str, ...] = ()  # all streams, or targets, that ran at once
    pair: Pair | None = None  # beside the others and alone; None if nothing is claimed


def shares_of(run: Run, metric: Metric) -> list[Share]:
    """The shares in the valid results of a run. Two queries more than `read_rows`."""
    results = Result.objects.filter(run=run, invalid=False, point__has_key=STREAM).order_by("trial__index", "id")
    rows = read_rows(results, with_facts=False)
    return shares(rows, metric, overlaps_of(rows))


def shares_of_targets(run: Run, metric: Metric) -> list[Share]:
    """The shares of targets of one host that ran at once, in the valid results of a run. Without such trials no query
    more than `read_rows`, else one."""
    results = Result.objects.filter(run=run, invalid=False, point__has_key=AT_ONCE).exclude(point__has_key=STREAM)
    rows = read_rows(results.order_by("trial__index", "id"), with_facts=False)
    alone: dict[Key, list[ResultRow]] = defaultdict(list)
    for row in rows:
        if target_count(row.point) == 1:
            alone[row.target_name, row.point_key, row.direction].append(row)
    beside: dict[tuple[str, Key], list[ResultRow]] = defaultdict(list)
    for group, row in _target_rows([row for row in rows if target_count(row.point) > 1]):
        beside[group, (row.target_name, row.point_key, row.direction)].append(row)
    return [
        replace(_share([each], [alone[key]], metric, {}), together=tuple(members_of(group)))
        for (group, key), each in beside.items()
    ]


def _target_rows(rows: Sequence[ResultRow]) -> Iterator[tuple[str, ResultRow]]:
    """What each target of a sum measured, at the point of the target alone, with the name of all its targets."""
    sums = {(row.trial_id, row.direction): row for row in rows if hosts_at_once(row.point) == 1}
    if not sums:
        return
    trials = {UUID(trial) for trial, _ in sums}
    streams = StreamRun.objects.filter(attempt__trial__in=trials, attempt__state="done").select_related("attempt")
    for stream in streams.order_by("stream"):
        for measured in directions_of(stream):
            row = sums.get((str(stream.attempt.trial_id), measured.direction.value))
            if row is not None:
                alone = {**row.point, AT_ONCE: 1}
                yield row.target_name, structs.replace(
                    row, target_name=members_of(row.target_name)[stream.stream], point=alone,
                    point_key=point_key(alone), iops=measured.iops, bytes_per_s=measured.bytes_per_s,
                    ios=measured.ios, runtime_ms=measured.runtime_ms,
                )  # fmt: skip


def shares(rows: Sequence[ResultRow], metric: Metric, overlaps: Mapping[tuple[str, str], float]) -> list[Share]:
    """Shares of all streams that ran beside others, then those of sums of streams of one direction.

    `rows` are results of streams; `overlaps` is by trial id and stream, see `overlaps_of`.
    """
    cells: dict[Key, list[ResultRow]] = defaultdict(list)
    for row in rows:
        cells[row.target_name, row.point_key, row.direction].append(row)
    beside = {key: each for key, each in cells.items() if len(names_of(each[0].point)) > 1}
    alone = {
        key: cells.get((key[0], point_key(alone_point(each[0].point)), key[2]), []) for key, each in beside.items()
    }
    of_streams = [_share([each], [alone[key]], metric, overlaps) for key, each in beside.items()]
    together: dict[tuple[object, ...], list[Key]] = defaultdict(list)
    for key, each in beside.items():
        together[key[2], *sorted(row.trial_id for row in each)].append(key)
    sums = [keys for keys in together.values() if len(keys) > 1]
    added = [_share([beside[key] for key in keys], [alone[key] for key in keys], metric, overlaps) for keys in sums]
    return of_streams + [share for share in added if share.ratio is not None]


def _speed(row: ResultRow, metric: Metric) -> Metric:
    """A result without IOPS is compared by the metric of its engine."""
    return default_metric([row.point]) if metric is IOPS and row.direction in WITHOUT_IOS else metric


def _share(
    beside: Sequence[Sequence[ResultRow]], alone: Sequence[Sequence[ResultRow]], metric: Metric,
    overlaps: Mapping[tuple[str, str], float],
) -> Share:  # fmt: skip
    first = beside[0][0]
    metric = _speed(first, metric)
    streams = tuple(each[0].stream or each[0].target_name for each in beside)
    targets = tuple(dict.fromkeys(each[0].target_name for each in beside))
    share = Share(streams, targets, first.point, first.direction, metric, None, 0, together=names_of(first.point))
    if missing := [name for name, each in zip(streams, alone, strict=True) if not each]:
        return _without(share, f"{missing[0]} was not measured alone", 0)
    pair = _added([cell_of(each, metric) for each in beside]), _added([cell_of(each, metric) for each in alone])
    n = min(len(pair[0].values), len(pair[1].values))
    if n == 0 or not (pair[0].positive and pair[1].positive):
        return _without(share, "a stream did no I/O" if n else "no repeat has all streams", n)
    result = contrast([pair])
    if result.n < MIN_BLOCKS:
        return _without(share, "too few repeats", result.n)
    cautions = [f"always measured {order} it was alone, so it may be drift"] if (order := same_order([pair])) else []
    known = [
        overlaps[row.trial_id, row.stream] for each in beside for row in each if (row.trial_id, row.stream) in overlaps
    ]
    if known and min(known) < MIN_OVERLAP:
        cautions.append(f"the streams ran together for only {100 * min(known):.0f} % of its time")
    return replace(share, ratio=result.ratio, n=result.n, cautions=tuple(cautions), pair=pair)


def _without(share: Share, why: str, n: int) -> Share:
    return replace(share, n=n, why_not=why)


def _added(cells: Sequence[Measured]) -> Measured:
    """The sum in each block that all cells have."""
    blocks = [block for block in cells[0].values if all(block in each.values for each in cells)]
    return Measured(
        values={block: sum(each.values[block] for each in cells) for block in blocks},
        at={block: cells[0].at[block] for block in blocks},
        step=max(each.step for each in cells),
        balanced=all(each.balanced for each in cells),
    )


def overlaps_of(rows: Iterable[ResultRow]) -> dict[tuple[str, str], float]:
    """The part of its time in which a stream ran beside all others, by trial id and name of the stream. One query."""
    names = {row.trial_id: names_of(row.point) for row in rows if len(names_of(row.point)) > 1}
    runs = StreamRun.objects.filter(attempt__trial__in=[UUID(trial) for trial in names], attempt__state="done")
    ended = runs.filter(ended_at__isnull=False).order_by()
    spans: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
    for trial, number, start, end in ended.values_list("attempt__trial", "stream", "started_at", "ended_at"):
        if end is not None:
            spans[str(trial)][number] = start.timestamp(), end.timestamp()
    return {
        (trial, names[trial][number]): max(0.0, min(e for _, e in each.values()) - max(s for s, _ in each.values()))
        / max(end - start, 1e-9)
        for trial, each in spans.items()
        for number, (start, end) in each.items()
    }
