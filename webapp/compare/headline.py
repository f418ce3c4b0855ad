"""The headline of a run: the conclusion of its comparison in one sentence."""

from webapp.compare.claims import HEADLINE_P
from webapp.compare.comparison import Comparison, Panel, Series


def headline(made: Comparison) -> str:
    """How the first series scales with the number of targets at once, else the largest certain difference, else what
    is known best; "" without results."""
    scaling = [(panel, sentence) for panel in made.panels for sentence in panel.scaling]
    if scaling:
        return _named(*scaling[0])
    said = [(panel, series) for panel in made.panels for series in panel.series if series.headline]
    if said:
        panel, series = max(said, key=_rank)
        return _named(panel, series.headline)
    return _only_value(made)


def _named(panel: Panel, sentence: str) -> str:
    return f"{panel.name}: {sentence}" if panel.name else sentence


def _rank(item: tuple[Panel, Series]) -> tuple[int, float]:
    """Certain differences by their size. Then the narrowest interval: the largest uncertain difference is noise."""
    series = item[1]
    against = series.against_baseline
    if against is None:
        return (0 if series.is_baseline else -1), 0.0
    ratio = against.ratio
    if against.p <= HEADLINE_P and not against.equal and series.headline == series.sentence:
        return 3, max(ratio.value, 1 / ratio.value)
    if ratio.low and ratio.high:
        return (2 if against.equal else 1), -ratio.high / ratio.low
    return 0, 0.0


def _only_value(made: Comparison) -> str:
    cells = [cell for panel in made.panels for series in panel.series for cell in series.cells]
    return f"{made.metric_label} {cells[0].text} (n = {cells[0].summary.n})." if len(cells) == 1 else ""
