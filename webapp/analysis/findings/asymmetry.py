"""Things that should be equal and are not: drives of one model, slots, backplanes, hosts with equal hardware.

Series are equals if their drives have one model and size, and their hosts one processor and as much memory. One of two,
or the smaller part of more, stands apart if its difference from the baseline is claimed (`analysis.claims`, corrected
over the page) and beyond the margin, while all others are within the margin of each other. If the baseline itself
stands apart, all others differ from it for certain, in one direction. Nothing is said if a factor of the test points
differs, too, or if there is no majority.

The sentence names the recorded facts in which those that stand apart differ from all others, such as the firmware, the
link or the NUMA node. That they go together is no proof of a cause.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, log1p

from webapp.analysis.answer import BaselineRatio, DifferenceKind, Finding, FindingKind, Mark, RatioForm
from webapp.analysis.claims import listed
from webapp.analysis.dimensions import PRODUCTS, VOLATILE, label_of_fact
from webapp.analysis.findings.curves import Charts
from webapp.analysis.words import interval, shown
from webapp.core.statistics import Ratio

MODEL = "device.model"
SPECIFICATION = (
    MODEL, "device.size_bytes", "device.kind", "target.kind", "layout", "cpu.model", "cpu.threads", "memory.bytes",
    "hypervisor",
)  # fmt: skip
EQUALS = frozenset({"target", "host", "serial", "fact.slot", "fact.backplane"})  # as series
_NAMES = frozenset({
    "host", "target", "device", "device.serial", "device.stable_id", "device.below", "filename", "folder",
    "slot", "backplane", "table",
})  # fmt: skip


def are_equals(series_by: Sequence[str]) -> bool:
    """Whether series by these dimensions may be things that should be equal."""
    return len(series_by) == 1 and series_by[0] in EQUALS


@dataclass(frozen=True)
class _Apart:
    """Series that stand apart from the others in a chart, with their ratio to these."""

    panel: int
    keys: frozenset[str]
    others: frozenset[str]
    ratio: Ratio
    n: int  # repeats


def find(charts: Charts) -> Iterator[Finding]:
    comparison = charts.comparison
    if not are_equals(comparison.series_by) or _has_other_factors(charts):
        return
    equals: dict[tuple[str, ...], set[str]] = {}
    for key, facts in charts.equipment.items():
        if facts.get(MODEL):
            equals.setdefault(tuple(facts.get(name, "") for name in SPECIFICATION), set()).add(key)
    for keys in equals.values():
        parts = [part for index in range(len(comparison.panels)) if (part := _standouts(charts, index, keys))]
        for keys_of_part in dict.fromkeys(part.keys for part in parts):
            yield _finding(charts, [part for part in parts if part.keys == keys_of_part])


def _has_other_factors(charts: Charts) -> bool:
    recorded = {name for facts in charts.equipment.values() for name in facts} | PRODUCTS
    confounding = {each.name for each in charts.comparison.differs if each.kind is DifferenceKind.CONFOUNDED}
    return not confounding <= recorded


def _standouts(charts: Charts, index: int, equals: set[str]) -> _Apart | None:
    panel, margin = charts.comparison.panels[index], log1p(charts.comparison.margin)
    baseline = next((series.key for series in panel.series if series.is_baseline), "")
    ratios = {
        series.key: series.against_baseline
        for series in panel.series
        if series.key in equals and series.against_baseline
    }
    if baseline not in equals or not ratios:
        return None
    standouts = {key: ratio for key, ratio in ratios.items() if ratio.better is not None and abs(_log(ratio)) > margin}
    alike = {key: ratio for key, ratio in ratios.items() if key not in standouts}
    if not standouts or len({ratio.better for ratio in standouts.values()}) > 1:
        return None
    if alike:
        has_majority = len(standouts) <= len(alike) and _spread([0.0, *map(_log, alike.values())]) <= margin
        return _made(index, standouts, {baseline, *alike}, _span(standouts)) if has_majority else None
    ratio = _span(standouts)
    if len(standouts) == 1 and (ratio.value > 1) is charts.metric.lower_is_better:  # of two, the slower one is named
        return _made(index, standouts, {baseline}, ratio)
    if _spread([*map(_log, standouts.values())]) > margin:
        return None
    inverse = Ratio(1 / ratio.value, 1 / (ratio.high or 1.0), 1 / (ratio.low or 1.0))
    return replace(_made(index, standouts, set(standouts), inverse), keys=frozenset({baseline}))


def _made(index: int, standouts: Mapping[str, BaselineRatio], others: set[str], ratio: Ratio) -> _Apart:
    return _Apart(index, frozenset(standouts), frozenset(others), ratio, min(part.n for part in standouts.values()))


def _log(against: BaselineRatio) -> float:
    return log(against.ratio.value)


def _spread(logs: Sequence[float]) -> float:
    return max(logs) - min(logs)


def _span(ratios: Mapping[str, BaselineRatio]) -> Ratio:
    """The ratio that is nearest to 1, and an interval that contains those of all. Claimed ratios have intervals."""
    nearest = min(ratios.values(), key=lambda ratio: abs(_log(ratio))).ratio
    lows, highs = zip(*((ratio.ratio.low or 0.0, ratio.ratio.high or 0.0) for ratio in ratios.values()), strict=True)
    return Ratio(nearest.value, min(lows), max(highs))


def _finding(charts: Charts, parts: Sequence[_Apart]) -> Finding:
    comparison, standouts = charts.comparison, parts[0].keys
    names = {series.key: series.name for panel in comparison.panels for series in panel.series}
    others = [key for key in names if any(key in part.others for part in parts)]
    odd, model = [names[key] for key in names if key in standouts], charts.equipment[others[0]][MODEL]
    if len(others) == 1:
        who = f"{odd[0]} differs from {names[others[0]]} (both {model})"
    else:
        who = f"{listed(odd)} stand{'s' if len(odd) == 1 else ''} apart from {len(others)} others (all {model})"
    form = RatioForm.RATIO if max(abs(log(part.ratio.value)) for part in parts) >= log(2) else RatioForm.PERCENT
    words = [
        f"{charts.panel_name(part.panel)} {shown(part.ratio.value, form)} ({interval(part.ratio, form)})".strip()
        for part in parts
    ]
    sentence = f"{who}: {listed(words)} in {charts.subject}. {_facts(charts, standouts, others)}."
    marks = [
        Mark(panel=part.panel, series=place, first=series.cells[0].level, last=series.cells[-1].level)
        for part in parts
        for place, series in enumerate(comparison.panels[part.panel].series)
        if series.key in standouts
    ]
    return charts.stated(
        FindingKind.ASYMMETRY, sentence, [part.n for part in parts], tuple(marks),
        size=max(abs(log(part.ratio.value)) for part in parts), about=f"{charts.metric.key}: {', '.join(odd)}",
    )  # fmt: skip


def _facts(charts: Charts, standouts: frozenset[str], others: Sequence[str]) -> str:
    """`Firmware (2 against 1) and NUMA node (1 against 0) differ`"""
    differing = []
    for name in sorted({name for facts in charts.equipment.values() for name in facts} - _NAMES - VOLATILE):
        mine, theirs = ({charts.equipment[key].get(name) for key in keys} for keys in (standouts, others))
        if len(mine) == len(theirs) == 1 and mine != theirs:
            values = " against ".join(text or "unknown" for text in (*mine, *theirs))
            differing.append(f"{label_of_fact(name)} ({values})")
    if not differing:
        return "No recorded fact differs with it"
    return f"{listed(differing)} differ{'s' if len(differing) == 1 else ''}"
