"""Lines of equal value over a heat map, with labels.

Values lie at the centres of cells and are interpolated linearly between them; on a log scale, their logarithms. Where
a cell has no value, the lines end ("marching squares": C. Maple: Geometric design and space planning using the marching
squares and marching cube algorithms, 2003). Coordinates are in px of the map's cells, whose size is also in `heat.css`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

CELL_WIDTH, CELL_HEIGHT = 92, 44
MIN_ROWS = 3  # also columns
MAX_LINES = 6
NUMBER_WIDTH, NUMBER_HEIGHT = 40, 16  # of the text in a cell, and of a label
# Places of a label from its line: on it, then beside it, the nearest first.
_OFFSETS = (((0, 0),), ((0, 9), (0, -9), (22, 0), (-22, 0)), ((30, 0), (-30, 0)), ((38, 0), (-38, 0)))
Grid = Sequence[Sequence[float | None]]  # rows of values
Place = tuple[float, float]
Segment = tuple[Place, Place]


@dataclass(frozen=True)
class Contour:
    text: str  # the value with its unit
    segments: tuple[Segment, ...]
    label: Place | None  # None without room beside the line


def contours(grid: Grid, *, log: bool, written: Callable[[float], str]) -> tuple[Contour, ...]:
    """None for less than MIN_ROWS rows or columns, and for values that do not differ. Every round value between the
    lowest and the highest has its line, if cells around it have values."""
    if len(grid) < MIN_ROWS or min(map(len, grid)) < MIN_ROWS:
        return ()
    known = [value for row in grid for value in row if value is not None]
    if not known:
        return ()
    at = math.log if log else float
    scaled = [[None if value is None else at(value) for value in row] for row in grid]
    made, taken = list[Contour](), list[Place]()
    for level in levels_between(min(known), max(known), log=log):
        segments = tuple(_segments(scaled, at(level)))
        place = _label_place(segments, taken)
        taken += [place] if place else []
        if segments:
            made.append(Contour(written(level), segments, place))
    return tuple(made)


def levels_between(low: float, high: float, *, log: bool) -> list[float]:
    """At most MAX_LINES round values: 1, 2 or 5 times powers of ten, on a linear scale multiples of such a step."""
    if not high > low:
        return []
    if log:
        decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
        offered = ([factor * 10.0**power for power in decades for factor in each] for each in ((1, 2, 5), (1, 3), (1,)))
        found = [[value for value in values if low < value < high] for values in offered]
        fitting = next((values for values in found if len(values) <= MAX_LINES), found[-1])
        return fitting[:: math.ceil(len(fitting) / MAX_LINES) or 1]
    least = (high - low) / MAX_LINES
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    numbers = range(math.floor(low / step), math.ceil(high / step) + 1)
    return [number * step for number in numbers if low < number * step < high]


def _segments(grid: Grid, level: float) -> Iterator[Segment]:
    for row in range(len(grid) - 1):
        for column in range(len(grid[row]) - 1):
            places = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
            values = [value for r, c in places if (value := grid[r][c]) is not None]
            if len(values) == len(places):
                yield from _through(values, [_centre(*place) for place in places], level)


def _through(values: Sequence[float], centres: Sequence[Place], level: float) -> Iterator[Segment]:
    """The segments between four neighbouring centres, which are in order around the square."""
    crossings = [
        _between(centres[n], centres[(n + 1) % 4], (level - values[n]) / (values[(n + 1) % 4] - values[n]))
        for n in range(4)
        if (values[n] >= level) is not (values[(n + 1) % 4] >= level)
    ]
    if len(crossings) == 2:
        yield crossings[0], crossings[1]
    elif crossings:  # a saddle: the middle decides which corners are joined
        joined = (sum(values) / 4 >= level) is (values[0] >= level)
        turned = crossings if joined else [crossings[3], *crossings[:3]]
        yield turned[0], turned[1]
        yield turned[2], turned[3]


def _centre(row: int, column: int) -> Place:
    return (column + 0.5) * CELL_WIDTH, (row + 0.5) * CELL_HEIGHT


def _between(one: Place, other: Place, share: float) -> Place:
    return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])


def _label_place(segments: Sequence[Segment], taken: Sequence[Place]) -> Place | None:
    """The place on the line with the most room between the numbers in cells and other labels, or beside the line if
    there is no room on it; None without room."""
    line = [_between(*segment, share) for segment in segments for share in (0, 0.25, 0.5, 0.75, 1)]

    def room(place: Place) -> float:
        row, column = int(place[1] / CELL_HEIGHT - 0.5), int(place[0] / CELL_WIDTH - 0.5)
        numbers = [_centre(row + down, column + right) for down in (0, 1) for right in (0, 1)]
        return min(_apart(place, other) for other in (*numbers, *taken))

    for offsets in _OFFSETS if line else ():
        best = max(((x + right, y + down) for x, y in line for right, down in offsets), key=room)
        if room(best) >= 1:
            return best
    return None


def _apart(one: Place, other: Place) -> float:
    """Below 1, the texts at both places overlap; more than 2 is as good as 2."""
    return min(2.0, max(abs(one[0] - other[0]) / NUMBER_WIDTH, abs(one[1] - other[1]) / NUMBER_HEIGHT))
