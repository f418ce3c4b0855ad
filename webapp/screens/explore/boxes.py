"""The box of a few repeats, as `frontend/src/features/repeatsChart.ts` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

MIN_REPEATS_OF_BOX = 5  # a box of fewer repeats would show quartiles that are only guesses


@dataclass(frozen=True)
class Box:
    median: float
    lower: float  # quartiles
    upper: float
    low: float  # whiskers
    high: float


def box_of(values: Sequence[float]) -> Box:
    """Quartiles between the two nearest values (type 7 of Hyndman and Fan 1996); whiskers to the last value within 1.5
    times the height of the box (Tukey 1977)."""
    lower, _, upper = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    reach = 1.5 * (upper - lower)
    inside = [value for value in values if lower - reach <= value <= upper + reach]
    return Box(median(values), lower, upper, min(inside), max(inside))
