"""The series that the others are compared with: the chosen one; otherwise the base of changes, streams alone, the
settings that the hosts had before the runs, then a published reference, then the first series."""

from collections.abc import Collection, Iterable, Mapping

from webapp.compare.comparison import Level
from webapp.compare.grouping import Grouped
from webapp.compare.query import CompareQuery, CompareRefused
from webapp.plans.factors import BASE, CHANGE, FACTORS, OTHERS, FactorKind
from webapp.plans.streams import ALONE, OF_TRIALS
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import SettingChange


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


def _default(query: CompareQuery, grouped: Grouped) -> Level:
    """The first of the series with the fewest objections."""
    settings = [name for name in query.series if name in FACTORS and FACTORS[name].kind is FactorKind.SETTING]
    rows: dict[str, list[ResultRow]] = {}
    for (_, key, _), in_cell in grouped.cells.items():
        rows.setdefault(key, []).extend(in_cell)
    before = _values_before(settings, {row.run for own in rows.values() for row in own}) if settings else {}

    def objections(series: Level) -> tuple[bool, bool, bool, bool]:
        own = rows[series.key]
        changed = CHANGE in query.series and own[0].point.get(CHANGE) != BASE
        beside = bool(OF_TRIALS.intersection(query.series)) and own[0].point.get(OTHERS, ALONE) != ALONE
        return changed, beside, not _is_unchanged(own[0], settings, before), not all(row.reference for row in own)

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
    found: dict[str, set[str]] = {}
    for (name, *_), value in first.items():
        found.setdefault(name, set()).add(value)
    return {name: values for name, values in found.items() if len(values) == 1}
