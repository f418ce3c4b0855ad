"""Rounds: the repeats of a part with the rule `rounds until steady`, after SNIA PTS.

All rounds are planned when a run starts. After each complete round on a host, the bandwidth of the tracked points over
the last five rounds is judged; once all of them are steady, the remaining rounds of the part are cancelled there.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.dispatch import Signal

from webapp.core.services import audit
from webapp.core.statistics import student_t
from webapp.plans.document import Part, PlanDocument, read
from webapp.plans.grids import part_grid
from webapp.plans.points import Point
from webapp.plans.rules import TRACK, Rules
from webapp.results.models import Result
from webapp.runs.models import ENDED_TRIAL_STATES, Run, Trial, TrialState
from webapp.runs.states import cancel_these
from worker.contract.steadiness import Rounds, over_rounds
from worker.contract.workload import SNIA_ROUNDS

# Skips the repeats of a run that are not needed, because the spread between its trials is known well enough.
#
# All repeats are planned when a run starts. With `spread_percent` in its plan, the rest is cancelled on a host once
# the 95 % interval of every point there, by Student's t over its repeats, is within that percentage of its mean. A
# repeat is a block: it is run completely or not at all, because comparisons average inside blocks
# (docs/understanding/comparisons.md).

# Sent after results of a plan with `decide_percent`: run_id, host_id, document. The app that compares listens.
repeats_to_decide = Signal()
# Sent after results of a plan with a limit of time: run_id, host_id. The app that searches listens.
time_to_check = Signal()
SPREAD_KNOWN = "spread_known"  # reason code of the trials that are not needed


def after_results(run_id: UUID, host_id: UUID) -> None:
    """Skip what the host's new results of the run make needless. Each rule has a transaction of its own."""
    document = read(Run.objects.select_related("version").get(pk=run_id).version.document)
    if document.spread_percent:
        _skip_known_repeats(run_id, host_id, document)
    if tracking := dict(_tracking(document)):
        _skip_steady_rounds(run_id, host_id, tracking)
    if document.decide_percent:
        repeats_to_decide.send_robust(Run, run_id=run_id, host_id=host_id, document=document)
    if document.budget_s:
        time_to_check.send_robust(Run, run_id=run_id, host_id=host_id)


@transaction.atomic
def _skip_known_repeats(run_id: UUID, host_id: UUID, document: PlanDocument) -> int:
    """Cancel the host's planned trials of the run if they are not needed; return their number."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    here = run.trials.all() if run.one_at_a_time else run.trials.filter(host=host_id)
    planned, repeats = left_of(here)
    if repeats < document.repeats_min:
        return 0
    if not _all_known(run, planned, document.repeats_min, document.spread_percent / 100):
        return 0
    fields = {"repeats": repeats, "percent": document.spread_percent}
    cancel_these(run, planned, code=SPREAD_KNOWN, fields=fields)
    audit(by=None, action="run.skip_repeats", on=run, detail={"host": str(host_id), "trials": len(planned), **fields})
    return len(planned)


def left_of(trials: QuerySet[Trial]) -> tuple[list[Trial], int]:
    """The planned ones, locked, and the number of repeats that are complete; 0 while one of them is running."""
    planned = list(
        trials.filter(state=TrialState.PLANNED).select_for_update(no_key=True, of=("self",)).order_by("index")
    )
    repeats = min((trial.repeat for trial in planned), default=1) - 1
    running = trials.filter(repeat__lte=repeats).exclude(state__in=ENDED_TRIAL_STATES)
    return planned, 0 if running.exists() else repeats


def _all_known(run: Run, planned: Sequence[Trial], least: int, allowed: float) -> bool:
    rates: dict[tuple[UUID, str], list[float]] = defaultdict(list)
    valid = Result.objects.filter(run=run, invalid=False).order_by()
    for target, point, _trial, rate in valid.values_list("trial__target", "trial__point_key", "trial").annotate(
        Sum("bytes_per_s")
    ):
        rates[target, point].append(rate)
    rates_of_trials = [rates[trial.target_id, trial.point_key] for trial in planned]
    return all(len(trial_rates) >= least and interval(trial_rates) <= allowed for trial_rates in rates_of_trials)


def interval(rates: Sequence[float]) -> float:
    """Half width of the 95 % interval of the mean, as a fraction of it; infinite for fewer than two values."""
    if len(rates) < 2 or not any(rates):
        return float("inf")
    return student_t(len(rates) - 1) * stdev(rates) / sqrt(len(rates)) / fmean(rates)


RUNS_TOLD = 5  # in a comparison
ROUNDS_STEADY = "rounds_steady"  # reason code of the trials that are not needed


@dataclass(frozen=True)
class Tracked:
    """One tracked point on its targets, with its valid bandwidth by round."""

    part: str
    trial: Trial  # of the first round
    rates: dict[int, float]

    @property
    def point(self) -> Point:
        point: Point = self.trial.point
        return point

    @property
    def count(self) -> int:
        return len(self.rates)

    @property
    def verdict(self) -> Rounds | None:
        """Over the last five rounds; None if one of them is missing."""
        last = max(self.rates, default=0)
        window = [self.rates.get(repeat) for repeat in range(last - SNIA_ROUNDS + 1, last + 1)]
        known = [rate for rate in window if rate is not None]
        return over_rounds(known) if len(known) == SNIA_ROUNDS else None


@transaction.atomic
def _skip_steady_rounds(run_id: UUID, host_id: UUID, tracking: Mapping[str, Rules]) -> int:
    """Cancel the host's planned trials of parts whose tracked points are steady; return their number."""
    run = Run.objects.select_for_update(no_key=True).get(pk=run_id)
    return sum(_skip(run, host_id, name, rules) for name, rules in tracking.items())


