"""The picture of a comparison that the server draws."""

from itertools import pairwise

from webapp.screens.explore.drawing import Axis, Chart, Line, Mark, legend_of, picture

CAPITALS = 9.1  # px of a capital at 12 px in DejaVu Sans, a wide font


def test_names_in_capitals_do_not_overlap_in_the_legend() -> None:
    axis = Axis("IOPS", 0, 1, ((0, "0"),))
    lines = tuple(Line(name, n, (Mark(1, 1),)) for n, name in enumerate(("KINGSTONDC500M", "SAMSUNG860PRO", "INTEL")))
    legend = legend_of([Chart("", axis, axis, lines)])
    for (line, place, _), (_, following, _) in pairwise(legend):
        assert place + 16 + 0.95 * CAPITALS * len(line.name) < following


def test_a_logarithmic_axis_has_points_instead_of_bars() -> None:
    """The length of a bar is its value; a logarithmic axis has no zero from which it starts."""
    x, lines = Axis("Engine", 0, 2, ((1, "psync"),)), (Line("a", 0, (Mark(1, 100.0, 90.0, 110.0),)),)
    for logarithmic in (False, True):
        y = Axis("IOPS", 10, 1000, (), logarithmic=logarithmic)
        drawn = picture("", [Chart("", x, y, lines, bars=True)], [])
        assert ('fill-opacity="0.75"' in drawn, "<circle" in drawn) == (not logarithmic, logarithmic)
