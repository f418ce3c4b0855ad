"""Lines of equal value over a heat map. Expected places are worked out by hand."""

import pytest

from webapp.core.formatting import significant
from webapp.screens.explore.heat import (
    CELL_HEIGHT,
    CELL_WIDTH,
    NUMBER_HEIGHT,
    NUMBER_WIDTH,
    Grid,
    contours,
    levels_between,
)


@pytest.mark.parametrize(
    ("low", "high", "log", "levels"),
    [
        (0.0, 10.0, False, [2, 4, 6, 8]),
        (95.0, 130.0, False, [100, 110, 120]),
        (90.0, 2000.0, True, [100, 200, 500, 1000]),
        (1.0, 2e6, True, [10, 100, 1e3, 1e4, 1e5, 1e6]),
        (5.0, 5.0, False, []),
    ],
)
def test_levels_are_round_and_few(low: float, high: float, log: bool, levels: list[float]) -> None:
    assert levels_between(low, high, log=log) == pytest.approx(levels)


def test_a_line_lies_where_the_value_is_between_the_centres_of_cells() -> None:
    slope = [[1.0, 2.0, 4.0]] * 3
    found = {one.text: one for one in contours(slope, log=False, written=significant)}
    x_of = {text: {round(x, 6) for segment in one.segments for x, _ in segment} for text, one in found.items()}
    assert x_of["1.50"] == {CELL_WIDTH * 1.0}  # half way from the first centre to the second
    assert x_of["3.00"] == {CELL_WIDTH * 2.0}
    ends = sorted(y for segment in found["3.00"].segments for _, y in segment)
    assert (ends[0], ends[-1]) == (CELL_HEIGHT * 0.5, CELL_HEIGHT * 2.5)


def test_on_a_log_scale_the_middle_is_the_geometric_mean() -> None:
    found = {one.text: one for one in contours([[10.0, 1000.0, 1e5]] * 3, log=True, written=significant)}
    assert {round(x, 6) for segment in found["100"].segments for x, _ in segment} == {CELL_WIDTH * 1.0}


def test_lines_end_at_cells_without_a_value() -> None:
    gap: Grid = [[1.0, 3.0, 1.0], [1.0, 3.0, None], [1.0, 3.0, 1.0]]
    (line,) = [one for one in contours(gap, log=False, written=significant) if one.text == "2.00"]
    assert {round(x, 6) for segment in line.segments for x, _ in segment} == {CELL_WIDTH * 1.0}


def test_the_lines_of_a_saddle_do_not_cross() -> None:
    saddle = [[0.0, 4.0, 0.0], [4.0, 0.0, 4.0], [0.0, 4.0, 0.0]]
    (line,) = [one for one in contours(saddle, log=False, written=significant) if one.text == "2.00"]
    assert len(line.segments) == 8
    assert all(one[0] != other[0] and one[1] != other[1] for one, other in line.segments)  # each cuts off a corner


def test_a_line_too_short_for_its_label_has_it_beside_the_line() -> None:
    corner = [[0.0, 4.0, 4.0], [4.0, 4.0, 4.0], [4.0, 4.0, 4.0]]
    found = contours(corner, log=False, written=significant)
    assert [one.text for one in found] == ["1.00", "2.00", "3.00"]
    label = found[0].label
    assert label
    centres = [((column + 0.5) * CELL_WIDTH, (row + 0.5) * CELL_HEIGHT) for row in range(3) for column in range(3)]
    assert all(abs(label[0] - x) >= NUMBER_WIDTH or abs(label[1] - y) >= NUMBER_HEIGHT for x, y in centres)
    ends = [end for segment in found[0].segments for end in segment]
    assert min(max(abs(label[0] - x), abs(label[1] - y)) for x, y in ends) <= NUMBER_WIDTH / 2 + 2


def test_a_line_without_any_room_for_its_label_is_drawn_without_it() -> None:
    steep = [[0.0, 100.0, 0.0], [100.0, 0.0, 100.0], [0.0, 100.0, 0.0]]
    found = contours(steep, log=False, written=significant)
    assert [one.text for one in found] == ["20.0", "40.0", "60.0", "80.0"]
    assert all(one.segments for one in found)


def test_small_maps_have_no_lines() -> None:
    assert contours([[1.0, 2.0, 3.0]] * 2, log=False, written=significant) == ()
    assert contours([[1.0, 2.0]] * 3, log=False, written=significant) == ()
    assert contours([[None] * 3] * 3, log=False, written=significant) == ()
