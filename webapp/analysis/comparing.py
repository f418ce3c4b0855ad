"""Comparisons: results grouped into cells, repeats summarised, series compared with a baseline."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from msgspec import structs

from webapp.analysis.answer import Comparison, Difference, Level, Mixture, RatioForm
from webapp.analysis.cells import (
    PERCENTILES,
    CellKey,
    Grouped,
    Kinds,
    Measured,
    group,
    measured,
    mixed_kinds,
    with_points,
)
from webapp.analysis.claims import ONE_LOOK, Looks, contrast
from webapp.analysis.conclusions import Conclusions, GroupedCells, conclusions
from webapp.analysis.default_questions import Chosen, questions_of_run
from webapp.analysis.differences import differences, verdict
from webapp.analysis.dimensions import known_dimension, label_of
from webapp.analysis.equals import equal_places, same_for_all
from webapp.analysis.findings import findings
from webapp.analysis.findings.asymmetry import are_equals
from webapp.analysis.findings.curves import BlockSizes, Noise
from webapp.analysis.findings.directions import holds_writes_against_reads
from webapp.analysis.known_ceilings import NOTHING_KNOWN, KnownCeilings, known_ceilings
from webapp.analysis.mixtures import mixture_sentence, without_mixtures
from webapp.analysis.question import CompareQuery, CompareRefused, checked
from webapp.analysis.seals import scopes_of
from webapp.analysis.table import Table
from webapp.analysis.trial_metrics import metric_named, totals, with_observed
from webapp.analysis.words import RATIO, certainty, order_notes, unstated_sentence
from webapp.core.answers import Question, answered
from webapp.core.formatting import ratio as as_ratio
from webapp.plans.factors import AT_ONCE, BASE, CHANGE, FACTORS, HOSTS_AT_ONCE, OTHERS, FactorKind
from webapp.plans.streams import ALONE, OF_TRIALS
from webapp.results.metrics import METRICS, Metric, Missing
from webapp.results.reading.doubts import doubts, unfinished_sentences
from webapp.results.reading.newest import is_of_products, newest_of, newest_words
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.rounds import rounds_sentences
from webapp.runs.models import SettingChange
from worker.contract.packing import LAST_BUCKET_NS
from worker.contract.workload import SNIA_ROUNDS

# Scaling over several targets or hosts at once: the ratio to one alone, and the share of linear scaling.

_ONE = {AT_ONCE: "target", HOSTS_AT_ONCE: "host"}


def scaling(
    panel: Level, query: CompareQuery, metric: Metric, grouped: Grouped, cells: Mapping[CellKey, Measured]
) -> tuple[str, ...]:
    """A sentence for each series that was measured with one target and with several at once:
    `4 KiB: against the IOPS of one target alone, 2 at once reach ×1.91 (95 % CI …; 96 % of linear scaling).`"""
    if query.x not in _ONE or not metric.adds_up:
        return ()
    sentences = []
    for series in grouped.series:
        of_series = {x.number or 0.0: cells.get((panel.key, series.key, x.key)) for x in grouped.x}
        usable = {count: cell for count, cell in of_series.items() if cell and cell.positive and cell.balanced}
        if parts := list(_parts(usable)):
            name = f"{series.text}: a" if query.series else "A"
            sentences.append(f"{name}gainst the {metric.label} of one {_ONE[query.x]} alone, {', '.join(parts)}.")
    return tuple(sentences)


def _parts(cells: Mapping[float, Measured]) -> Iterator[str]:
    for count, cell in sorted(cells.items()):
        if count > 1 and 1.0 in cells and cell.same_points(cells[1.0]):
            result = contrast([(cell, cells[1.0])])
            ratio = result.ratio
            share = f"{100 * ratio.value / count:.0f} % of linear scaling"
            yield f"{count:g} at once reach {as_ratio(ratio.value)} ({certainty(ratio, result.n, RATIO)}; {share})"


# The series that the others are compared with: the chosen one; otherwise the base of changes, streams alone, the
# settings that the hosts had before the runs, then a published reference, then the first series.


def baseline_of(query: CompareQuery, grouped: Grouped) -> Level:
    """One query if settings are compared. Raises CompareRefused for an unknown series."""
    known = {series.key: series for series in grouped.series}
    if not known:
        return Level("", "", None)
    if not query.baseline:
        return _default(query, grouped)
    if query.baseline not in known:
        names = ", ".join(known)
        raise CompareRefused("compare_baseline_unknown", f"There is no series `{query.baseline}`. Use {names}.")
    return known[query.baseline]


def _baselines(query: CompareQuery, grouped: Grouped, baseline: Level) -> dict[str, Level]:
    """Panel key -> the series with which the others of this chart are compared. A chart without the baseline, of which
    no person has chosen one, compares with its own first series: reads of a tool have no initial write."""
    in_panel: dict[str, set[str]] = {panel.key: set() for panel in grouped.panels}
    for panel, series, _ in grouped.cells:
        in_panel[panel].add(series)
    return {
        panel: baseline
        if query.baseline or baseline.key in keys
        else next(series for series in grouped.series if series.key in keys)
        for panel, keys in in_panel.items()
    }


def _default(query: CompareQuery, grouped: Grouped) -> Level:
    """The first of the series with the fewest objections."""
    settings = [name for name in query.series if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING]
    rows: dict[str, list[ResultRow]] = {}
    for (_, key, _), in_cell in grouped.cells.items():
        rows.setdefault(key, []).extend(in_cell)
    before = _values_before(settings, {row.run for of_series in rows.values() for row in of_series}) if settings else {}

    def objections(series: Level) -> tuple[bool, bool, bool, bool]:
        of_series = rows[series.key]
        changed = CHANGE in query.series and of_series[0].point.get(CHANGE) != BASE
        beside = bool(OF_TRIALS.intersection(query.series)) and of_series[0].point.get(OTHERS, ALONE) != ALONE
        return (
            changed,
            beside,
            not _is_unchanged(of_series[0], settings, before),
            not all(row.reference for row in of_series),
        )

    return min(grouped.series, key=objections)


def _is_unchanged(row: ResultRow, settings: Iterable[str], before: Mapping[str, Collection[str]]) -> bool:
    """Whether each setting has the value of the host before the run, or was left alone."""
    return all(
        name not in row.point or FACTORS[name].values.write(row.point[name]) in before.get(name, ())
        for name in settings
    )


def _values_before(settings: Collection[str], runs: Collection[int]) -> Mapping[str, Collection[str]]:
    """The values before the first change in each run, by setting; left out if hosts or devices had different values."""
    changes = SettingChange.objects.filter(
        name__in=settings, restoring=False, attempt__trial__run__number__in=runs
    ).order_by("at", "id")
    first: dict[tuple[str, ...], str] = {}
    for name, device, host, run, value in changes.values_list(
        "name", "device", "attempt__host", "attempt__trial__run", "before"
    ):
        first.setdefault((name, device, str(host), str(run)), value)
    by_setting: dict[str, set[str]] = {}
    for (name, *_), value in first.items():
        by_setting.setdefault(name, set()).add(value)
    return {name: values for name, values in by_setting.items() if len(values) == 1}


MAX_SERIES = 50
MAX_RESULTS = 20_000
RATES = frozenset({"iops", "bytes_per_s"})  # that a link limits


@dataclass(frozen=True)
class Matching:
    """All results that match, in the order of measuring, and what several comparisons of them share."""

    query: ResultQuery
    rows: tuple[ResultRow, ...]
    has_more: bool = False  # older results are left out (`results.reading.newest`)

    @cached_property
    def questions(self) -> tuple[Chosen, ...]:
        return questions_of_run(self.rows)

    @cached_property
    def invalid(self) -> int:
        """Results left out because a person marked them. One query."""
        return self.query.count_invalid_left_out()

    @cached_property
    def known_ceilings(self) -> KnownCeilings:
        """Five queries."""
        return known_ceilings(self.rows)


@dataclass(frozen=True)
class Selected:
    """The compared results, grouped into cells.

    In `grouped` the directions of a trial are one row if the metric adds up. Otherwise they are in different cells.
    """

    query: CompareQuery
    metric: Metric
    matching: Matching  # also results without a value of the metric
    rows: tuple[ResultRow, ...]  # in the order of measuring
    missing: int  # results without a value of the metric
    invalid: int  # results left out because a person marked them
    grouped: Grouped
    notes: tuple[str, ...] = ()  # such as prices, and rounds after SNIA PTS
    unstated: bool = False  # some of the missing are of imports or without I/Os: their tools do not state the value
    mixtures: tuple[Mixture, ...] = ()  # of cells that are left out, with their results
    mixed: frozenset[CellKey] = frozenset()  # these cells
    known: KnownCeilings = NOTHING_KNOWN


def compare(query: CompareQuery) -> Comparison:
    """Stored until what it depends on changes. Raises CompareRefused."""
    scopes = scopes_of(query.results)
    return answered(Question((repr(query),), scopes, Comparison, lambda: comparison_of(select(query))))


def select(query: CompareQuery) -> Selected:
    """At most 21 database queries. Raises CompareRefused."""
    checked(query)
    matching, wanted = read_all(ResultQuery.of(query.results)), query.results
    chosen = {"run": wanted.runs, "imported": wanted.imports, "configuration": wanted.configurations}
    named = [name for name, levels in chosen.items() if levels]
    if is_of_products(query.series, (query.x, query.panel), named):
        rows = newest_of(matching.rows)
        matching = Matching(matching.query, rows, has_more=len(rows) < len(matching.rows))
    return select_from(query, matching)


def select_from(query: CompareQuery, matching: Matching) -> Selected:
    """The results of a checked query, of those that `read_all` has read. Raises CompareRefused."""
    observed = with_observed(matching.rows, metric_named(query.metric))
    read, metric = observed.rows, observed.metric
    if metric.adds_up and "direction" not in query.dimensions:
        incomplete = {
            row.id for total in totals(read) if metric.of(total) is None for row in read if row.id in total.ids
        }
        rows = tuple(row for row in read if row.id not in incomplete)
    else:
        rows = tuple(row for row in read if metric.of(row) is not None)
    if metric.adds_up:
        all_groups = grouped_for(query, rows if "direction" in query.dimensions else totals(rows))
    else:
        query, all_groups = _apart(query, rows)
    missing = _missing(read, rows, metric)
    grouped, mixtures = without_mixtures(all_groups, query)
    if mixtures:
        alike = {id_ for in_cell in grouped.cells.values() for row in in_cell for id_ in row.ids}
        rows = tuple(row for row in rows if row.id in alike)
    if query.baseline and not _has_series(query.baseline, grouped) and _has_series(query.baseline, group(read, query)):
        query = replace(query, baseline="")  # no point of it has a value
    unstated = any((row.imported or row.ios is None) and metric.of(row) is None for row in read)
    newest = (newest_words(),) if matching.has_more else ()
    notes = (*newest, *observed.notes, *unfinished_sentences(rows), *_rounds(rows))
    return Selected(
        query, metric, matching, rows, missing, matching.invalid, grouped, notes, unstated, mixtures,
        frozenset(all_groups.cells.keys() - grouped.cells.keys()),
        matching.known_ceilings if metric.key in RATES else NOTHING_KNOWN,
    )  # fmt: skip


def _has_series(key: str, grouped: Grouped) -> bool:
    return any(series.key == key for series in grouped.series)


def _rounds(rows: Sequence[ResultRow]) -> Iterator[str]:
    if runs := {row.run for row in rows if row.run and row.repeat >= SNIA_ROUNDS}:
        yield from rounds_sentences(runs)


def _missing(read: Sequence[ResultRow], with_value: Sequence[ResultRow], metric: Metric) -> int:
    """Results left out for want of a value. An engine's own metric is in one direction and counts for the trial."""
    if metric.column:
        return len(read) - len(with_value)
    without = [row for row in read if metric.of(row) is None]
    known = {(row.source, row.trial) for row in read if metric.of(row) is not None}
    return sum((row.source, row.trial) not in known for row in without)


