"""What the tables of an import show: each by itself, between them, between tools, and against published tables.

Each table has the comparison that Explore shows first for it. Where tables are tries of one thing, variants of the
import are compared (`analysis.variants`). A published table with the same test points is compared, too.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from math import comb, exp
from math import log as ln
from statistics import geometric_mean
from time import monotonic
from urllib.parse import urlencode

from msgspec import structs

from webapp.analysis.answer import Comparison, Finding, FindingKind, Sentence, once
from webapp.analysis.comparing import Selected, comparison_of
from webapp.analysis.dimensions import label_of
from webapp.analysis.evidence import Line, Picture, picture_of
from webapp.analysis.findings import findings
from webapp.analysis.findings.curves import change
from webapp.analysis.import_findings import Conclusions, Section, due, store
from webapp.analysis.question import CompareRefused, Pairs
from webapp.analysis.trial_metrics import metric_named
from webapp.analysis.variants import Variant, Variants, variants_of
from webapp.analysis.words import in_sentence, label_in_sentence
from webapp.core.errors import Refusal
from webapp.core.statistics import mean_of
from webapp.imports.selectors import results_of
from webapp.results.metrics import Metric
from webapp.results.models import Import, Result
from webapp.results.reading.filter import FACTOR_PREFIX
from webapp.results.reading.query import MAX_RESULTS_READ
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.screens.explore.resolve import TABLE, TABLE_LABEL, Resolved, metric_of, resolved
from webapp.screens.explore.shown import sentences_of

log = logging.getLogger(__name__)

MOST_TABLES = 40
AXES, MIN_LEVELS = ("iodepth", "numjobs"), 3
MOST_RATIOS = 6
MIN_SHARED = 3  # test points with another table
SHARED = 0.5  # of the points of the smaller one
BETWEEN = (FindingKind.STANDOUT, FindingKind.NO_EFFECT)
OF_PAIRS = (
    FindingKind.EFFECT, FindingKind.TRADE_OFF, FindingKind.INTERACTION, FindingKind.NO_EFFECT, FindingKind.CROSSING,
    FindingKind.CEILING, FindingKind.RATIOS,
)  # fmt: skip
_WAYS = ("read", "write")
ORDERS, FASTER = 50, 1.25
LATENCIES = ("latency_p99", "latency_p95", "latency_mean")

Pictured = tuple[Finding, Picture | None]


def make_due(budget_s: float) -> int:
    """Make and store the findings of imports whose findings are missing or outdated, the newest first, until the time
    is used up. Return the number of imports. A started import is finished; it has at most `MAX_RESULTS_READ` results.
    """
    until, made = monotonic() + budget_s, 0
    for imported, seal in due():
        if monotonic() >= until:
            break
        store(imported, _made(imported), seal)
        made += 1
    return made


def _made(imported: Import) -> Conclusions:
    """A fault of the rules is logged, and not repeated at each tick."""
    try:
        sections = sections_of(imported)
    except Exception:
        log.exception("the findings of import %s could not be made.", imported.number)
        return Conclusions()
    return Conclusions(sections=sections)


def sections_of(imported: Import) -> tuple[Section, ...]:
    """Those with something to say, in the order of the tables."""
    rows = read_rows(results_of(imported)[:MAX_RESULTS_READ])
    if not rows:
        return ()
    by_metric: dict[str, Variants] = {}
    sections = [
        *_tables(imported, rows, by_metric),
        *_between_tables(imported, rows),
        *_directions(imported, rows),
        *_partly_stated(imported, rows),
        *_tools(imported, rows),
        *_references(imported, rows),
    ]
    return tuple(section for section in sections if section.sentences)


# ---- each table


def _tables(imported: Import, rows: Sequence[ResultRow], by_metric: dict[str, Variants]) -> Iterator[Section]:
    first: Pairs = [("import", str(imported.number))]
    try:
        chosen = resolved(first)
    except CompareRefused:  # more series than a chart can show
        return
    main = [value for key, value in chosen.fitted.pairs if key == TABLE]
    yield from _of_question(", ".join(main), first, chosen.selected, rows, by_metric)
    yield from _along_other_axes(chosen, rows, by_metric)
    tables = dict.fromkeys(row.facts.get(TABLE_LABEL, "") for row in rows)
    for table in [each for each in tables if main and [each] != main and each][:MOST_TABLES]:
        with suppress(CompareRefused):
            pairs = [*first, (TABLE, table)]
            yield from _of_question(table, pairs, resolved(pairs).selected, rows, by_metric)


def _along_other_axes(chosen: Resolved, rows: Sequence[ResultRow], by_metric: dict[str, Variants]) -> Iterator[Section]:
    """The same comparison along each axis of load that it holds fixed, at the lowest load of its own axis."""
    pairs = chosen.fitted.pairs
    x = dict(pairs).get("x", "")
    fixed_factors = [key.removeprefix(FACTOR_PREFIX) for key, _ in pairs if key.startswith(FACTOR_PREFIX)]
    lowest = min((level for row in rows if isinstance(level := row.point.get(x), int)), default=None)
    for name in [
        fixed_factor
        for fixed_factor in dict.fromkeys(fixed_factors)
        if fixed_factor in AXES and fixed_factor != x and lowest is not None
    ]:
        if len({row.point.get(name) for row in rows}) < MIN_LEVELS:
            continue
        others = [(key, value) for key, value in pairs if key not in ("x", f"{FACTOR_PREFIX}{name}")]
        along = [*others, ("x", name), (f"{FACTOR_PREFIX}{x}", str(lowest))]
        with suppress(Refusal):
            if selected := resolved(along).selected:
                title = f"Along {label_in_sentence(name, label_of(name))}, {label_in_sentence(x, label_of(x))} {lowest}"
                yield _section(title, along, selected, rows, by_metric)


def _of_question(
    title: str, pairs: Pairs, selected: Selected | None, rows: Sequence[ResultRow], by_metric: dict[str, Variants]
) -> Iterator[Section]:
    """Of the default metric, and of a latency that most of these results have."""
    if selected is None:
        return
    yield _section(title, pairs, selected, rows, by_metric)
    for key in LATENCIES:
        latency = metric_named(key)
        if latency != selected.metric and 2 * sum(latency.of(row) is not None for row in selected.rows) >= len(
            selected.rows
        ):
            again = [*pairs, ("metric", key)]
            if of_latency := resolved(again).selected:
                yield _section(f"{title or 'All results'}: {latency.label}", again, of_latency, rows, by_metric)
            return


def _section(
    title: str, pairs: Pairs, selected: Selected, rows: Sequence[ResultRow], by_metric: dict[str, Variants]
) -> Section:
    metric = selected.metric
    if metric.key not in by_metric:
        by_metric[metric.key] = variants_of(rows, metric)
    made = comparison_of(selected, by_metric[metric.key].noise)
    sentences = (": ".join(filter(None, each)) for each in sentences_of(made))
    return Section(
        title=title or metric.label, query=urlencode(pairs), findings=made.findings, sentences=tuple(sentences),
        levels=tuple(level.text for level in made.levels),
        pictures=tuple(picture_of(made, each) for each in made.findings),
    )  # fmt: skip


def _directions(imported: Import, rows: Sequence[ResultRow]) -> Iterator[Section]:
    """Whether all writes of a table are faster than all its reads. With so many values, the order has a probability of
    at most 2 % by chance, and the means must be `FASTER` apart."""
    metric = metric_named(metric_of(rows))
    for table in dict.fromkeys(row.facts.get(TABLE_LABEL, "") for row in rows):
        table_rows = [row for row in rows if row.facts.get(TABLE_LABEL, "") == table]
        reads, writes = ([v for row in table_rows if row.direction == way and (v := metric.of(row))] for way in _WAYS)
        if not metric.is_speed or not reads or not writes or comb(len(reads) + len(writes), len(reads)) < ORDERS:
            continue
        ratio = geometric_mean(writes) / geometric_mean(reads)
        if min(writes) > max(reads) and ratio >= FASTER and len({row.test for row in table_rows}) == len(table_rows):
            sentence = (
                f"All {len(writes)} tests of writes ({metric.format(min(writes))} to {metric.format(max(writes))}) are "
                f"faster than all {len(reads)} tests of reads ({metric.format(min(reads))} to "
                f"{metric.format(max(reads))})"
            )
            made = Finding(kind=FindingKind.DIRECTION, **Sentence((sentence,)).texts, single=True, size=ln(ratio))
            picture = _picture_of_bars(metric, {"slowest write": min(writes), "fastest read": max(reads)})
            yield _of_findings(table or "Directions", f"import={imported.number}", [(made, picture)])


def _picture_of_bars(metric: Metric, values: Mapping[str, float]) -> Picture:
    return Picture(
        metric=metric.key, metric_label=metric.label, x_label="", levels=("",), ordered=False, ratios=False,
        lines=tuple(Line(name=name, values=(value,), first=0, last=0) for name, value in values.items()),
    )  # fmt: skip


def _partly_stated(imported: Import, rows: Sequence[ResultRow]) -> Iterator[Section]:
    """Of a table along one load, such as sizes: a variant whose load is not stated has no point in common with another.
    Its value against each level of the fullest other one, as measured."""
    metric = metric_named(metric_of(rows))
    for table in dict.fromkeys(row.facts.get(TABLE_LABEL, "") for row in rows):
        variants = variants_of([row for row in rows if row.facts.get(TABLE_LABEL, "") == table], metric)
        if len(variants.loads) != 1:
            continue
        stated = [variant for variant, loads in variants.groups.items() if all(load != ("",) for _, load in loads)]
        unstated = [variant for variant, loads in variants.groups.items() if all(load == ("",) for _, load in loads)]
        fullest = max(stated, key=lambda variant: len(variants.groups[variant]), default=None)
        if fullest is not None:
            made = [each for base in unstated if (each := _against_unstated(variants, fullest, base))]
            yield _of_findings(table, f"import={imported.number}", made)


def _against_unstated(variants: Variants, stated: Variant, base: Variant) -> Pictured | None:
    """None without a common pattern."""
    metric, names = variants.metric, variants.names([stated, base])
    bases = {panel: _mean(metric, rows) for (panel, _), rows in variants.groups[base].items()}
    levels = variants.levels(load for _, load in variants.groups[stated])
    ratios = {
        (levels[load].text, panel): ln(_mean(metric, variants.groups[stated][panel, load]) / bases[panel])
        for load in levels
        for panel in bases
        if (panel, load) in variants.groups[stated]
    }
    if not 0 < len(ratios) <= MOST_RATIOS:
        return None
    load = label_in_sentence(variants.loads[0], label_of(variants.loads[0]))
    several = len(bases) > 1
    words = ", ".join(
        f"{f'{panel} ' if several else ''}{change(ratio)} at {level}" for (level, panel), ratio in ratios.items()
    )
    subject = f"{names[stated]} showed in {in_sentence(metric.label)}"
    sentence = Sentence((f"{subject} against {names[base]}, whose {load} is not stated: {words}",))
    single = all(len(rows) == 1 for variant in (stated, base) for rows in variants.groups[variant].values())
    size = max(map(abs, ratios.values()))
    finding = Finding(kind=FindingKind.RATIOS, **sentence.texts, single=single, size=size, about=metric.key)
    texts = tuple(dict.fromkeys(level for level, _ in ratios))
    lines = (
        Line(
            name=panel,
            values=tuple(_factor(ratios.get((level, panel))) for level in texts),
            first=0,
            last=len(texts) - 1,
        )
        for panel in bases
    )
    picture = Picture(
        metric=metric.key, metric_label=metric.label, x_label=label_of(variants.loads[0]), levels=texts,
        ordered=len(texts) > 1, ratios=True, lines=tuple(lines),
    )  # fmt: skip
    return finding, picture


def _factor(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else exp(log_ratio)


def _mean(metric: Metric, rows: Sequence[ResultRow]) -> float:
    return mean_of([value for row in rows if (value := metric.of(row))])


# ---- between tables, tools and imports


def _between_tables(imported: Import, rows: Sequence[ResultRow]) -> Iterator[Section]:
    """Of the variants that measured the same: what stands out, and what makes no difference."""
    variants = variants_of(rows, metric_named(metric_of(rows)))
    if variants.loads or len(variants.groups) < 2:
        return
    tables = list(variants.groups)
    made = _findings_of(variants, variants.comparison(tables, variants.names(tables)), BETWEEN)
    yield _of_findings("Between the tables", f"import={imported.number}", list(made))


def _tools(imported: Import, rows: Sequence[ResultRow]) -> Iterator[Section]:
    """Tables of two tools with the same test points."""
    by_tool: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_tool.setdefault(row.tool, []).append(row)
    for first_rows, second_rows in combinations(by_tool.values(), 2):
        made = [
            (structs.replace(finding, kind=FindingKind.TOOL_EFFECT), picture)
            for finding, picture in _pairs([*first_rows, *second_rows], _is_other_tool)
        ]
        yield _of_findings(f"{first_rows[0].tool} and {second_rows[0].tool}", f"import={imported.number}", made)


def _references(imported: Import, rows: Sequence[ResultRow]) -> Iterator[Section]:
    """Other published tables with the same test points."""
    results = Result.objects.filter(origin__imported__slug__isnull=False).exclude(origin__imported=imported)
    by_import: dict[int, list[ResultRow]] = {}
    for row in read_rows(results.order_by("origin__imported", "origin__number", "direction")[:MAX_RESULTS_READ]):
        by_import.setdefault(row.imported, []).append(row)
    for number, others in by_import.items():
        made = _pairs([*rows, *others], _is_other_import)
        if made:
            query = urlencode([("import", str(imported.number)), ("import", str(number))])
            yield _of_findings(f"Against {others[0].import_title}", query, made)


def _is_other_tool(first: ResultRow, second: ResultRow) -> bool:
    return first.tool != second.tool


def _is_other_import(first: ResultRow, second: ResultRow) -> bool:
    return first.imported != second.imported and first.tool == second.tool


def _pairs(rows: Sequence[ResultRow], is_other: Callable[[ResultRow, ResultRow], bool]) -> list[Pictured]:
    """Of each variant of the first side against the fullest of the other that shares enough points."""
    metric = metric_named(metric_of(rows))
    variants = variants_of(rows, metric)
    first = {variant: next(iter(loads.values()))[0] for variant, loads in variants.groups.items()}
    compared: list[tuple[Variant, Variant]] = []
    for variant, row in first.items():
        if not is_other(rows[0], row):
            others = [
                candidate
                for candidate, other in first.items()
                if is_other(row, other) and _is_shared(variants, variant, candidate)
            ]
            fullest = max(others, key=lambda candidate: len(variants.shared([variant, candidate])), default=None)
            compared += [(fullest, variant)] if fullest else []
    names = variants.names([*dict.fromkeys(variant for pair in compared for variant in pair)])
    return [each for pair in compared for each in _findings_of(variants, variants.comparison(pair, names), OF_PAIRS)]


def _findings_of(variants: Variants, made: Comparison, kinds: Iterable[FindingKind]) -> Iterator[Pictured]:
    for finding in findings(made, variants.metric, variants.noise):
        if finding.kind in kinds:
            yield finding, picture_of(made, finding)


def _is_shared(variants: Variants, first: Variant, second: Variant) -> bool:
    shared, smaller = (
        len(variants.shared([first, second])),
        min(len(variants.groups[first]), len(variants.groups[second])),
    )
    return bool(variants.loads) and shared >= MIN_SHARED and shared >= SHARED * smaller


def _of_findings(title: str, query: str, made: Sequence[Pictured]) -> Section:
    return Section(
        title=title, query=query, findings=tuple(finding for finding, _ in made),
        sentences=tuple(once(finding).sentence for finding, _ in made), pictures=tuple(picture for _, picture in made),
    )  # fmt: skip
