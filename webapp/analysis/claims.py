"""What may be claimed of two series: their contrast over the points that both have, its correction for the page, and
differences in both directions, whose mean describes neither: a sentence names both sides instead. `Looks` is for pages
that somebody looks at after every repeat.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from webapp.analysis.answer import MIN_TESTED, Conclusion, Level
from webapp.analysis.cells import Block, Measured, is_clear
from webapp.analysis.dimensions import JOINER
from webapp.core.statistics import Ratio, student_t, tail

# The p-value at which a comparison may be decided when somebody looks at it after every repeat.
#
# Whoever looks at p < 5 % after each of 13 repeats finds a difference that does not exist on most pages. With Pocock's
# boundary each look uses the same smaller p-value, so that all looks together reach the wanted one (S. J. Pocock: Group
# sequential methods in the design and analysis of clinical trials, Biometrika 64, 1977; the recursion: P. Armitage, C.
# K. McPherson, B. C. Rowe: Repeated significance tests on accumulating data, Journal of the Royal Statistical Society A
# 132, 1969).

_NODES = 48  # of the quadrature over the values that are not decided yet
_HIGHEST = 9.0  # the boundary is below so many standard errors


@dataclass(frozen=True)
class Looks:
    """A look after each repeat from the `first` to the `last` one, at most."""

    first: int
    last: int

    def level(self, alpha: float) -> float:
        """The two-sided p-value for each look whose chance to be reached at any of them is `alpha`."""
        return _level(alpha, self.first, max(self.first, self.last))


ONE_LOOK = Looks(1, 1)  # at the end


@lru_cache(maxsize=4096)
def _level(alpha: float, first: int, last: int) -> float:
    if first == last:
        return alpha
    boundary = brentq(lambda z: _chance(z, first, last) - alpha, _quantile(alpha), _HIGHEST, xtol=1e-4)
    return float(2 * ndtr(-boundary))


def _quantile(alpha: float) -> float:
    """The boundary of a single look."""
    return float(brentq(lambda z: 2 * ndtr(-z) - alpha, 0.0, _HIGHEST, xtol=1e-6))


def _chance(boundary: float, first: int, last: int) -> float:
    """That a sum of standard normal values is, after any number of them from `first` to `last`, farther from 0 than
    `boundary` standard errors."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    limit = boundary * math.sqrt(first)
    at = limit * nodes
    inside: NDArray[np.float64] = weights * limit * _density(at / math.sqrt(first)) / math.sqrt(first)
    for count in range(first + 1, last + 1):
        limit = boundary * math.sqrt(count)
        reached = limit * nodes
        inside = weights * limit * (_density(reached[:, None] - at[None, :]) @ inside)
        at = reached
    return 1.0 - float(inside.sum())


def _density(values: NDArray[np.float64]) -> NDArray[np.float64]:
    density: NDArray[np.float64] = np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)
    return density


# What a page may claim: differences and equalities, corrected for the number of comparisons on the page.
#
# The chance of any false claim on a page is at most 5 %. Differences in sentences get 1 %, because headlines repeat
# them without the page, and points get 2.5 % (Bonferroni); inside each part, p-values are corrected by Holm's method
# (S. Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979). It
# holds for dependent comparisons too: all series are compared with the same baseline.
#
# A run asks one question for each factor that its plan varies. Its questions share both parts equally, on whichever
# page one of them is shown, so that every page makes the same claim.

# Two series at the same points: the mean of ln(series / baseline), with its variance and degrees of freedom.
#
# The design is a split plot: costly factors change slowly, so all trials of a level in one block share an error. A
# block is therefore one observation (R. A. Fisher: The Design of Experiments, 1935; S. E. Lazic: The problem of
# pseudoreplication in neuroscientific studies, BMC Neuroscience 11, 2010):
#
# - Both series in the same runs: the blocks are pairs, and the differences of their logarithms have Student's t with
#   n - 1 degrees of freedom.
# - Series of different runs: the blocks are not paired, and Welch's degrees of freedom hold (B. L. Welch: The
#   generalization of Student's problem when several different population variances are involved, Biometrika 34, 1947).
#   Blocks of one run share what that run met, so with three runs on each side a whole run is one observation.
#
# With missing values, the variance is that of the blocks' influences on the mean, which is the same as above when
# nothing is missing (K.-Y. Liang, S. L. Zeger: Longitudinal data analysis using generalized linear models, Biometrika
# 73, 1986).