def read_all(query: ResultQuery) -> Matching:
    """Raises CompareRefused for more than MAX_RESULTS."""
    rows = read_rows(query.results.order_by()[: MAX_RESULTS + 1])
    if len(rows) > MAX_RESULTS:
        message = f"More than {MAX_RESULTS:,} results match. Choose runs, hosts, drives or levels of a factor."
        raise CompareRefused("compare_too_many", message)
    return Matching(query, tuple(sorted(rows, key=lambda row: (row.source, row.trial, row.id))))


def for_latencies(selected: Selected) -> Selected:
    """The same results with one chart per direction, for any metric."""
    query, grouped = _apart(selected.query, selected.rows)
    return replace(selected, query=query, grouped=grouped)


def _apart(query: CompareQuery, rows: Sequence[ResultRow]) -> tuple[CompareQuery, Grouped]:
    """One chart per direction if a cell would contain several: a latency mean over reads and writes is meaningless."""
    grouped = grouped_for(query, rows)
    if all(len({row.direction for row in cell}) == 1 for cell in grouped.cells.values()):
        return query, grouped
    by_direction = replace(query, by_direction=True)
    return by_direction, grouped_for(by_direction, rows)


def cells_of(selected: Selected, baseline: Level) -> GroupedCells:
    grouped = selected.grouped
    places = equal_places(selected.query.series)
    cells = with_points(measured(grouped, selected.metric), grouped, places)
    return GroupedCells(grouped, cells, _baselines(selected.query, grouped, baseline))


