"""What a plan can find: the smallest difference between two levels that a run of it claims with about 85 %
probability; and how many repeats find a given difference.

Two conditions must hold for a claim at one point (`analysis.claims`): the test with the noise of all points, corrected
for the number of comparisons, and the interval of the point's own repeats. Each has its power: for a paired difference
of standard deviation s over n repeats, (t(1 - p / 2, f) + t(power, f)) s / sqrt(n); with the own n - 1 degrees of
freedom exactly, by the noncentral t distribution. The larger difference is the answer. Both levels have the noise, so
s is sqrt(2) times that of one trial. Each condition gets the power sqrt(0.85), as if they were independent.

On simulated pages with 2 % noise, 75 to 84 % of such differences were found with 3 repeats, and 82 to 96 % with 4, 6
and 10 repeats.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.db.models import Count, F, Max
from django.db.models.aggregates import Variance
from django.db.models.functions import Ln
from scipy.optimize import brentq
from scipy.special import nctdtr, stdtrit

from webapp.analysis.claims import ALPHA, MIN_BLOCKS, OF_POINTS, OF_SENTENCES
from webapp.analysis.default_questions import TARGET, questions_of
from webapp.analysis.dimensions import PART
from webapp.core.formatting import ratio, significant
from webapp.core.statistics import Ratio, student_t
from webapp.hosts.models import Target
from webapp.plans.expand import PlannedTrial
from webapp.results.models import Result
from webapp.results.reading.query import TargetPoint

POWER = 0.85
COARSE_PERCENT = 20  # from here on, the preview says what finds smaller differences
_EACH = math.sqrt(POWER)  # of each of two conditions that hardly depend on each other
ASSUMED = 0.02  # standard deviation of ln(IOPS) of a target without repeats
_FINEST = 0.001  # repeats that are equal by chance are not without noise
_RUNS = 20  # newest of a target
_LEAST = 6  # degrees of freedom from which its repeats say the noise
_MOST_POINTS = 1000  # of a plan; more hardly change the correction


class Detectable(msgspec.Struct, frozen=True, kw_only=True):
    """`percent` is None if the plan claims nothing: with fewer than 3 repeats, or if it compares no levels."""

    percent: float | None
    repeats: int
    comparisons: int
    noise_percent: float  # standard deviation of a trial
    results: int  # that say the noise; 0: it is assumed
    target: str  # with this noise, the largest of the plan's targets; "" if it is assumed

    @property
    def smallest(self) -> str:
        """`6.12 %`; above 100 % the ratio of the levels: `×3.92`."""
        if self.percent is None:
            return ""
        return f"{significant(self.percent)} %" if self.percent <= 100 else ratio(1 + self.percent / 100)

    @property
    def is_coarse(self) -> bool:
        return self.percent is not None and self.percent > COARSE_PERCENT


@dataclass(frozen=True)
class Noise:
    """The standard deviation of ln(IOPS) between repeats of one point in one run."""

    sigma: float
    results: int
    target: str


def detectable(trials: Sequence[PlannedTrial], repeats: int, targets: Sequence[Target]) -> Detectable:
    """`trials`: one of each point on its targets."""
    noise = noise_of(targets)
    comparisons = _comparisons(trials[:_MOST_POINTS], {str(target.pk): str(target) for target in targets})
    percent = None
    if repeats >= MIN_BLOCKS and comparisons:
        percent = 100 * math.expm1(smallest(repeats, comparisons, noise.sigma))
    return Detectable(
        percent=percent,
        repeats=repeats,
        comparisons=comparisons,
        noise_percent=100 * noise.sigma,
        results=noise.results,
        target=noise.target,
    )


def smallest(repeats: int, comparisons: int, sigma: float, *, is_mean: bool = False) -> float:
    """The difference of ln(value) that is claimed at one of so many points with 85 % probability. `is_mean`: by one of
    so many sentences, each about the mean of a chart, whose noise is `sigma` and is not pooled with others."""
    error = sigma * math.sqrt(2 / repeats)
    freedom = (1 if is_mean else comparisons) * (repeats - 1)
    alpha = (OF_SENTENCES if is_mean else OF_POINTS) / comparisons
    corrected = stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, _EACH)
    limit = stdtrit(repeats - 1, 1 - ALPHA / 2)
    uncorrected = brentq(lambda shift: 1 - nctdtr(repeats - 1, shift, limit) - _EACH, 0.0, 30.0)
    return error * float(max(corrected, uncorrected))


def repeats_for(difference: float, comparisons: int, sigma: float, *, most: int) -> int | None:
    """The fewest repeats with which a sentence claims this difference of ln(value); None for more than `most`."""
    enough = (n for n in range(MIN_BLOCKS, most + 1) if smallest(n, comparisons, sigma, is_mean=True) <= difference)
    return next(enough, None)


def sigma_of(ratio: Ratio, repeats: int) -> float:
    """The noise of one trial that gives a mean over so many paired repeats its upper 95 % limit; 0 without a limit."""
    half = math.log(ratio.high / ratio.value) if ratio.high else 0.0
    return half / student_t(repeats - 1) * math.sqrt(repeats / 2)


def noise_of(targets: Sequence[Target]) -> Noise:
    """Of the target whose repeats differ most in its newest runs; two queries for each target."""
    known = [noise for target in targets if (noise := _noise(target)) is not None]
    return max(known, key=lambda noise: noise.sigma, default=Noise(ASSUMED, 0, ""))


def _noise(target: Target) -> Noise | None:
    valid = Result.objects.filter(target=target, invalid=False, run__isnull=False, iops__gt=0).order_by()
    runs = valid.values_list("run").annotate(last=Max("measured_at")).order_by("-last")[:_RUNS]
    cells = (
        valid.filter(run__in=[run for run, _ in runs])
        .values("run", "point_key", "direction")
        .annotate(n=Count("pk"), variance=Variance(Ln(F("iops")), sample=True))
        .filter(n__gt=1)
        .values_list("n", "variance")
    )
    counted = [(n, variance) for n, variance in cells if variance is not None]
    freedom = sum(n - 1 for n, _ in counted)
    if freedom < _LEAST:
        return None
    pooled = math.fsum((n - 1) * variance for n, variance in counted) / freedom
    return Noise(max(math.sqrt(pooled), _FINEST), sum(n for n, _ in counted), str(target))


def _comparisons(trials: Sequence[PlannedTrial], names: dict[str, str]) -> int:
    """Points at which a level is compared with the first one, over all questions of the run."""
    points = [TargetPoint(names[trial.target_id], trial.point, part=trial.part) for trial in trials]
    factors = [question.about for question in questions_of(points) if question.about] if points else []
    count = 0
    for about in factors:
        levels = {repr(_level(point, about)) for point in points}
        count += len(points) * (len(levels) - 1) // len(levels)
    return count


def _level(point: TargetPoint, about: str) -> object:
    if about == TARGET:
        return point.target_name
    return point.part if about == PART else point.point.get(about)
