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
    """Tables of one truth. `planted` is what they show; `allowed` may be said besides. Ratios without a claim always
    may."""

    name: str
    shapes: tuple[Shape, ...]  # of the series, in turn; the last one of all further series
    planted: FindingKind | None = None
    allowed: frozenset[FindingKind] = frozenset()
    x: str = "iodepth"
    series: int = 2
    words: tuple[str, ...] = ()  # levels of x that are no numbers; () for doublings
    levels: int = 0  # fixed number of levels; 0 for those of the combination

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


def level(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return np.full_like(places, 10.0), None


def shifted(*logs: float) -> Shape:
    """ln(value) beside `level`, at each level in turn."""

    def shape(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
        return 10 + np.resize(np.array(logs), len(places)), None

    return shape


def parting(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
    """Beside `level`, twice as fast at the last level."""
    return 10 + math.log(2) * places / places[-1], None


def at_once_linear(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return 10 + np.log(places + 1), None


def at_once_shared(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, None]:
    return np.full_like(places, 10.0), None


def at_once_capped(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, int]:
    return 10 + np.log(np.minimum(places + 1, 2.4)), 2


def amdahl(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    """4 to 12 % of the work is not shared."""
    return 10 + np.log((places + 1) / (1 + chance.uniform(0.04, 0.12) * places)), None


def universal(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    """Highest inside: each pair costs something, too."""
    counts, peak = places + 1, 0.7 * (places[-1] + 1)
    contention = chance.uniform(0.05, 0.10)
    coherency = (1 - contention) / peak**2
    return 10 + np.log(counts / (1 + contention * places + coherency * counts * places)), None


def by_a_power(places: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, None]:
    """Each doubling brings the same share: neither law."""
    return 10 + chance.uniform(0.3, 0.5) * np.log(places + 1), None


def falling_together(places: np.ndarray, _chance: np.random.Generator) -> tuple[np.ndarray, int]:
    """Each level is slower than the one before, and one of them far slower."""
    at = len(places) // 2
    return 12 - 0.2 * places - math.log(4) * (places >= at), at


LEVEL_OFF = frozenset({K.SATURATION, K.CEILING, K.NOTHING_MORE})
APART = frozenset({K.EFFECT, K.INTERACTION, K.CROSSING})  # of two series that differ
READ_WRITE, ONE = ("read", "write"), ("one",)
NOTHING = (
    Family("flat", (flat,), allowed=frozenset({K.EFFECT})),
    Family("rising", (rising,), allowed=frozenset({K.EFFECT, K.INTERACTION})),
    Family("bending", (bending,), allowed=LEVEL_OFF | {K.EFFECT, K.INTERACTION}),
    Family("A/A: one knee, measured twice", (knee,), allowed=LEVEL_OFF | {K.NO_EFFECT}),
    Family("A/A: reads and writes", (level,), allowed=frozenset({K.NO_EFFECT}), words=READ_WRITE),
    Family("A/A: 24 variants", (level,), allowed=frozenset({K.NO_EFFECT}), words=ONE, series=24),
    Family("A/A: three levels", (level,), allowed=frozenset({K.NO_EFFECT}), x="fact.size", levels=3),
    Family("15 % apart", (level, shifted(math.log(1.15))), allowed=frozenset({K.EFFECT}), words=READ_WRITE),
    Family("at once, linear", (at_once_linear,), allowed=frozenset({K.NO_EFFECT, K.LINEAR}), x="at_once", levels=5),
    Family(
        "at once, +15 %",
        (shifted(0.0, math.log(1.15)),),
        allowed=frozenset({K.NO_EFFECT, K.EFFECT}),
        x="at_once",
        levels=2,
    ),
    Family("at once, by a power", (by_a_power,), allowed=LEVEL_OFF | APART | {K.NO_EFFECT}, x="at_once", levels=8),
)
PLANTED = (
    Family("knee", (knee,), K.SATURATION, LEVEL_OFF | APART),
    Family("common ceiling", (capped,), K.CEILING, LEVEL_OFF | APART),
    Family("outlier ×2", (with_outlier, rising), K.OUTLIER, APART | {K.GAP}),
    Family("gap ×0.2", (with_gap, rising), K.GAP, APART | {K.OUTLIER}),
    Family("cliff ×0.25", (with_cliff,), K.CLIFF, APART | {K.TREND, K.SATURATION, K.CEILING}, x="size"),
    Family("crossing 20 %", (fast_start, slow_start), K.CROSSING, APART),
    Family("fall by 29 %", (steady_fall,), K.TREND, frozenset({K.NO_EFFECT}), x="size"),
    Family("reads +40 %", (level, shifted(math.log(1.4), 0.0)), K.EFFECT, words=READ_WRITE),
    Family(
        "reads ×2, writes −30 %",
        (level, shifted(math.log(2), math.log(0.7))),
        K.TRADE_OFF,
        frozenset({K.EFFECT}),
        words=READ_WRITE,
    ),
    Family("words of x ×1.8", (shifted(math.log(1.8), 0.0),), K.EFFECT, frozenset({K.NO_EFFECT}), words=("on", "off")),
    Family("equal", (level,), K.NO_EFFECT, words=READ_WRITE),
    Family("up to ×2 apart", (level, parting), K.INTERACTION, APART | {K.TREND}, x="size"),
    Family("one of 24 ×2", (shifted(math.log(2)), level), K.STANDOUT, frozenset({K.NO_EFFECT}), words=ONE, series=24),
    Family("capped at 2.4", (at_once_capped,), K.CAPPED, LEVEL_OFF | {K.NO_EFFECT}, x="at_once", levels=5),
    Family("shared limit", (at_once_shared,), K.SHARED_LIMIT, frozenset({K.NO_EFFECT}), x="at_once", levels=2),
    Family("Amdahl", (amdahl,), K.SCALING, APART | LEVEL_OFF | {K.NO_EFFECT, K.LINEAR}, x="at_once", levels=12),
    Family("universal law", (universal,), K.SCALING, APART | LEVEL_OFF | {K.NO_EFFECT, K.PEAK}, x="at_once", levels=12),
    Family("fall ×0.2 of all", (falling_together,), K.CLIFF, frozenset({K.TREND, K.NO_EFFECT}), x="size", series=3),
)
FAMILIES = {family.name: family for family in (*NOTHING, *PLANTED)}


@dataclass(frozen=True)
class Table:
    comparison: Comparison
    at: tuple[int | None, ...]  # of each series: where something happens


def table(family: Family, chance: np.random.Generator, *, levels: int, noise: float, repeats: int) -> Table:
    """Shapes without a random part are alike in all series; `A/A` families repeat the first series."""
    count = len(family.words) or family.levels or levels
    places, made = np.arange(count, dtype=float), list[tuple[np.ndarray, int | None]]()
    for number in range(family.series):
        in_turn = number % len(family.shapes) if family.series == 2 else min(number, len(family.shapes) - 1)
        is_copy = family.name.startswith("A/A") and made
        made.append(made[0] if is_copy else family.shapes[in_turn](places, chance))
    rows = [logs[:, None] + chance.normal(0, noise, (count, repeats)) for logs, _ in made]
    return Table(_comparison(family, [np.exp(each) for each in rows]), tuple(at for _, at in made))


def _comparison(family: Family, values: Sequence[np.ndarray]) -> Comparison:
    counts = [n + 1 if family.x == "at_once" else 2**n for n in range(len(values[0]))]
    levels = tuple(Level(str(n), str(n), float(n)) for n in counts)
    if family.words:
        levels = tuple(Level(word, word, None) for word in family.words)
    series = tuple(
        Series(
            key=f"drive {number}", name=f"drive {number}", is_baseline=not number,
            cells=tuple(_cell(place, [float(value) for value in each]) for place, each in enumerate(own)),
            sentence="", conclusion=Conclusion.NONE, headline="",
            against_baseline=None, points=0,
            order="",
        )
        for number, own in enumerate(values)
    )  # fmt: skip
    return Comparison(
        metric="iops", metric_label="IOPS", shown_as="iops", unit="1/s", lower_is_better=False, x=family.x,
        x_label=family.x.removeprefix("fact."), x_numeric=not family.words, series_by=("variant",),
        series_label="Variant", panel_label="", levels=levels,
        panels=(Panel(key="", name="", scaling=(), series=series),), baseline="drive 0", ratio_as=RatioForm.PERCENT,
        margin=0.05, verdict="", single_factor=True, differs=(), warnings=(), notes=(), results=0,
    )  # fmt: skip


def _cell(place: int, values: Sequence[float]) -> Cell:
    return Cell(
        level=place, summary=summarise(values), text="", spread_text="", doubts=(), against_baseline=None
    )  # fmt: skip