def concluded_of(selected: Selected, compared: GroupedCells, looks: Looks = ONE_LOOK) -> Conclusions:
    """What may be claimed of the cells. The questions of a run share the chance of a false claim."""
    return conclusions(compared, selected.query.margin, questions=max(1, len(selected.matching.questions)), looks=looks)


def comparison_of(selected: Selected, learned: Noise | None = None) -> Comparison:
    """Means, ratios and what else differs. Without a query, so that simulations need no database. `learned`: the noise
    of other repeats of the same thing, for findings."""
    query, metric, grouped = selected.query, selected.metric, selected.grouped
    baseline = baseline_of(query, grouped)
    compared = cells_of(selected, baseline)
    cells = compared.cells
    concluded = concluded_of(selected, compared)
    differing = differences(grouped, query)
    single, words = verdict(query, differing, series=len(grouped.series))
    table = Table(
        metric=metric, x=query.x, baselines=compared.baselines, grouped=grouped, cells=cells, conclusions=concluded,
        form=query.ratios, margin=query.margin, other_rate=_other_rate(metric, selected.rows),
        is_cheap=all(name in FACTORS and not FACTORS[name].cost for name in query.series),
    )  # fmt: skip
    row_by_point = {(row.point_key, row.target_kind): row for rows in grouped.cells.values() for row in rows}
    panels = tuple(table.panel(panel, scaling(panel, query, metric, grouped, cells)) for panel in grouped.panels)
    made = Comparison(
        metric=metric.key,
        metric_label=metric.label,
        shown_as=metric.shown_as,
        unit=metric.unit,
        lower_is_better=metric.lower_is_better,
        x=query.x,
        x_label=label_of(query.x),
        x_numeric=known_dimension(query.x).numeric,
        series_by=query.series,
        series_label=", ".join(label_of(name) for name in query.series),
        panel_label=", ".join(label_of(name) for name in query.panels),
        levels=grouped.x,
        same=tuple(same_for_all([row.shown_point for row in row_by_point.values()], query.dimensions)),
        panels=panels,
        baseline=baseline.key,
        ratio_as=RatioForm(table.form),
        margin=query.margin,
        verdict=words,
        single_factor=single,
        differs=differing,
        warnings=tuple(_warnings(selected, cells)),
        notes=tuple(_notes(selected, cells, concluded)),
        results=len(selected.rows),
        mixtures=selected.mixtures,
    )
    block_sizes, rows = _block_sizes(selected.rows), _rows_by_series(grouped)
    links = (
        {}
        if selected.known == NOTHING_KNOWN
        else {key: selected.known.common(series_rows) for key, series_rows in rows.items()}
    )
    equipment = (
        {key: _equipment(series_rows, selected.known) for key, series_rows in rows.items()}
        if are_equals(query.series)
        else {}
    )
    between = partial(_between, grouped, query)
    found = findings(made, metric, learned, block_sizes, links, equipment, between)
    if not all(row.imported for row in selected.rows):  # a published table may be about it, but no plan asks it
        found = tuple(each for each in found if not holds_writes_against_reads(each))
    return structs.replace(made, findings=found)


