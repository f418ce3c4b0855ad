"""Values with a known truth, and the findings in them."""

import math
from collections.abc import Sequence

from webapp.analysis.answer import (
    Cell,
    Comparison,
    Conclusion,
    Finding,
    Level,
    Panel,
    RatioForm,
    Series,
)
from webapp.analysis.findings import findings
from webapp.core.statistics import summarise
from webapp.results.metrics import METRICS

Values = Sequence[float | Sequence[float]]  # of one series: a value or its repeats for each level


def made(
    levels: Sequence[float | str], panels: dict[str, dict[str, Values]], *, x: str = "iodepth", by: str = "model",
    metric: str = "iops",
) -> Comparison:  # fmt: skip
    """The comparison of a page. `by`: names of the dimensions of the series, whose keys are their levels."""
    return Comparison(
        metric=metric, metric_label=METRICS[metric].label, shown_as=METRICS[metric].shown_as,
        unit=METRICS[metric].unit, lower_is_better=METRICS[metric].lower_is_better, x=x, x_label="Queue depth",
        x_numeric=True, series_by=tuple(by.split(",")), series_label="", panel_label="",
        levels=tuple(
            Level(str(each), str(each), float(each) if isinstance(each, (int, float)) else None) for each in levels
        ),
        panels=tuple(
            Panel(key=name, name=name, scaling=(), series=tuple(_series(*one) for one in series.items()))
            for name, series in panels.items()
        ),
        baseline=next(iter(next(iter(panels.values())))), ratio_as=RatioForm.RATIO, margin=0.05, verdict="",
        single_factor=True, differs=(), warnings=(), notes=(), results=0,
    )  # fmt: skip


def _series(key: str, values: Values) -> Series:
    cells = []
    for level, each in enumerate(values):
        repeats = [float(each)] if isinstance(each, (int, float)) else [float(one) for one in each]
        if not any(map(math.isnan, repeats)):
            cells.append(
                Cell(level=level, summary=summarise(repeats), text="", spread_text="", doubts=(), against_baseline=None)
            )
    return Series(
        key=key, name=key, is_baseline=False, cells=tuple(cells), sentence="", conclusion=Conclusion.NONE, headline="",
        against_baseline=None, points=0, order="",
    )  # fmt: skip


def found(comparison: Comparison) -> tuple[Finding, ...]:
    return findings(comparison, METRICS[comparison.metric])
