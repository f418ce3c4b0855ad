"""The picture of a comparison that the server draws."""

from itertools import pairwise

from webapp.pictures.axes import Axis
from webapp.pictures.charts import Chart, Kind, Line, Mark, placed_names
from webapp.pictures.drawing import Drawing, picture
from webapp.pictures.elements import SHAPES

CAPITALS = 9.1  # px of a capital at 12 px in DejaVu Sans, a wide font


def test_names_in_capitals_do_not_overlap_in_the_legend() -> None:
    axis = Axis(low=0, high=1, label="IOPS", ticks=((0, "0"),))
    lines = tuple(Line(name, n, (Mark(1, 1),)) for n, name in enumerate(("KINGSTONDC500M", "SAMSUNG860PRO", "INTEL")))
    legend = placed_names([Chart("", axis, axis, lines)])
    for (line, place, _), (_, following, _) in pairwise(legend):
        assert place + 20 + 0.95 * CAPITALS * len(line.name) < following


def test_a_logarithmic_axis_has_points_instead_of_bars() -> None:
    """The length of a bar is its value; a logarithmic axis has no zero from which it starts."""
    x, lines = (
        Axis(low=0, high=2, label="Engine", ticks=((1, "psync"),)),
        (Line("a", 0, (Mark(1, 100.0, 90.0, 110.0),)),),
    )
    for logarithmic in (False, True):
        y = Axis(low=10, high=1000, logarithmic=logarithmic, label="IOPS", ticks=())
        drawn = picture(Drawing("", [Chart("", x, y, lines, Kind.BARS)]), "")
        assert ('fill-opacity="0.75"' in drawn, drawn.count(SHAPES[0]) == 2) == (not logarithmic, logarithmic)
