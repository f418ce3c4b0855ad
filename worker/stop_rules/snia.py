"""The rule snia: steady state over five rounds, after SNIA PTS 2.0. A round is a part of one trial."""

from statistics import fmean

from worker.contract.steadiness import STALL_S, Series, line, steadiness_of_rates
from worker.contract.stopping import SNIA_ROUNDS as ROUNDS
from worker.stop_rules.window import Window

MAX_RANGE, MAX_SLOPE = 0.20, 0.10


def window(rates: Series, round_s: int) -> Window | None:
    """The last five complete rounds, if they are steady. Rounds count from the start of the measured part."""
    rounds = len(rates) // round_s
    if rounds < ROUNDS:
        return None
    ends = range((rounds - ROUNDS + 1) * round_s, rounds * round_s + 1, round_s)
    means = [fmean(rates[end - round_s : end]) for end in ends]
    found = Window(ends[0] - round_s, ends[-1])
    stalled = steadiness_of_rates(rates[found.from_s : found.to_s]).stall_s >= STALL_S  # also of few, large I/Os
    return found if is_steady(means) and not stalled else None


def is_steady(rounds: Series) -> bool:
    """SNIA Solid State Storage Performance Test Specification 2.0.2, definition of steady state.

    The range is at most 20 % of the mean, and the least-squares line changes by at most 10 % of it, from the first
    round to the last. A drive that stands still has no mean.
    """
    mean = fmean(rounds)
    change = line(rounds)[0] * (len(rounds) - 1) / len(rounds)
    return mean > 0 and max(rounds) - min(rounds) <= MAX_RANGE * mean and abs(change) <= MAX_SLOPE * mean
