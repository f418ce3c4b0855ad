"""The small pictures of findings on the overview."""

from msgspec.structs import replace

from webapp.analysis.evidence import Line, Picture
from webapp.screens.overview.views import drawing

VALUES = Picture(
    metric="iops", metric_label="IOPS", x_label="Queue depth", levels=("1", "2", "4"), ordered=True, ratios=False,
    lines=(
        Line(name="a", values=(100.0, 200.0, 400.0), first=0, last=2),
        Line(name="b", values=(100.0, None, 400.0), first=None, last=None),
    ),
)  # fmt: skip


def test_a_level_without_a_value_breaks_a_line() -> None:
    made = drawing(VALUES)
    assert made
    assert [(len(curve.pieces), curve.is_evidence) for curve in made.curves] == [(1, True), (0, False)]


def test_what_no_line_can_connect_has_no_picture() -> None:
    assert drawing(replace(VALUES, ordered=False)) is None  # levels that are no places on an axis
    assert drawing(replace(VALUES, lines=VALUES.lines[1:])) is None
    one = Line(name="a", values=(100.0,), first=0, last=0)
    assert drawing(replace(VALUES, levels=("1",), lines=(one,))) is None
