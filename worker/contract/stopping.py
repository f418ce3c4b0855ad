"""Stop rules: they end the measured part of a stream before its maximum time. `worker.stop_rules` applies them."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import Message, Number

RoundSeconds = Annotated[int, Meta(ge=1, le=86400)]


class Rule(Message, tag_field="rule", frozen=True, kw_only=True):
    """Base class of the rules."""


class Confidence(Rule, tag="confidence", frozen=True, kw_only=True):
    """The 95 % interval of the mean rate is within ± `percent` of it."""

    percent: Annotated[float, Meta(ge=0.1, le=50)]


class SteadyRounds(Rule, tag="snia", frozen=True, kw_only=True):
    """Steady state after SNIA PTS 2.0: over the last five rounds."""

    round_s: RoundSeconds


class Settled(Rule, tag="settled", frozen=True, kw_only=True):
    """The rate has had no step, drift or stall for `hold_s`."""

    hold_s: Annotated[int, Meta(ge=10, le=86400)]


StopRule = Confidence | SteadyRounds | Settled

SNIA_ROUNDS = 5


def least_s(rule: StopRule, least_runtime_s: int) -> int:
    """The seconds before which the rule cannot end a stream."""
    match rule:
        case Confidence():
            return least_runtime_s
        case SteadyRounds():
            return max(least_runtime_s, SNIA_ROUNDS * rule.round_s)
        case Settled():
            return max(least_runtime_s, rule.hold_s)


Milliseconds = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Stopped(Message, frozen=True, kw_only=True):
    """How a stream with a stop rule ended. Times count from the start of the measured part, after the ramp.

    If the rule was reached, the stream's result is that of the window, from the samples in it. Else the stream ended
    at its maximum time, the window is the whole measured part, and the result is the engine's own.
    """

    rule: StopRule
    reached: bool
    at_ms: Milliseconds  # the end of the sample with which the rule was reached, or of the stream
    from_ms: Milliseconds  # the window
    to_ms: Milliseconds
    interval_percent: Number | None = None  # half width of the 95 % interval of the mean; None: not computed
