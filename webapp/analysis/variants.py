"""Rows of imports as variants: what the rows of one table have in common, apart from the load that they measured.

Explore compares levels of a factor that a person or a default question names. Published tables seldom name it: each
table is another try, and what it changed is in its caption. So a variant is a table with what varies inside it besides
the load, and variants are compared where they measured the same load. Needs no database.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, log, sqrt

from webapp.analysis.answer import Cell, Comparison, Conclusion, Level, Panel, RatioForm, Series
from webapp.analysis.dimensions import MATCHED, known_dimension, label_of
from webapp.analysis.findings.curves import MIN_FREEDOM, Noise, place_of
from webapp.analysis.question import MARGIN
from webapp.core.statistics import summarise
from webapp.plans.factors import FACTORS, FactorKind
from webapp.results.metrics import Metric
from webapp.results.reading.filter import FACT_PREFIX
from webapp.results.reading.rows import ResultRow

PATTERN, TEST, TABLE = "pattern", "test", f"{FACT_PREFIX}table"
STATED = 0.5  # share of the rows that state a load
MIN_NUMBERS, MOSTLY = 3, 0.5  # levels of a label that are numbers, so that it is an axis; their least share
_ATTRIBUTES = ("imported", TABLE, "tool", "host", "controller", "model", "serial", "layout")
_LAYOUT = f"{FACT_PREFIX}layout"

Load = tuple[str, ...]  # levels of the names of the load
Variant = tuple[str, ...]


@dataclass(frozen=True)
class Variants:
    """The rows of one metric, by variant and load."""

    rows: tuple[ResultRow, ...]  # each has the metric
    metric: Metric

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """The dimensions of the load that differ, without the pattern: stated by most rows."""
        factors = [name for name in _of_kind(FactorKind.WORKLOAD) if self._is_load(name)]
        factors = [name for place, name in enumerate(factors) if not self._follows(name, factors[:place])]
        labels = [name for name in self._labels if self._is_load(name) and self._is_axis(name)]
        return (*factors, *labels, *([TEST] if self._tests_differ([*factors, *labels]) else []))

    @cached_property
    def _labels(self) -> list[str]:
        names = dict.fromkeys(name for row in self.rows for name in row.facts)
        return [f"{FACT_PREFIX}{name}" for name in names if f"{FACT_PREFIX}{name}" not in (TABLE, _LAYOUT)]

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        return {}

    def _column(self, name: str) -> list[str]:
        """The level of each row, "" if it does not state it."""
        if name not in self._columns:
            self._columns[name] = _keys(name, self.rows)
        return self._columns[name]

    @cached_property
    def _tables(self) -> list[tuple[int, str]]:
        return [(row.imported, table) for row, table in zip(self.rows, self._column(TABLE), strict=True)]

    def _is_load(self, name: str) -> bool:
        """Whether it differs, and most rows state it."""
        stated = [key for key in self._column(name) if key]
        return len({*stated}) > 1 and len(stated) >= STATED * len(self.rows)

    def _is_axis(self, name: str) -> bool:
        known = known_dimension(name)
        levels = {level.key: level for row in self.rows if (level := known.level(row)).key}
        numbers = [level for level in levels.values() if place_of(level) is not None]
        if len(numbers) < max(MIN_NUMBERS, MOSTLY * len(levels)):
            return False
        in_table: dict[tuple[int, str], set[str]] = {}
        for table, key in zip(self._tables, self._column(name), strict=True):
            in_table.setdefault(table, set()).add(key)
        along = sum(len(in_table[table]) >= MIN_NUMBERS for table in self._tables)
        return along >= MOSTLY * len(self.rows)

    def _follows(self, name: str, others: Sequence[str]) -> bool:
        """Whether the levels of `others` tell its level inside each table, such as a size that is less with more jobs,
        or a command line."""
        levels: dict[tuple[object, ...], set[str]] = {}
        places = zip(self._tables, *map(self._column, others), strict=True)
        for place, key in zip(places, self._column(name), strict=True):
            levels.setdefault(place, set()).add(key)
        return bool(others) and all(len(each) == 1 for each in levels.values())

    def _tests_differ(self, names: Sequence[str]) -> bool:
        """Whether a table has several tests with one pattern and load, such as read and re-read."""
        places = list(zip(self._tables, map(_panel, self.rows), *map(self._column, names), strict=True))
        return len({*places}) < len({*zip(places, self._column(TEST), strict=True)})

    @cached_property
    def _others(self) -> list[str]:
        """The dimensions of variants, the import and the table first."""
        names = [*_ATTRIBUTES, *_of_kind(), *_of_kind(FactorKind.WORKLOAD), *self._labels]
        free = [name for name in dict.fromkeys(names) if name not in self.loads]
        differing = [name for name in free if len({*self._column(name)}) > 1]
        return [name for name in differing if name in _ATTRIBUTES or not self._follows_load(name)]

    def _follows_load(self, name: str) -> bool:
        levels = {*zip(self._tables, self._column(name), strict=True)}
        return len(levels) > len({table for table, _ in levels}) and self._follows(name, self.loads)

    @cached_property
    def groups(self) -> dict[Variant, dict[tuple[str, Load], list[ResultRow]]]:
        """Variant -> pattern and load -> its rows, which are repeats."""
        groups: dict[Variant, dict[tuple[str, Load], list[ResultRow]]] = {}
        variants = zip(*map(self._column, self._others), strict=True) if self._others else ((),) * len(self.rows)
        loads = zip(*map(self._column, self.loads), strict=True) if self.loads else ((),) * len(self.rows)
        for row, variant, load in zip(self.rows, variants, loads, strict=True):
            groups.setdefault(variant, {}).setdefault((_panel(row), load), []).append(row)
        return groups

    def names(self, variants: Sequence[Variant]) -> dict[Variant, str]:
        """The import if there are several, its table if it has several here, and what differs inside the table."""
        known = {variant: next(iter(self.groups[variant].values()))[0] for variant in variants}
        several_imports = len({row.imported for row in known.values()}) > 1
        tables = Counter((row.imported, _key(TABLE, row)) for row in known.values())
        of_import = Counter(imported for imported, _ in tables)
        named = {}
        for variant, row in known.items():
            table = (row.imported, _key(TABLE, row))
            parts = [row.import_title] if several_imports else []
            parts += [table[1]] if of_import[row.imported] > 1 else []
            if tables[table] > 1:
                beside = [other for other in known.values() if (other.imported, _key(TABLE, other)) == table]
                parts += [*_differing(row, beside, self._others)]
            named[variant] = ", ".join(filter(None, parts)) or table[1] or row.import_title
        return named

    @cached_property
    def noise(self) -> Noise | None:
        """Of one measurement, from the repeats of all variants: results that no stated thing tells apart."""
        squares, freedom = 0.0, 0
        for loads in self.groups.values():
            for rows in loads.values():
                logs = [log(value) for row in rows if (value := self.metric.of(row) or 0.0) > 0]
                middle = fsum(logs) / len(logs) if logs else 0.0
                squares += fsum((each - middle) ** 2 for each in logs)
                freedom += max(0, len(logs) - 1)
        if freedom < MIN_FREEDOM or not squares:
            return None
        return Noise((1 + 1 / sqrt(2 * freedom)) * sqrt(squares / freedom), of_repeats=True)

    def shared(self, variants: Sequence[Variant]) -> set[tuple[str, Load]]:
        """Loads that all of them measured."""
        return set.intersection(*(set(self.groups[variant]) for variant in variants))

    def comparison(self, variants: Sequence[Variant], names: Mapping[Variant, str]) -> Comparison:
        """Of these variants at the loads that at least two of them share: a chart for each pattern. The first one is
        the baseline."""
        counted = Counter(load for variant in variants for load in self.groups[variant])
        loads = [load for load, count in counted.items() if count > 1]
        levels = self.levels(load for _, load in loads)
        places = {key: place for place, key in enumerate(levels)}
        named = {variant: names[variant] for variant in variants}
        panels = tuple(
            Panel(key=panel, name=panel, scaling=(), series=tuple(self._series(named, panel, places)))
            for panel in dict.fromkeys(panel for panel, _ in loads)
        )
        x = self.loads[0] if len(self.loads) == 1 else MATCHED
        metric = self.metric
        return Comparison(
            metric=metric.key, metric_label=metric.label, shown_as=metric.shown_as, unit=metric.unit,
            lower_is_better=metric.lower_is_better, x=x, x_label=label_of(x), x_numeric=len(self.loads) == 1,
            series_by=("variant",), series_label="Variant", panel_label="Pattern", levels=tuple(levels.values()),
            panels=panels, baseline=names[variants[0]], ratio_as=RatioForm.RATIO, margin=MARGIN, verdict="",
            single_factor=True, differs=(), warnings=(), notes=(), results=len(self.rows),
        )  # fmt: skip

    def levels(self, loads: Iterable[Load]) -> dict[Load, Level]:
        """In their order."""
        first = {load: rows[0] for of_variant in self.groups.values() for (_, load), rows in of_variant.items()}
        known = {load: [known_dimension(name).level(first[load]) for name in self.loads] for load in loads}
        ordered = sorted(known, key=lambda load: [level.order for level in known[load]])
        if len(self.loads) == 1:
            return {load: known[load][0] for load in ordered}
        return {load: Level(" · ".join(load), " · ".join(each.text for each in known[load]), None) for load in ordered}

    def _series(self, names: Mapping[Variant, str], panel: str, places: Mapping[Load, int]) -> Iterator[Series]:
        for variant, name in names.items():
            cells = sorted(
                (self._cell(places[load], rows) for (key, load), rows in self.groups[variant].items()
                 if key == panel and load in places),
                key=lambda cell: cell.level,
            )  # fmt: skip
            if cells:
                yield Series(
                    key=name, name=name, is_baseline=variant == next(iter(names)), cells=tuple(cells), sentence="",
                    conclusion=Conclusion.NONE, headline="",
                    against_baseline=None, points=0, order="",
                )  # fmt: skip

    def _cell(self, place: int, rows: Sequence[ResultRow]) -> Cell:
        summary = summarise([value for row in rows if (value := self.metric.of(row)) is not None])
        return Cell(level=place, summary=summary, text="", spread_text="", doubts=(), against_baseline=None)


def variants_of(rows: Iterable[ResultRow], metric: Metric) -> Variants:
    return Variants(tuple(row for row in rows if metric.of(row) is not None and not row.invalid), metric)


def _key(name: str, row: ResultRow) -> str:
    """ "" if the row does not state it."""
    return _keys(name, [row])[0]


def _keys(name: str, rows: Iterable[ResultRow]) -> list[str]:
    known = known_dimension(name)  # once for all rows: it takes longer than a level
    keys = [known.level(row).key for row in rows]
    return ["" if key == "not set" else key for key in keys]


def _of_kind(kind: FactorKind | None = None) -> list[str]:
    """The factors of the load without the pattern, else all others."""
    is_load = kind is FactorKind.WORKLOAD
    return [
        name for name, factor in FACTORS.items() if (factor.kind is FactorKind.WORKLOAD) == is_load and name != PATTERN
    ]


def _panel(row: ResultRow) -> str:
    """The pattern, else the direction."""
    return str(row.point.get(PATTERN) or row.direction)


def _differing(row: ResultRow, beside: Sequence[ResultRow], names: Iterable[str]) -> Iterator[str]:
    """The texts of the levels that tell a row from others of its table, without those that another one contains: a
    layout names its drives."""
    differ = [name for name in names if len({_key(name, other) for other in beside}) > 1 and _key(name, row)]
    if "model" in differ and not row.serial:
        differ = [name for name in differ if name != "serial"]
    texts = [known_dimension(name).level(row).text for name in differ]
    yield from (text for text in texts if not any(text != other and text in other for other in texts))
