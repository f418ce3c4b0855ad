"""Runs and trials: planned ones, and the run of First look with plausible progress."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db.models import Max, OuterRef, Subquery
from django.utils import timezone

from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.plans.preflight import destroys
from webapp.runs.models import Attempt, Run, RunState, Transition, Trial
from webapp.runs.reasons import message_fields
from webapp.tests.factories.plans import a_version
from worker.contract.workload import FioWorkload, IoEngine, Pattern, TargetKind


def next_number() -> int:
    return 1 + (Run.objects.aggregate(highest=Max("number"))["highest"] or 0)


def a_run(*targets: Target, trials: int = 2, pattern: Pattern = Pattern.RANDREAD, **changes: Any) -> Run:
    """A queued run with so many planned trials on each target; nothing is dispatched."""
    fields: Mapping[str, Any] = {
        "number": next_number(), "version": a_version(), "seed": 7, "trial_count": trials * len(targets),
        "armed_serials": [], "armed_until": timezone.now() + timedelta(hours=1),
    }  # fmt: skip
    run = Run.objects.create(**{**fields, **changes})
    run.targets.set(targets)
    for place, (repeat, target) in enumerate(itertools.product(range(1, trials + 1), targets)):
        a_trial(run, target, index=place, repeat=repeat, pattern=pattern)
    return run


def a_trial(run: Run, target: Target, *, index: int, repeat: int = 1, pattern: Pattern = Pattern.RANDREAD) -> Trial:
    workload = FioWorkload(pattern=pattern, iodepth=32, runtime_s=3, size_bytes=2**26)
    destructive = destroys(workload, TargetKind(target.kind))
    return Trial.objects.create(
        run=run, index=index, repeat=repeat, part="random", host=target.host, target=target,
        point={"pattern": pattern.value, "block_size": 4096, "iodepth": 32}, point_key=f"key-{pattern}",
        workload=msgspec.to_builtins(workload), settings={"scheduler": "none"}, destructive=destructive,
        attempts_left=1 if destructive else 2,
    )  # fmt: skip


# ---- the run of First look


def _points() -> list[tuple[str, dict[str, Any]]]:
    """The grid of FIRST_LOOK: name of the part and levels."""
    common = {"numjobs": 1, "direct": True, "sync_depth": "threads", "size": 2**30, "runtime": 3, "scheduler": "none"}
    random_part = itertools.product(("randread", "randwrite"), (4096,), (1, 32))
    sequential = itertools.product(("read", "write"), (131072,), (8,))
    grid = [("random", levels) for levels in random_part] + [("sequential", levels) for levels in sequential]
    return [
        (part, {"pattern": pattern, "block_size": block, "ioengine": engine, "iodepth": depth, **common})
        for part, (pattern, block, depth) in grid
        for engine in ("io_uring", "psync")
    ]


def first_look_run(
    version: PlanVersion, targets: Sequence[Target], by: User | None = None, repeats: int = 3, **changes: Any
) -> Run:
    """A run with all its trials planned."""
    points = _points()
    fields: dict[str, Any] = {"state": RunState.RUNNING, "seed": 7, "created_by": by, "started_at": timezone.now()}
    run = Run.objects.create(
        number=next_number(), version=version, trial_count=len(points) * repeats * len(targets),
        **(fields | changes),
    )  # fmt: skip
    run.targets.set(targets)
    places = itertools.product(range(1, repeats + 1), targets, points)
    Trial.objects.bulk_create(
        _planned(run, index, repeat, target, part, point)
        for index, (repeat, target, (part, point)) in enumerate(places)
    )
    return run


def _planned(run: Run, index: int, repeat: int, target: Target, part: str, point: dict[str, Any]) -> Trial:
    key = hashlib.sha256(json.dumps(point, sort_keys=True).encode()).hexdigest()
    workload = FioWorkload(
        pattern=Pattern(point["pattern"]), block_bytes=point["block_size"], ioengine=IoEngine(point["ioengine"]),
        iodepth=point["iodepth"], size_bytes=2**30, runtime_s=3,
    )  # fmt: skip
    return Trial(
        run=run, index=index, repeat=repeat, part=part, host_id=target.host_id, target=target, point=point,
        point_key=key, workload=msgspec.to_builtins(workload), settings={"scheduler": "none"},
    )  # fmt: skip


def start_trial(trial: Trial, at: datetime | None = None) -> Attempt:
    """An attempt that is running now."""
    at = at or timezone.now()
    attempt = Attempt.objects.create(
        kind="trial", run=trial.run, trial=trial, host=trial.host, state="running", started_at=at,
        lease_until=at + timedelta(minutes=15), phase={"type": "phase", "at": 0.0, "name": "run"},
    )  # fmt: skip
    Attempt.objects.filter(pk=attempt.pk).update(created_at=at)
    move_trial(trial, attempt, "running", at)
    return Attempt.objects.get(pk=attempt.pk)


def move_trial(
    trial: Trial, attempt: Attempt | None, state: str, at: datetime, code: str = "", reason: str = ""
) -> None:
    before, trial.state = trial.state, state
    trial.reason_code, trial.reason_fields = code, message_fields(reason)
    trial.save(update_fields=["state", "reason_code", "reason_fields"])
    move = Transition.objects.create(
        run=trial.run,
        trial=trial,
        attempt=attempt,
        before=before,
        after=state,
        code=code,
        fields=message_fields(reason),
    )
    Transition.objects.filter(pk=move.pk).update(at=at)


def finish_moves(attempts: Sequence[Attempt]) -> None:
    """The trials of these attempts ran and are done. Their moves have the times of the attempts."""
    mine = Attempt.objects.filter(pk__in=[attempt.pk for attempt in attempts])
    trials = [attempt.trial for attempt in attempts if attempt.trial]
    Transition.objects.bulk_create(
        Transition(run=attempt.run, trial=trial, attempt=attempt, before=before, after=after)
        for attempt, trial in zip(attempts, trials, strict=True)
        for before, after in ((trial.state, "running"), ("running", "done"))
    )
    for state, time in (("running", "started_at"), ("done", "ended_at")):
        moved_at = Subquery(mine.filter(pk=OuterRef("attempt")).values(time))
        Transition.objects.filter(attempt__in=mine, after=state).update(at=moved_at)
    fields: dict[str, Any] = {"state": "done", "reason_code": "", "reason_fields": message_fields("")}
    ended_at = Subquery(mine.filter(trial=OuterRef("pk")).values("ended_at"))
    Trial.objects.filter(attempts__in=mine).update(**fields, ended_at=ended_at)
    for trial in trials:
        vars(trial).update(fields)


def end_attempt(attempt: Attempt) -> None:
    """Make room on the host for the next one."""
    Attempt.objects.filter(pk=attempt.pk).update(state="done", ended_at=timezone.now())


def fail_trial(trial: Trial, code: str = "engine_missing", reason: str = "fio 3.33 on storage1 has no psync.") -> None:
    now = timezone.now()
    attempt = start_trial(trial, now)
    Attempt.objects.filter(pk=attempt.pk).update(
        state="failed", ended_at=now, outcome_code=code, outcome_fields=message_fields(reason)
    )
    move_trial(trial, attempt, "failed", now, code, reason)
    Trial.objects.filter(pk=trial.pk).update(ended_at=now)
