"""Starts a run again: the same plan version on the same targets, all trials or the failed ones.

Trials that the failure limit cancelled count as failed.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.expand import PlannedTrial
from webapp.runs.dispatch.failure_limit import STOPPED
from webapp.runs.models import Run, TrialState
from webapp.runs.services import StartOptions, start_run

Key = tuple[str, str, str, int]


def run_again(
    *,
    run: Run,
    by: User | None,
    same_seed: bool = False,
    only_failed: bool = False,
    armed: Sequence[str] = (),
    note: str = "",
    request_id: UUID | None = None,
) -> Run:
    """Start the run again. Raises Refusal nothing_failed, and StartRefused like any start.

    The same seed repeats the order of the trials; a new seed shuffles them again.
    """
    failed = _failed(run)
    if only_failed and not failed:
        raise Refusal("nothing_failed", f"No trial of run {run.number} failed.")
    keep = (lambda trial: _key(trial) in failed) if only_failed else None
    return start_run(
        version=run.version,
        targets=_as_chosen(run),
        by=by,
        armed=armed,
        seed=run.seed if same_seed else None,
        note=note,
        options=StartOptions(again_of=run, keep=keep, request_id=request_id, label=run.label),
    )


def _as_chosen(run: Run) -> list[Target]:
    """The run's targets, in the order that determines groups of targets at once."""
    places = {pk: place for place, pk in enumerate(run.target_order)}
    return sorted(run.targets.all(), key=lambda target: places.get(str(target.pk), len(places)))


def _failed(run: Run) -> set[Key]:
    rows = run.trials.filter(Q(state=TrialState.FAILED) | Q(reason_code=STOPPED)).values_list(
        "target", "part", "point_key", "repeat"
    )
    return {(str(target), part, point_key, repeat) for target, part, point_key, repeat in rows}


def _key(trial: PlannedTrial) -> Key:
    return trial.target_id, trial.part, trial.point_key, trial.repeat
