"""The rule settled: since some second, the rate has had no step, drift or stall for a given time."""

from worker.contract.steadiness import NEAR_ZERO, Series, Verdict, steadiness_of_rates, usual_rate
from worker.stop_rules.window import Window

TRIM = 10  # while the rest drifts, a tenth of it is left out


def window(rates: Series, hold_s: int) -> Window | None:
    settled = settled_at_s(rates, hold_s)
    return None if settled is None else Window(settled, len(rates))


def settled_at_s(rates: Series, hold_s: int) -> int | None:
    """The second since which the verdict is steady or bursty, if that is at least `hold_s` ago.

    The series is cut at its change points, each the best split of the rest (binary segmentation: A. J. Scott and
    M. Knott, 1974); then at its start while the rest drifts. The criteria are those of the verdict on a result.
    """
    start = _after_stall(rates)
    while len(rates) - start >= hold_s:
        found = steadiness_of_rates(rates[start:])
        match found.verdict:
            case Verdict.STEPPED:
                start += found.step_at_s
            case Verdict.DRIFTING:
                start += max(1, (len(rates) - start) // TRIM)
            case Verdict.STEADY | Verdict.BURSTY:
                return start
            case _:
                return None
    return None


def _after_stall(rates: Series) -> int:
    """The second after the last one near zero."""
    limit = NEAR_ZERO * usual_rate(rates)
    return max((at + 1 for at, rate in enumerate(rates) if rate <= limit), default=0)