Pair = tuple[Measured, Measured]  # the series and the baseline at one point
LEANS = 0.2  # a smaller lean is balance: drift then hardly changes the mean of a block (our convention)
MIN_RUNS = 3  # on each side, for a run to be one observation
UNKNOWN_ORDER = "unknown"


@dataclass(frozen=True)
class Contrast:
    """`value` is ln(series / baseline). `n` counts blocks on the smaller side; with n = 1 there is no variance."""

    value: float
    variance: float  # of `value`
    freedom: float
    n: int
    step: float  # the smallest difference that the values can resolve, as 0.016

    @cached_property
    def ratio(self) -> Ratio:
        """Its 95 % interval is never narrower than the step: equal values of coarse steps are not exact."""
        if self.n < 2:
            return Ratio(math.exp(self.value), None, None)
        half = max(student_t(self.freedom) * math.sqrt(self.variance), self.step)
        return Ratio(math.exp(self.value), math.exp(self.value - half), math.exp(self.value + half))

    def p_different(self) -> float:
        """Two-sided p-value of "no difference". A difference below the step is none."""
        if self.n < 2 or abs(self.value) <= self.step:
            return 1.0
        return 2 * tail(self.freedom, abs(self.value) / math.sqrt(self.variance))

    def p_unequal(self, margin: float) -> float:
        """P-value of "differs by the margin or more": two one-sided tests (D. J. Schuirmann: A comparison of the two
        one-sided tests procedure and the power approach for assessing the equivalence of average bioavailability,
        Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). The margin is 1 / (1 + m) to 1 + m.
        """
        room = math.log1p(margin) - abs(self.value)
        return 1.0 if self.n < 2 or room <= 0 else tail(self.freedom, room / math.sqrt(self.variance))

    def at_least(self, variance: float, freedom: float) -> "Contrast":
        """With a variance that is not smaller than this one.

        A larger own variance is the sum of this one and an excess with the own degrees of freedom (Satterthwaite).
        """
        excess = self.variance - variance
        if excess <= 0:
            return replace(self, variance=variance, freedom=freedom)
        joined = self.variance**2 / (variance**2 / freedom + excess**2 / self.freedom)
        return replace(self, freedom=max(self.freedom, joined))


def contrast(pairs: Sequence[Pair], weights: Sequence[float] = ()) -> Contrast:
    """The mean over the points of ln(mean of the series / mean of the baseline); all values are positive.

    Each mean is over all blocks of its side, so that a ratio is that of the means that are shown beside it. `weights`:
    of the points, with the sum 1; equal without them.
    """
    shares = weights or [1 / len(pairs)] * len(pairs)
    return _paired(pairs, shares) if all(map(_is_paired, pairs)) else _unpaired(pairs, shares)


def _common(pair: Pair) -> list[Block]:
    series, baseline = pair
    return [block for block in series.values if block in baseline.values]


def _is_paired(pair: Pair) -> bool:
    """Whether both sides have the same runs, and two or more blocks in common. Single repeats may be missing."""
    series, baseline = pair
    return len(_common(pair)) > 1 and _runs(series) == _runs(baseline)


def _step(pairs: Sequence[Pair]) -> float:
    return max(max(series.step, baseline.step) for series, baseline in pairs)


def _paired(pairs: Sequence[Pair], shares: Sequence[float]) -> Contrast:
    """A block that one side lacks only adds the influence of the other side."""
    parts, sums = [], Influences()
    for (series, baseline), share in zip(pairs, shares, strict=True):
        parts.append(sums.add(_logs(series), share) - sums.add(_logs(baseline), share, -1))
    least = min(len(_common(pair)) for pair in pairs)
    return _made(parts, sums.variance(least), least - 1, least, _step(pairs))


def _unpaired(pairs: Sequence[Pair], shares: Sequence[float]) -> Contrast:
    sides = []
    by_run = all(len(_runs(side_values)) >= MIN_RUNS for pair in pairs for side_values in pair)
    for side in (0, 1):
        sums = Influences(by_run=by_run)
        parts = [sums.add(_logs(pair[side]), share) for pair, share in zip(pairs, shares, strict=True)]
        sides.append((parts, sums))
    (mine, my_sums), (theirs, their_sums) = sides
    variances = [(sums.variance(len(sums)), sums.least - 1.0) for sums in (my_sums, their_sums)]
    parts = [first - second for first, second in zip(mine, theirs, strict=True)]
    return _made(parts, *_welch(variances), min(my_sums.least, their_sums.least), _step(pairs))


def _logs(measured: Measured) -> dict[Block, float]:
    return {block: math.log(value) for block, value in measured.values.items()}


