"""Data of the trend chart; `frontend/src/payloads/trend.ts` has the same types."""

from webapp.screens.payloads import Payload


class TrendPoint(Payload, frozen=True, kw_only=True):
    """One run. `low` and `high` are the 95 % interval, null without repeats."""

    run: int
    at_ms: int
    value: float
    low: float | None
    high: float | None
    verdict: str  # label of the outcome against the baseline run, "" without one


class TrendStep(Payload, frozen=True, kw_only=True):
    """Between two runs. `text` is the size: −12.3 %."""

    at_ms: int
    text: str


class TrendChart(Payload, frozen=True, kw_only=True):
    """`baseline` is the value of the baseline run, null without one. Levels are in the order of time, between steps."""

    label: str
    shown_as: str
    points: tuple[TrendPoint, ...]
    steps: tuple[TrendStep, ...]
    levels: tuple[float, ...]
    baseline: float | None