def _skip(run: Run, host_id: UUID, part: str, rules: Rules) -> int:
    planned, rounds = left_of(run.trials.filter(host=host_id, part=part))
    if not planned or rounds < SNIA_ROUNDS:
        return 0
    points = [each for each in _points(run, part, rules) if each.trial.host_id == host_id]
    if not all(max(each.rates, default=0) == rounds and _is_steady(each) for each in points):
        return 0
    cancel_these(run, planned, code=ROUNDS_STEADY, fields={"rounds": rounds})
    detail = {"host": str(host_id), "part": part, "trials": len(planned), "rounds": rounds}
    audit(by=None, action="run.skip_rounds", on=run, detail=detail)
    return len(planned)


def _is_steady(point: Tracked) -> bool:
    return point.verdict is not None and point.verdict.steady


def tracked_points(run: Run) -> list[Tracked]:
    """The tracked points of a run, in the order of its parts; its version must have been fetched with it."""
    tracking = _tracking(read(run.version.document))
    return [point for name, rules in tracking for point in _points(run, name, rules)]


def rounds_sentences(numbers: Collection[int]) -> Iterator[str]:
    """How many tracked points are steady, for the first of these runs that have rounds. One query if none has."""
    runs = Run.objects.filter(number__in=numbers, version__document__parts__icontains=TRACK).select_related("version")
    for run in runs.order_by("number")[:RUNS_TOLD]:
        points = tracked_points(run)
        steady = sum(map(_is_steady, points))
        yield (
            f"Run {run.number} was measured in rounds after SNIA PTS 2.0: {steady} of {len(points)} tracked points are "
            "steady over the last five rounds."
        )


def _tracking(document: PlanDocument) -> Iterator[tuple[str, Rules]]:
    return ((part.name, part_grid(document, part).rules) for part in document.parts if _tracks(part))


def _tracks(part: Part) -> bool:
    return any(rule.strip().startswith(TRACK) for rule in part.rules)


def _points(run: Run, part: str, rules: Rules) -> list[Tracked]:
    trials = run.trials.filter(part=part, repeat=1).select_related("target__host").prefetch_related("further")
    tracked = [trial for trial in trials.order_by("index") if rules.tracks(trial.point)]
    rates: dict[tuple[UUID, str], dict[int, float]] = defaultdict(dict)
    valid = Result.objects.filter(run=run, invalid=False, trial__part=part).order_by()
    rows = valid.values_list("trial__target", "trial__point_key", "repeat").annotate(Sum("bytes_per_s"))
    for target, key, repeat, rate in rows:
        rates[target, key][repeat] = rate
    return [Tracked(part, trial, rates[trial.target_id, trial.point_key]) for trial in tracked]