def _between(grouped: Grouped, query: CompareQuery, keys: frozenset[str]) -> Sequence[Difference]:
    """What else differs between the series with these keys."""
    cells = {key: rows for key, rows in grouped.cells.items() if key[1] in keys}
    series = tuple(each for each in grouped.series if each.key in keys)
    return differences(replace(grouped, cells=cells, series=series), query)


def _rows_by_series(grouped: Grouped) -> Mapping[str, Sequence[ResultRow]]:
    rows: dict[str, list[ResultRow]] = {}
    for (_, series, _), in_cell in grouped.cells.items():
        rows.setdefault(series, []).extend(in_cell)
    return rows


def _equipment(rows: Iterable[ResultRow], known: KnownCeilings) -> Mapping[str, str]:
    """The facts that all results share."""
    configurations = {(row.configuration or row.id, row.target_name): row for row in rows}
    facts = [{**row.facts, **known.equipment(row.target_name)} for row in configurations.values()]
    return dict(set.intersection(*({*each.items()} for each in facts)))


def _block_sizes(rows: Iterable[ResultRow]) -> BlockSizes:
    sizes: dict[str, set[object]] = {}
    for row in rows:
        sizes.setdefault(str(row.point.get("pattern", "")), set()).add(row.point.get("block_size"))
    return {pattern: frozenset(each) for pattern, each in sizes.items()}


