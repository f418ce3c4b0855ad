"""Results with a metric of whole trials."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.results.metrics import Metric
from webapp.results.reading.rows import ResultRow


@dataclass(frozen=True)
class Observed:
    """`metric` may have a label and a unit that depend on the rows, such as the currency of prices."""

    rows: Sequence[ResultRow]
    metric: Metric
    notes: tuple[str, ...] = ()
