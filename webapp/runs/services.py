"""Starting and cancelling runs."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

import msgspec
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument, read
from webapp.plans.expand import Expansion, PlannedTrial, expand
from webapp.plans.models import PlanVersion
from webapp.plans.selectors import facts_of
from webapp.runs.dispatch import dispatch_host
from webapp.runs.ending import settle_run
from webapp.runs.models import Attempt, AttemptKind, AttemptState, Run, RunState, Trial
from webapp.runs.readiness import destroys, refuse_unarmed, refuse_unfit_hosts, refuse_unfit_trials
from webapp.runs.states import ENDED_RUN_STATES, cancel_planned_trials
from worker.contract.workload import TargetKind

# An order that was not accepted when its run is cancelled is waited for this long (s).
UNACCEPTED_GRACE_SECONDS = 30
_NUMBER_LOCK = 0x72_756E_6E6F


class StartRefused(Refusal):
    """The run cannot be started as asked for."""


def start_run(
    *,
    version: PlanVersion,
    targets: Sequence[Target],
    by: User | None,
    armed: Sequence[str] = (),
    seed: int | None = None,
    note: str = "",
) -> Run:
    """Plan all trials of a new run and send the first ones. `armed` are the serials typed by the person.

    Raises StartRefused: target_unavailable, host_unavailable, plan_problem, capability_missing, not_armed.
    """
    fresh = list(Target.objects.filter(pk__in=[target.pk for target in targets]).select_related("host"))
    seed = secrets.randbelow(2**53) if seed is None else seed
    document = read(version.document)
    try:
        refuse_unfit_hosts(fresh)
        expansion = _expanded(document, fresh, seed)
        refuse_unfit_trials(expansion.trials, fresh)
        refuse_unarmed(expansion.trials, fresh, armed)
    except Refusal as refusal:
        raise StartRefused(refusal.code, refusal.message) from refusal
    return _create_run(version, document, fresh, expansion, by, armed, seed, note)


def _expanded(document: PlanDocument, targets: Sequence[Target], seed: int) -> Expansion:
    expansion = expand(document, [facts_of(target) for target in targets], seed=seed)
    if expansion.problems:
        raise Refusal("plan_problem", " ".join(expansion.problems)[:4000])
    if not expansion.trials:
        raise Refusal("plan_problem", "There is nothing to run on these targets. " + " ".join(expansion.skipped))
    return expansion


@transaction.atomic
def _create_run(
    version: PlanVersion, document: PlanDocument, targets: Sequence[Target], expansion: Expansion,
    by: User | None, armed: Sequence[str], seed: int, note: str,
) -> Run:  # fmt: skip
    now = timezone.now()
    run = Run.objects.create(
        number=_next_number(),
        version=version,
        seed=seed,
        trial_count=len(expansion.trials),
        armed_serials=list(armed),
        armed_until=now + timedelta(seconds=settings.ARMING_SECONDS) if armed else None,
        note=note,
        created_by=by,
    )
    run.targets.set(targets)
    by_id = {str(target.pk): target for target in targets}
    Trial.objects.bulk_create(
        _trial(run, planned, by_id[planned.target_id], document.retries) for planned in expansion.trials
    )
    detail = {"plan": str(version), "targets": [str(target) for target in targets], "armed": list(armed)}
    audit(by=by, action="run.start", subject=str(run), detail=detail)
    for host_id in {target.host_id for target in targets}:
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]
    return run


def _next_number() -> int:
    """The next run's number; the lock is held until the commit, so numbers have no gaps and no twins."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_NUMBER_LOCK])
    highest: int | None = Run.objects.aggregate(highest=Max("number"))["highest"]
    return (highest or 0) + 1


def _trial(run: Run, planned: PlannedTrial, target: Target, retries: int) -> Trial:
    destructive = destroys(planned.workload, TargetKind(target.kind))
    return Trial(
        run=run,
        index=planned.index,
        repeat=planned.repeat,
        part=planned.part,
        host_id=target.host_id,
        target=target,
        point=msgspec.to_builtins(planned.point),
        point_key=planned.point_key,
        workload=msgspec.to_builtins(planned.workload),
        settings=dict(planned.settings),
        drop_caches=planned.drop_caches,
        destructive=destructive,
        attempts_left=1 if destructive else 1 + retries,
    )


@transaction.atomic
def cancel_run(*, run: Run, by: User | None) -> None:
    """Cancel what has not begun, ask what is under way to stop, and put settings back. Twice is the same as once."""
    locked = Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.state in ENDED_RUN_STATES or locked.state == RunState.CLOSING or locked.cancel_requested_at:
        return
    locked.cancel_requested_at = timezone.now()
    locked.save(update_fields=["cancel_requested_at"])
    cancelled = cancel_planned_trials(locked)
    _shorten_unaccepted(locked)
    audit(by=by, action="run.cancel", subject=str(locked), detail={"trials": cancelled})
    settle_run(locked.pk)
    for host_id in locked.trials.order_by().values_list("host_id", flat=True).distinct():
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]
    run.refresh_from_db(fields=["state", "cancel_requested_at", "ended_at"])


def _shorten_unaccepted(run: Run) -> None:
    """An order nobody has accepted may have been lost with the broker: it is not waited for a whole lease."""
    until = timezone.now() + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    Attempt.objects.filter(
        run=run, kind=AttemptKind.TRIAL, state=AttemptState.DISPATCHED, lease_until__gt=until
    ).update(lease_until=until)
