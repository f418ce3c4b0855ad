"""How a stop rule ended a stream, in words."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webapp.core.formatting import significant
from worker.contract.stopping import Settled, Stopped
from worker.recipes.stop_rules import write


def stop_words(stored: Mapping[str, Any]) -> str:
    """`StreamRun.stopped` in sentences; says which seconds the results cover."""
    stopped = msgspec.convert(stored, Stopped)
    if not stopped.reached:
        return (
            f"The stop rule {write(stopped.rule)} was not reached within the maximum time. The results cover all of "
            f"the {_seconds(stopped.to_ms)} s."
        )
    from_s, to_s = _seconds(stopped.from_ms), _seconds(stopped.to_ms)
    how = (
        f"Settled after {from_s} s"
        if isinstance(stopped.rule, Settled)
        else f"Reached after {_seconds(stopped.at_ms)} s"
    )
    by = f"by the stop rule {write(stopped.rule)}"
    return f"{how}, {by}. The results are from {from_s} s to {to_s} s.{_interval(stopped)}"


def _interval(stopped: Stopped) -> str:
    if stopped.interval_percent is None:
        return ""
    return f" The 95 % interval of the mean is ±{significant(stopped.interval_percent)} %."


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f}"
