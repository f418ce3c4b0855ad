"""The rates of trials at a share of the load, from the results of the `max` trials of the same point."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.dispatch import Signal

from webapp.core.services import audit
from webapp.plans.load import fio_workload, is_share, open_loop
from webapp.plans.load_points import at_maximum, shares_of
from webapp.plans.points import Point, point_key
from webapp.plans.streams import result_point
from webapp.runs.models import Run, Trial, TrialState
from webapp.runs.states import cancel_these

# Sent with `run`, `target_id`, `part` and `key` of a point of results. The app that has the results listens, and
# returns the mean IOPS of each direction over the valid trials of this point, reads first; () without any.
maximum_wanted = Signal()

NO_MAXIMUM, RATE_TOO_LOW = "no_maximum", "rate_too_low"  # reason codes of shares that cannot run


class RateUnknown(Exception):
    """The share of a stream cannot run. `code`: of the reason."""

    def __init__(self, code: str, stream: str) -> None:
        super().__init__(code)
        self.code, self.stream = code, stream


class Maximum(NamedTuple):
    """Target, part and key of the trials whose IOPS a share refers to."""

    target_id: UUID
    part: str
    key: str


def maxima_of(trial: Trial) -> dict[str, Maximum]:
    """By stream, the maximum on the stream's own target."""
    targets = trial.stream_targets
    return {
        stream: Maximum(targets[number].pk, trial.part, point_key(at_maximum(trial.point, stream)))
        for number, stream, _ in shares_of(trial.point)
    }


def set_rates(trial: Trial) -> None:
    """Give the trial the workloads of its shares of the load. Raises RateUnknown. A new attempt has the rates of the
    first one. The run is locked."""
    if not is_share(trial.point):
        return
    works = list(trial.workloads)
    for number, stream, percent in shares_of(trial.point):
        planned = fio_workload(works[number])
        if planned.options.rate_iops is not None:
            return
        maximum = _maximum(trial, number, stream)
        if not maximum:
            raise RateUnknown(NO_MAXIMUM, stream)
        work = open_loop(planned, percent, maximum)
        if work is None:
            raise RateUnknown(RATE_TOO_LOW, stream)
        works[number] = work
    trial.workload, *trial.further_workloads = map(msgspec.to_builtins, works)
    trial.save(update_fields=["workload", "further_workloads"])


def _maximum(trial: Trial, number: int, stream: str) -> Sequence[float]:
    point, target = at_maximum(trial.point, stream), trial.stream_targets[number]
    key = point_key(result_point(point, stream) if stream else point)
    replies = maximum_wanted.send(Trial, run=trial.run_id, target_id=target.pk, part=trial.part, key=key)
    maximum: Any = replies[0][1]
    return tuple(maximum)


def stop_without_rate(run: Run, trial: Trial, unknown: RateUnknown) -> None:
    """Cancel the planned shares that cannot run for this reason."""
    alike = run.trials.filter(state=TrialState.PLANNED, part=trial.part)
    alike = alike.select_related("target").prefetch_related("further")
    alike = alike.select_for_update(no_key=True, of=("self",)).order_by("index")
    stream, maximum = unknown.stream, maxima_of(trial)[unknown.stream]
    cancelled = [
        other
        for other in alike
        if maxima_of(other).get(stream) == maximum
        if unknown.code == NO_MAXIMUM or _percent(other.point, stream) <= _percent(trial.point, stream)
    ]
    cancel_these(run, cancelled, code=unknown.code)
    numbers = [each.number for each in cancelled]
    audit(by=None, action="run.skip_shares", on=run, detail={"trials": numbers, "code": unknown.code})


def _percent(point: Point, stream: str) -> int:
    return next(percent for _, name, percent in shares_of(point) if name == stream)
