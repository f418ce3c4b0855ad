"""What a page may claim: differences and equalities, corrected for the number of comparisons on the page.

The chance of any false claim on a page is at most 5 %. Sentences get one half of it and points the other half
(Bonferroni); inside each half, p-values are corrected by Holm's method (S. Holm: A simple sequentially rejective
multiple test procedure, Scandinavian Journal of Statistics 6, 1979). It holds for dependent comparisons too: all
series are compared with the same baseline.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.compare.contrasts import Contrast

ALPHA = 0.05  # of any false claim on a page
EACH = ALPHA / 2  # of the sentences, and of the points
MIN_BLOCKS = 3  # for a claim: two repeats that agree by chance look certain

# A headline is read without the page, and each run has one. So it claims less: the corrected p-value is at most 1 %,
# and two modes explain the values with a chance of at most 2 %, unless one side is twice the other: modes are rarely
# farther apart than that (our convention).
HEADLINE_P, HEADLINE_MODES = 0.01, 0.02
HEADLINE_FACTOR = 2.0


def modes_chance(applications: int, compared: int) -> float:
    """The chance that equal levels look certainly different because each application of a level is in one of two stable
    modes: all applications of the baseline are in one mode, and all of one of `compared` other levels in the other."""
    one_mode = 0.5**applications
    return 2 * one_mode * (1 - (1 - one_mode) ** compared)


@dataclass(frozen=True)
class Claim:
    """`p` is the corrected p-value of the difference."""

    different: bool
    equal: bool
    p: float

    def fits_headline(self, applications: int, compared: int, ratio: float) -> bool:
        """`applications`: how often the level was applied, on the smaller side. A scheduler is applied once in a block,
        whatever the number of points, a queue depth at each point. `compared`: levels beside the baseline."""
        enough = modes_chance(applications, compared) <= HEADLINE_MODES or max(ratio, 1 / ratio) >= HEADLINE_FACTOR
        return self.different and self.p <= HEADLINE_P and enough


NOTHING = Claim(different=False, equal=False, p=1.0)


@dataclass(frozen=True)
class ContrastTest:
    """`shown` has the interval that readers see. `tested` is the same with the variance of the test, which may be
    larger. `pairs` is the number of pairs from which this one was chosen as the most different."""

    shown: Contrast
    tested: Contrast
    pairs: int = 1


def claims(tests: Sequence[ContrastTest], margin: float) -> list[Claim]:
    """One for each test.

    A difference: the corrected p-value is at most 2.5 %, and the interval shown excludes 1. An equality: the same for
    the two one-sided tests, and the whole interval shown is inside the margin. With one contrast, this is the interval
    of 95 %, stricter than the 90 % that two one-sided tests of 5 % need: readers see one interval only.
    """
    different = holm([one.pairs * one.tested.p_different() for one in tests])
    unequal = holm([one.pairs * one.tested.p_unequal(margin) for one in tests])
    found = zip(tests, different, unequal, strict=True)
    return [_claim(one.shown, p_different, p_unequal, margin) for one, p_different, p_unequal in found]


def _claim(shown: Contrast, different: float, unequal: float, margin: float) -> Claim:
    ratio = shown.ratio
    if shown.n < MIN_BLOCKS or ratio.low is None or ratio.high is None:
        return NOTHING
    inside = 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin
    return Claim(
        different=different <= EACH and not ratio.low <= 1 <= ratio.high,
        equal=unequal <= EACH and inside,
        p=different,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """The corrected p-values: the k-th smallest of m times m - k + 1, never below a smaller one, at most 1."""
    corrected, least, count = [1.0] * len(p_values), 0.0, len(p_values)
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[index] * (count - rank)))
        corrected[index] = least
    return corrected
