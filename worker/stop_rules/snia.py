"""The rule snia: steady state over five rounds, after SNIA PTS 2.0. A round is a part of one trial."""

from statistics import fmean

from worker.contract.rounds import over_rounds
from worker.contract.steadiness import STALL_S, Series, steadiness_of_rates
from worker.contract.stopping import SNIA_ROUNDS as ROUNDS
from worker.stop_rules.window import Window


def window(rates: Series, round_s: int) -> Window | None:
    """The last five complete rounds, if they are steady. Rounds count from the start of the measured part."""
    rounds = len(rates) // round_s
    if rounds < ROUNDS:
        return None
    ends = range((rounds - ROUNDS + 1) * round_s, rounds * round_s + 1, round_s)
    means = [fmean(rates[end - round_s : end]) for end in ends]
    found = Window(ends[0] - round_s, ends[-1])
    stalled = steadiness_of_rates(rates[found.from_s : found.to_s]).stall_s >= STALL_S  # also of few, large I/Os
    return found if over_rounds(means).steady and not stalled else None