def _runs(measured: Measured) -> set[int]:
    return {run for run, _ in measured.values}


def _made(parts: Sequence[float], variance: float, freedom: float, n: int, step: float) -> Contrast:
    """`parts` are those of the mean, one for each point. Equal values of coarse steps still have the variance of
    rounding, step^2 / 12 for each of two values (W. F. Sheppard: On the calculation of the most probable values of
    frequency-constants, Proceedings of the London Mathematical Society 29, 1898)."""
    floor = step**2 / 6 / n
    return Contrast(math.fsum(parts), max(variance, floor), max(freedom, 1.0), n, step)


class Influences:
    """What each block adds to the mean over all points, or to the difference of two means."""

    def __init__(self, *, by_run: bool = False) -> None:
        self._by_run = by_run
        self._sums: dict[Hashable, float] = {}
        self.least = 0  # blocks (or runs) at the point that has the fewest

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, logs: Mapping[Block, float], share: float, sign: int = 1) -> float:
        """Add a point with its share of the mean over all points: its part of that mean. With the sign -1, it is
        subtracted from the others."""
        mean = math.fsum(logs.values()) / len(logs)
        units = set()
        for block, value in logs.items():
            unit: Hashable = block[0] if self._by_run else block
            units.add(unit)
            self._sums[unit] = self._sums.get(unit, 0.0) + sign * share * (value - mean) / len(logs)
        self.least = min(self.least or len(units), len(units))
        return share * mean

    def variance(self, count: int) -> float:
        """Of the mean. `count`: the number of independent units, blocks or runs, for the correction n / (n - 1)."""
        return math.fsum(value**2 for value in self._sums.values()) * count / (count - 1) if count > 1 else 0.0


