"""Stop rules, each a pure function of the series so far: no clock, no I/O. docs/stop-rules.md has formulas and sources.

A rule gets the I/Os of each whole second since the measured part began and returns the window that it accepts, or
None. It is asked at the seconds of `looks`, and `first_window` replays that on a recorded series.
"""

from collections.abc import Iterator

from worker.contract.steadiness import Series
from worker.contract.stopping import Confidence, Settled, SteadyRounds, StopRule
from worker.stop_rules import confidence, settled, snia
from worker.stop_rules.window import Window

__all__ = ["Window", "find_window", "first_window", "looks"]

MIN_LOOK_S = 5  # no rule ends a shorter series
LOOK_GROWTH = 20  # the next look is a 20th of the length later: fewer chances to stop by accident, and less work


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


def next_look(seconds: int) -> int:
    """The length of the series at the next look, after a look at `seconds`."""
    return seconds + max(1, seconds // LOOK_GROWTH)


def looks(least_s: int, most_s: int) -> Iterator[int]:
    """The lengths in seconds at which a rule is asked."""
    at = max(least_s, MIN_LOOK_S)
    while at <= most_s:
        yield at
        at = next_look(at)


def first_window(rule: StopRule, rates: Series, *, least_s: int = MIN_LOOK_S) -> Window | None:
    """The window with which the rule ends a recorded series; None if it never does."""
    found = (find_window(rule, rates[:at]) for at in looks(least_s, len(rates)))
    return next((window for window in found if window), None)
