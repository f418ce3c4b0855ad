"""The picture of a comparison that the server draws."""

from itertools import pairwise

from webapp.screens.explore.drawing import Axis, Chart, Line, Mark, legend_of

CAPITALS = 9.1  # px of a capital at 12 px in DejaVu Sans, a wide font


def test_names_in_capitals_do_not_overlap_in_the_legend() -> None:
    axis = Axis("IOPS", 0, 1, ((0, "0"),))
    lines = tuple(Line(name, n, (Mark(1, 1),)) for n, name in enumerate(("KINGSTONDC500M", "SAMSUNG860PRO", "INTEL")))
    legend = legend_of([Chart("", axis, axis, lines)])
    for (line, place, _), (_, following, _) in pairwise(legend):
        assert place + 16 + 0.95 * CAPITALS * len(line.name) < following