_OTHER_RATES = {"iops": METRICS["bytes_per_s"], "bytes_per_s": METRICS["iops"]}


def _other_rate(metric: Metric, rows: Sequence[ResultRow]) -> Metric | None:
    """If block sizes vary: small blocks are judged by IOPS, large ones by bandwidth."""
    sizes = {row.point.get("block_size") for row in rows}
    return _OTHER_RATES.get(metric.key) if len(sizes) > 1 else None


def _kinds_of_series(grouped: Grouped, cells: Mapping[CellKey, Measured]) -> Mapping[str, Kinds]:
    kinds: dict[str, Kinds] = {}
    for key, cell in cells.items():
        kinds[key[1]] = kinds.get(key[1], frozenset()) | cell.kinds
    return {series.text: kinds[series.key] for series in grouped.series}


def _warnings(selected: Selected, cells: Mapping[CellKey, Measured]) -> Iterator[str]:
    if mixed := mixed_kinds(_kinds_of_series(selected.grouped, cells)):
        yield mixed
    yield from map(mixture_sentence, selected.mixtures)


def _notes(selected: Selected, cells: Mapping[CellKey, Measured], concluded: Conclusions) -> Iterator[str]:
    if not selected.rows and not selected.missing and not selected.mixtures:
        yield "No valid results match."
    if selected.invalid:
        yield f"{selected.invalid} invalid {'result is' if selected.invalid == 1 else 'results are'} left out."
    if selected.missing:
        words, has = ("result is", "it has") if selected.missing == 1 else ("results are", "they have")
        few = selected.metric.column in PERCENTILES and not selected.unstated
        why = "too few I/Os" if few else f"{has} no value"
        yield f"{selected.missing} {words} left out: {why} for {selected.metric.label}."
    yield from selected.notes
    if selected.metric.adds_up and any(row.summed_ids for rows in selected.grouped.cells.values() for row in rows):
        yield f"For mixed workloads, {selected.metric.label} is the sum of both directions."
    if selected.query.by_direction:
        yield "Latencies are not added up, so each direction has its own chart."
    for series in selected.grouped.series:
        if factors := selected.grouped.unstated.get(series.key):
            yield unstated_sentence(series.text, map(label_of, factors))
    doubted = Counter(doubt.short for row in selected.rows for doubt in doubts(row))
    if doubted:
        words = ", ".join(f"{count} {doubt}" for doubt, count in doubted.items())
        yield f"May not be the speed of the drive: {words}, of {len(selected.rows)} results. Their trials say more."
    yield from _missing_cells(selected)
    alone = sum(len(cell.values) == 1 for cell in cells.values())
    if alone:
        have = "was measured once and has" if alone == 1 else "were measured once and have"
        yield f"{alone} of {len(cells)} points {have} no interval."
    invalid = sum(row.invalid for row in selected.rows)
    if invalid:
        yield f"{invalid} invalid {'result is' if invalid == 1 else 'results are'} included."
    yield from _statistics(selected, cells, concluded)


