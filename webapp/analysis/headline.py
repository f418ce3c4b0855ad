"""The headline of a run: the conclusion of its comparison in one sentence."""

from webapp.analysis.answer import Comparison, Conclusion, Panel, Series
from webapp.analysis.claims import HEADLINE_P


def headline(made: Comparison) -> str:
    """How the first series scales with the number of targets at once, else the largest certain difference, else what
    is known best; "" without results."""
    if scaling := _scaling(made):
        return _named(*scaling)
    if leading := _leading(made):
        panel, series = leading
        return _named(panel, series.headline)
    return _only_value(made)


def headline_conclusion(made: Comparison) -> Conclusion:
    """The claim of the headline."""
    leading = None if _scaling(made) else _leading(made)
    return leading[1].headline_conclusion if leading else Conclusion.NONE


def _scaling(made: Comparison) -> tuple[Panel, str] | None:
    return next(((panel, sentence) for panel in made.panels for sentence in panel.scaling), None)


def _leading(made: Comparison) -> tuple[Panel, Series] | None:
    return max(
        ((panel, series) for panel in made.panels for series in panel.series if series.headline),
        key=_rank,
        default=None,
    )


def _named(panel: Panel, sentence: str) -> str:
    return f"{panel.name}: {sentence}" if panel.name else sentence


def _rank(item: tuple[Panel, Series]) -> tuple[int, float]:
    """Certain differences by their size. Then the narrowest interval: the largest uncertain difference is noise."""
    series = item[1]
    against = series.against_baseline
    if against is None:
        return (0 if series.is_baseline else -1), 0.0
    ratio = against.ratio
    is_claimed = series.headline_conclusion in (Conclusion.DIFFERENT, Conclusion.MAY_BE_DRIFT)
    if against.p <= HEADLINE_P and not against.equal and is_claimed:
        return 3, max(ratio.value, 1 / ratio.value)
    if ratio.low and ratio.high:
        return (2 if against.equal else 1), -ratio.high / ratio.low
    return 0, 0.0


def _only_value(made: Comparison) -> str:
    cells = [cell for panel in made.panels for series in panel.series for cell in series.cells]
    return f"{made.metric_label} {cells[0].text} (n = {cells[0].summary.n})." if len(cells) == 1 else ""
