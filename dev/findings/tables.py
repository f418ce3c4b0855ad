"""Generated tables with a known truth: curves of a known shape, with noise, as the comparison of a page."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from webapp.analysis.answer import Cell, Comparison, Conclusion, FindingKind, Level, Panel, RatioForm, Series
from webapp.core.statistics import summarise

K = FindingKind
Shape = Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, int | None]]
"""Places on the axis (0, 1, 2 …, in doublings) -> ln(value) at each, and the place where something happens."""


@dataclass(frozen=True)
class Family:
    """Tables of one truth. `planted` is what they show; `allowed` may be said besides."""

    name: str
    shapes: tuple[Shape, ...]  # of the series, in turn
    planted: FindingKind | None = None
    allowed: frozenset[FindingKind] = frozenset()

    def __str__(self) -> str:
        return self.name


def flat(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return np.zeros_like(places) + chance.uniform(5, 12), None


def rising(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return 8 + places * chance.uniform(0.25, 0.6), None


def bending(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    """Without a knee: each doubling brings a little less than the one before, and never nothing."""
    share = chance.uniform(0.8, 0.9)
    return 8 + 0.6 * (1 - share**places) / (1 - share), None


def knee(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, int]:
    """A drive with a limit: each doubling brings 40 to 100 % until the value is capped. At least three levels are
    capped."""
    at = int(chance.integers(2, len(places) - 2))
    step = chance.uniform(math.log(1.4), math.log(2))
    return 8 + step * np.minimum(places, at - chance.uniform(0, 0.5)), at


def capped(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, int]:
    """Limited at one value, from wherever it starts."""
    at = int(chance.integers(2, len(places) - 2))
    step = chance.uniform(math.log(1.4), math.log(2))
    return 12 + step * (np.minimum(places, at) - at), at


def with_outlier(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, int]:
    logs, _ = rising(places, chance)
    at = int(chance.integers(1, len(places) - 1))
    logs[at] += chance.choice((-1, 1)) * math.log(2)
    return logs, at


def with_gap(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, int]:
    logs, _ = rising(places, chance)
    at = int(chance.integers(1, len(places) - 3))
    logs[at : at + 2] -= math.log(5)
    return logs, at


def with_cliff(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, int]:
    """A working set that leaves a cache."""
    at = int(chance.integers(2, len(places) - 1))
    return 12 - math.log(4) * (places >= at) - 0.02 * places, at


def steady_fall(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return 12 - math.log(1.4) * places / places[-1], None


def slow_start(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, int]:
    at = len(places) // 2
    return 8 + 0.3 * places + 0.2 * np.tanh((places - at + 0.5) * 2), at


def fast_start(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, int]:
    return 8 + 0.3 * places, len(places) // 2


LEVEL_OFF = frozenset({K.SATURATION, K.CEILING, K.NOTHING_MORE})
NOTHING = (
    Family("flat", (flat,)),
    Family("rising", (rising,)),
    Family("bending", (bending,), allowed=LEVEL_OFF),
    Family("A/A: one knee, measured twice", (knee,), allowed=LEVEL_OFF),
)
PLANTED = (
    Family("knee", (knee,), K.SATURATION, LEVEL_OFF | {K.CROSSING}),
    Family("common ceiling", (capped,), K.CEILING, LEVEL_OFF | {K.CROSSING}),
    Family("outlier ×2", (with_outlier, rising), K.OUTLIER, frozenset({K.CROSSING, K.GAP})),
    Family("gap ×0.2", (with_gap, rising), K.GAP, frozenset({K.OUTLIER, K.CROSSING})),
    Family("cliff ×0.25", (with_cliff,), K.CLIFF, frozenset({K.TREND, K.CROSSING, K.SATURATION})),
    Family("crossing 20 %", (fast_start, slow_start), K.CROSSING),
    Family("fall by 29 %", (steady_fall,), K.TREND),
)
FAMILIES = {family.name: family for family in (*NOTHING, *PLANTED)}


@dataclass(frozen=True)
class Table:
    comparison: Comparison
    at: tuple[int | None, ...]  # of each series: where something happens


def table(
    family: Family, chance: np.random.Generator, *, levels: int, series: int, noise: float, repeats: int
) -> Table:
    """Shapes without a random part are alike in all series; `A/A` families repeat the first series."""
    places, made = np.arange(levels, dtype=float), list[tuple[np.ndarray, int | None]]()
    for number in range(series):
        shape = family.shapes[number % len(family.shapes)]
        is_copy = family.name.startswith("A/A") and made
        made.append(made[0] if is_copy else shape(places, chance))
    rows = [logs[:, None] + chance.normal(0, noise, (levels, repeats)) for logs, _ in made]
    x = "size" if family.planted in (K.CLIFF, K.TREND) else "iodepth"
    return Table(_comparison(x, [np.exp(each) for each in rows]), tuple(at for _, at in made))


def _comparison(x: str, values: Sequence[np.ndarray]) -> Comparison:
    levels = tuple(Level(str(2**n), str(2**n), float(2**n)) for n in range(len(values[0])))
    series = tuple(
        Series(
            key=f"drive {number}", name=f"drive {number}", is_baseline=not number,
            cells=tuple(_cell(level, [float(value) for value in each]) for level, each in enumerate(own)),
            sentence="", conclusion=Conclusion.NONE, headline="",
            headline_conclusion=Conclusion.NONE, against_baseline=None, points=0,
            order="",
        )
        for number, own in enumerate(values)
    )  # fmt: skip
    return Comparison(
        metric="iops", metric_label="IOPS", shown_as="iops", unit="1/s", lower_is_better=False, x=x, x_label=x,
        x_numeric=True, series_by=("model",), series_label="Drive model", panel_label="", levels=levels,
        panels=(Panel(key="", name="", scaling=(), series=series),), baseline="drive 0", ratio_as=RatioForm.PERCENT,
        margin=0.05, verdict="", single_factor=True, differs=(), warnings=(), notes=(), results=0,
    )  # fmt: skip


def _cell(level: int, values: Sequence[float]) -> Cell:
    return Cell(
        level=level, summary=summarise(values), text="", spread_text="", doubts=(), against_baseline=None
    )  # fmt: skip
