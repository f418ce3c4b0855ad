"""The small pictures of findings on the overview."""

from msgspec.structs import replace as changed

from webapp.analysis.evidence import Line, Picture
from webapp.screens.overview.news import Drawing, drawing

VALUES = Picture(
    metric="iops", metric_label="IOPS", x_label="Queue depth", levels=("1", "2", "4"), ordered=True, ratios=False,
    lines=(
        Line(name="a", values=(100.0, 200.0, 400.0), first=0, last=2),
        Line(name="b", values=(100.0, None, 400.0), first=None, last=None),
    ),
)  # fmt: skip


def drawn(picture: Picture) -> Drawing:
    made = drawing(picture)
    assert made
    return made


def test_a_level_without_a_value_breaks_a_line_and_a_single_value_is_a_dot() -> None:
    whole, broken = drawn(VALUES).curves
    assert (len(whole.pieces), whole.dots, whole.is_evidence) == (1, (), True)
    assert (broken.pieces, len(broken.dots), broken.is_evidence) == ((), 2, False)


def test_levels_that_are_no_places_on_an_axis_are_not_connected() -> None:
    whole, _ = drawn(changed(VALUES, ordered=False)).curves
    assert whole.pieces == ()
    assert [x for x, _ in whole.dots] == ["5.0", "118.0", "231.0"]


def test_one_level_is_drawn() -> None:
    one = changed(VALUES, levels=("1",), lines=(Line(name="a", values=(100.0,), first=0, last=0),))
    assert [len(curve.dots) for curve in drawn(one).curves] == [1]