def _missing_cells(selected: Selected) -> Iterator[str]:
    """Points that one series of a chart has and another has not, by reason."""
    grouped = selected.grouped
    points = {(panel, x) for panel, _, x in grouped.cells}
    series = {(panel, key) for panel, key, _ in grouped.cells}
    wanted = {(panel, key, x) for panel, x in points for of, key in series if of == panel}
    missing = wanted - grouped.cells.keys() - selected.mixed
    if not missing:
        return
    sums = selected.metric.adds_up and "direction" not in selected.query.dimensions
    rows = selected.matching.rows
    with_results = group(totals(rows) if sums else rows, selected.query).cells.keys()
    valueless = len(missing & with_results)
    if count := len(missing) - valueless:
        was, it = ("was", "it has") if count == 1 else ("were", "they have")
        yield f"{count} of {len(wanted)} points {was} {Missing.NOT_MEASURED}: {it} no valid result."
    if valueless:
        has, its = ("has", "its") if valueless == 1 else ("have", "their")
        yield (
            f"{valueless} of {len(wanted)} points {has} {Missing.NO_VALUE}: {its} results do not state "
            f"{selected.metric.label}."
        )


def _statistics(selected: Selected, cells: Mapping[CellKey, Measured], concluded: Conclusions) -> Iterator[str]:
    """How claims are made, and when they are not."""
    compared_series, ranges = concluded.series.values(), concluded.extremes.values()
    orders = {series.order for series in compared_series} | {extremes.order for extremes in ranges}
    yield from order_notes(orders)
    compared = concluded.sentences + concluded.tested_points
    if compared and any(len(cell.values) > 1 for cell in cells.values()):
        comparisons = f"{compared} {'comparison' if compared == 1 else 'comparisons'}"
        questions = len(selected.matching.questions)
        of_run = f" and the {questions} factors of the run" if questions > 1 else ""
        yield (
            f"Repeats of a run are compared in pairs. Sentences and colours are corrected for {comparisons}{of_run} "
            "(Holm, at most 5 % for any false claim); 95 % CIs are not."
        )
    if selected.metric.column in PERCENTILES:
        yield (
            f"{selected.metric.label} is the mean of the repeats' percentiles. The latency distribution shows the "
            "percentile of all their I/Os, which may differ."
        )
        if any(selected.metric.of(row) == LAST_BUCKET_NS for row in selected.rows):
            yield "A percentile above 17 s counts as 17 s, because the histogram ends there."


def grouped_for(query: CompareQuery, rows: Sequence[ResultRow]) -> Grouped:
    """Raises CompareRefused if there are too many series to read."""
    grouped = group(rows, query)
    if len(grouped.series) > MAX_SERIES:
        raise CompareRefused(
            "compare_too_many",
            f"{len(grouped.series)} series are too many (at most {MAX_SERIES}). Choose fewer levels of "
            f"{' or '.join(label_of(name) for name in query.series)}.",
        )
    return grouped