def _welch(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The sum of variances and its degrees of freedom, (sum v)^2 / sum(v^2 / freedom)."""
    known = [(variance, freedom) for variance, freedom in parts if freedom > 0]
    total = math.fsum(variance for variance, _ in known)
    below = math.fsum(variance**2 / freedom for variance, freedom in known)
    return total, total**2 / below if below else math.fsum(freedom for _, freedom in known)


def within_variance(points: Sequence[Contrast], mean: Contrast) -> float:
    """The part of the points' variances that blocks do not explain: (sum v - P V) / (P - 1)."""
    if len(points) < 2:
        return 0.0
    return max(0.0, math.fsum(point.variance for point in points) - len(points) * mean.variance) / (len(points) - 1)


def pooled_freedom(points: Sequence[Contrast], mean: Contrast) -> float:
    """Degrees of freedom of the mean of the points' variances, the smaller of two approximations by Satterthwaite (An
    approximate distribution of estimates of variance components, Biometrics Bulletin 2, 1946):

    - points of a block share an error: f (sum v)^2 / ((P V)^2 + (P - 1) W^2), W within blocks, as for two whole plots
      at one level of the subplot (W. G. Cochran, G. M. Cox: Experimental Designs, 2nd ed., 1957, section 7.1);
    - points have unequal noise: (sum v)^2 / sum(v^2 / f).
    """
    count, within = len(points), within_variance(points, mean)
    total = math.fsum(point.variance for point in points)
    shared = ((count * mean.variance) ** 2 + (count - 1) * within**2) / mean.freedom
    unequal = math.fsum(point.variance**2 / point.freedom for point in points)
    return total**2 / max(shared, unequal) if total else mean.freedom


def same_order(pairs: Iterable[Pair]) -> str:
    """ "before" or "after" if the series was always measured so, UNKNOWN_ORDER if imported files do not state when,
    else "". Then drift looks like a difference.

    Of blocks that both have: in every block, on average over the points. Of a run without such a block: all of it
    before, or after, all of the other series.
    """
    given = list(pairs)
    if any(len(side.at) < len(side.values) for pair in given for side in pair):
        return UNKNOWN_ORDER
    blocks: dict[Block, list[float]] = {}
    for series, baseline in given:
        for block in _common((series, baseline)):
            blocks.setdefault(block, []).append(series.at[block] - baseline.at[block])
    leans = [_lean(seconds) for seconds in blocks.values()]
    runs = _leans_of_runs(given, {run for run, _ in blocks})
    return "" if len(leans) == 1 and not runs else _always([*leans, *runs])


def _leans_of_runs(pairs: Sequence[Pair], shared: Collection[int]) -> list[float]:
    """For each run without a common block, the seconds between it and the other series: positive if the series was
    measured after the baseline, negative if before, 0 if the run and the other series overlap."""
    mine, theirs = _times([series for series, _ in pairs]), _times([baseline for _, baseline in pairs])
    of_series = [_gap(times, theirs) for run, times in mine.items() if run not in shared]
    of_baseline = [-_gap(times, mine) for run, times in theirs.items() if run not in shared]
    return [*of_series, *of_baseline]


def _times(cells: Iterable[Measured]) -> dict[int, list[float]]:
    """When the blocks of each run were measured."""
    times: dict[int, list[float]] = {}
    for cell in cells:
        for (run, _), at in cell.at.items():
            times.setdefault(run, []).append(at)
    return times


def _gap(times: Sequence[float], others: Mapping[int, Sequence[float]]) -> float:
    """Positive if all times are after all others, negative if before, else 0."""
    known = [at for each in others.values() for at in each]
    return max(0.0, min(times) - max(known)) or min(0.0, max(times) - min(known))


def _lean(seconds: Sequence[float]) -> float:
    """From -1, before at all points of a block, to 1, after at all of them; 0 if both are nearly in balance."""
    total, apart = math.fsum(seconds), math.fsum(map(abs, seconds))
    return total / apart if apart and abs(total) >= LEANS * apart else 0.0


def _always(leans: Sequence[float]) -> str:
    if not leans:
        return ""
    return "after" if min(leans) > 0 else "before" if max(leans) < 0 else ""


ALPHA = 0.05  # 95 % intervals
OF_SENTENCES, OF_POINTS = 0.01, 0.025  # of any false difference in the sentences of a page, and at its points
OF_EQUALITIES = 0.025  # of any false equality: a comparison that differs cannot have both errors
MIN_BLOCKS = MIN_TESTED  # for a claim: two repeats that agree by chance look certain

# A sentence says that a difference may be chance if two modes explain the values with a chance of more than 2 %, unless
# one side is twice the other: modes are rarely farther apart than that (our convention).
MOST_MODES, LARGE = 0.02, 2.0


def modes_chance(applications: int, compared: int) -> float:
    """The chance that equal levels look certainly different because each application of a level is in one of two stable
    modes: all applications of the baseline are in one mode, and all of one of `compared` other levels in the other."""
    one_mode = 0.5**applications
    return 2 * one_mode * (1 - (1 - one_mode) ** compared)


def may_be_modes(applications: int, compared: int, ratio: float) -> bool:
    """`applications`: how often the level was applied, on the smaller side. A scheduler is applied once in a block,
    whatever the number of points, a queue depth at each point. `compared`: levels beside the baseline."""
    return modes_chance(applications, compared) > MOST_MODES and max(ratio, 1 / ratio) < LARGE


@dataclass(frozen=True)
class Claim:
    """`p` is the corrected p-value of the difference: at most OF_SENTENCES or OF_POINTS if, and only if, it is
    `different`. 1 without a test."""

    different: bool
    equal: bool
    p: float

    def conclusion(self, order: str, *, modes: bool = False) -> Conclusion:
        """`order` is that of `same_order`, `modes` that of `may_be_modes`."""
        if self.different and order:
            return Conclusion.MAY_BE_DRIFT
        if self.different:
            return Conclusion.MAY_BE_MODES if modes else Conclusion.DIFFERENT
        return Conclusion.EQUAL if self.equal else Conclusion.NONE


NOTHING = Claim(different=False, equal=False, p=1.0)


@dataclass(frozen=True)
class ContrastTest:
    """`shown` has the interval that readers see. `tested` is the same with the variance of the test, which may be
    larger. `pairs` is the number of pairs from which this one was chosen as the most different."""

    shown: Contrast
    tested: Contrast
    pairs: int = 1


def claims(
    tests: Sequence[ContrastTest],
    margin: float,
    alpha: float = OF_POINTS,
    *,
    questions: int = 1,
    looks: Looks = ONE_LOOK,
) -> list[Claim]:
    """One for each test. `alpha`: of any false difference among them and in the other `questions` of their run. With
    several `looks`, each of them asks for a smaller p-value.

    A difference: the corrected p-value is at most `alpha`, and the interval shown excludes 1. `p` covers both
    conditions, so that it never contradicts the interval beside it: it is at least `alpha` / 5 % of the p-value of the
    contrast shown, which is at most 5 % if its interval excludes 1. An interval that excludes 1 beside a larger `p` is
    not corrected: the difference may be chance among so many comparisons. An equality: the same for
    the two one-sided tests, and the whole interval shown is inside the margin. With one contrast, this is the interval
    of 95 %, stricter than the 90 % that two one-sided tests of 5 % need: readers see one interval only.
    """
    count = len(tests) * questions
    different = holm([questions * test.pairs * test.tested.p_different() for test in tests])
    unequal = holm([questions * test.pairs * test.tested.p_unequal(margin) for test in tests])
    limits = [looks.level(level / count) * count if tests else level for level in (alpha, OF_EQUALITIES)]
    corrected = zip(tests, different, unequal, strict=True)
    return [
        _claim(test.shown, p_different, p_unequal, margin, alpha, limits) for test, p_different, p_unequal in corrected
    ]


def _claim(
    shown: Contrast, different: float, unequal: float, margin: float, alpha: float, limits: Sequence[float]
) -> Claim:
    """`limits` of both corrected p-values."""
    ratio = shown.ratio
    if shown.n < MIN_BLOCKS or ratio.low is None or ratio.high is None:
        return NOTHING
    inside = 1 / (1 + margin) <= ratio.low and ratio.high <= 1 + margin
    p = max(different, shown.p_different() * alpha / ALPHA)
    return Claim(different=different <= limits[0] and p <= alpha, equal=unequal <= limits[1] and inside, p=p)


def holm(p_values: Sequence[float]) -> list[float]:
    """The corrected p-values: the k-th smallest of m times m - k + 1, never below a smaller one, at most 1."""
    corrected, least, count = [1.0] * len(p_values), 0.0, len(p_values)
    for rank, index in enumerate(sorted(range(count), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[index] * (count - rank)))
        corrected[index] = least
    return corrected


_LISTED = 3

Where = Callable[[Collection[str], Collection[str]], str]
"""Names levels of x by their keys; the second argument has the levels to tell them apart from."""


@dataclass(frozen=True)
class Side:
    """Points that differ for certain in one direction."""

    where: str  # 4 KiB to 64 KiB
    ratios: tuple[float, ...]  # of points, or of means over points with one level of a factor
    points: int


Found = Mapping[str, tuple[float, Claim]]
"""Ratio and claim by key of x."""


def opposites(claims_by_key: Found, where: Where) -> tuple[Side, Side] | None:
    """The higher and the lower side; None if all certain differences have one direction."""
    higher = [key for key, (ratio, claim) in claims_by_key.items() if claim.different and ratio > 1]
    lower = [key for key, (ratio, claim) in claims_by_key.items() if claim.different and ratio < 1]
    if not higher or not lower:
        return None
    return _side(higher, claims_by_key, where), _side(lower, claims_by_key, where)


def _side(keys: Sequence[str], claims_by_key: Found, where: Where) -> Side:
    return Side(where(keys, claims_by_key.keys() - set(keys)), tuple(claims_by_key[key][0] for key in keys), len(keys))


def by_range(levels: Sequence[Level], label: str) -> Where:
    """`4 KiB to 64 KiB` if no other point is between, else a list. `label` names x where a level alone is not clear:
    `queue depth 1 to 8`."""

    def where(keys: Collection[str], others: Collection[str]) -> str:
        mine = [level for level in levels if level.key in keys]
        before = "" if all(map(is_clear, mine)) else f"{label} "
        inside = levels[levels.index(mine[0]) : levels.index(mine[-1])]
        if len(mine) > 2 and mine[0].number is not None and not any(level.key in others for level in inside):
            return f"{before}{mine[0].text} to {mine[-1].text}"
        return before + listed([level.text for level in mine])

    return where


def by_parts(levels: Sequence[Level]) -> Where:
    """For levels of several parts (`dimensions.JOINER`): the first part that tells both sides apart, such as
    `Queue depth 1`, or else a list of levels."""
    parts = {level.key: (level.key.split(JOINER), level.text.split(JOINER)) for level in levels}
    is_parted = len({len(each) for pair in parts.values() for each in pair}) == 1  # else a name contains the joiner
    count = len(next(iter(parts.values()))[0]) if is_parted else 0

    def where(keys: Collection[str], others: Collection[str]) -> str:
        mine = [level.key for level in levels if level.key in keys]
        for place in range(count):
            if {parts[key][0][place] for key in mine}.isdisjoint(parts[key][0][place] for key in others):
                return listed(list(dict.fromkeys(parts[key][1][place] for key in mine)))
        return listed([JOINER.join(parts[key][1]) for key in mine])

    return where


def listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    if more > 0:
        return f"{', '.join(texts[:_LISTED])} and {more} more"
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
