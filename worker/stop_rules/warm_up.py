"""The warm-up of a series: the seconds at its start that its mean should not contain."""

from worker.contract.steadiness import Series

GAIN = 0.5  # a cut must reduce the squared error to this share: chance alone finds small gains


def warm_up_s(rates: Series) -> int | None:
    """The cut that minimises the squared standard error of the mean of the rest; None if the warm-up is not over.

    MSER: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69 (6),
    1997, with one second as the batch. A minimum in the second half of the series means that it is too short.
    """
    n = len(rates)
    best, cut = float("inf"), 0
    total = squares = error = 0.0
    shift = rates[-1]  # against cancellation in the squares
    for at in range(n - 1, -1, -1):
        each = rates[at] - shift
        total, squares, kept = total + each, squares + each * each, n - at
        error = max(0.0, squares - total * total / kept) / kept**2
        if at <= n // 2 and error <= best:
            best, cut = error, at
    if cut == n // 2:
        return None
    return cut if best <= GAIN * error else 0
