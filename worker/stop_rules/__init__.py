"""Stop rules, each a pure function of the series so far: no clock, no I/O. Formulas: docs/reference/stop-rules.md.

A rule gets the I/Os of each whole second since the measured part began and returns the window that it accepts, or
None. It is checked at the seconds of `looks`, and `first_window` replays that on a recorded series.
"""

from collections.abc import Iterator

from worker.contract.steadiness import Series
from worker.contract.stopping import Confidence, Settled, SteadyRounds, StopRule, least_s
from worker.stop_rules import confidence, settled, snia
from worker.stop_rules.window import Window

__all__ = ["Window", "find_window", "first_look", "first_window", "looks", "next_look"]

MIN_LOOK_S = 5  # no rule ends a shorter series
# The next check is 5 % of the length later: fewer chances to stop by accident, and less work. After a round: 1 %.
LOOK_GROWTH, ROUND_GROWTH = 0.05, 0.01


def find_window(rule: StopRule, rates: Series) -> Window | None:
    """The window that the rule accepts at the end of this series; None: the stream continues."""
    if len(rates) < MIN_LOOK_S:
        return None
    match rule:
        case Confidence():
            return confidence.window(rates, rule.percent)
        case SteadyRounds():
            return snia.window(rates, rule.round_s)
        case Settled():
            return settled.window(rates, rule.hold_s)


def first_look(rule: StopRule, least_runtime_s: int) -> int:
    """The length of the series in seconds at the first check."""
    return _round_end(rule, max(MIN_LOOK_S, least_s(rule, least_runtime_s)))


def next_look(rule: StopRule, seconds: int) -> int:
    """The length of the series at the next check, after a check at `seconds`."""
    growth = ROUND_GROWTH if isinstance(rule, SteadyRounds) else LOOK_GROWTH
    return _round_end(rule, seconds + max(1, int(seconds * growth)))


def _round_end(rule: StopRule, seconds: int) -> int:
    """The first end of a round from `seconds` on; `seconds` without rounds."""
    return -(-seconds // rule.round_s) * rule.round_s if isinstance(rule, SteadyRounds) else seconds


def looks(rule: StopRule, least_runtime_s: int, most_s: int) -> Iterator[int]:
    """The lengths in seconds at which a rule is checked."""
    at = first_look(rule, least_runtime_s)
    while at <= most_s:
        yield at
        at = next_look(rule, at)


def first_window(rule: StopRule, rates: Series, *, least_runtime_s: int = MIN_LOOK_S) -> Window | None:
    """The window with which the rule ends a recorded series; None if it never does."""
    found = (find_window(rule, rates[:at]) for at in looks(rule, least_runtime_s, len(rates)))
    return next((window for window in found if window), None)
