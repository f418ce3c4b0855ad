"""The rates of trials at a share of the load, from the results of the `max` trials of the same point."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.dispatch import Signal

from webapp.core.services import audit
from webapp.plans.load import LOAD, at_maximum, fio_workload, is_share, open_loop
from webapp.plans.points import Point, point_key
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import cancel_these

# Sent with `run`, `target_id`, `part` and `key` of a point. The app that has the results listens, and returns the mean
# IOPS of each direction over the valid trials of this point, reads first; () without any.
maximum_wanted = Signal()

NO_MAXIMUM, RATE_TOO_LOW = "no_maximum", "rate_too_low"  # reason codes of shares that cannot run


def key_of_maximum(point: Point) -> str:
    """The key of the point whose IOPS the shares at this point refer to."""
    return point_key(at_maximum(point))


def set_rate(trial: Trial) -> str:
    """Give the trial the workload of its share of the load. The code of the reason if it cannot run, else "". A new
    attempt has the rate of the first one. The run is locked."""
    (planned,) = map(fio_workload, trial.workloads)
    if planned.options.rate_iops is not None:
        return ""
    maximum = _maximum(trial)
    if not maximum:
        return NO_MAXIMUM
    work = open_loop(planned, int(trial.point[LOAD]), maximum)
    if work is None:
        return RATE_TOO_LOW
    trial.workload = msgspec.to_builtins(work)
    trial.save(update_fields=["workload"])
    return ""


def _maximum(trial: Trial) -> Sequence[float]:
    key = key_of_maximum(trial.point)
    replies = maximum_wanted.send(Trial, run=trial.run_id, target_id=trial.target_id, part=trial.part, key=key)
    maximum: Any = replies[0][1]
    return tuple(maximum)


def stop_without_rate(run: Run, trial: Trial, code: str) -> None:
    """Cancel the planned shares of the same point that cannot run for this reason."""
    alike = run.trials.filter(state=TrialState.PLANNED, target=trial.target_id, part=trial.part)
    alike = alike.select_for_update(no_key=True, of=("self",)).order_by("index")
    key, percent = key_of_maximum(trial.point), trial.point[LOAD]
    cancelled = [
        other
        for other in alike
        if is_share(other.point) and key_of_maximum(other.point) == key
        if code == NO_MAXIMUM or other.point[LOAD] <= percent
    ]
    cancel_these(run, cancelled, code=code)
    numbers = [each.number for each in cancelled]
    audit(by=None, action="run.skip_shares", on=run, detail={"trials": numbers, "code": code})
