"""Starts and cancels runs."""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.formatting import bytes_decimal
from webapp.core.models import Counter, User
from webapp.core.services import audit, count, counted
from webapp.hosts.maintenance_windows import open_window
from webapp.hosts.models import Host, HostState, Target
from webapp.hosts.sessions import second_worker_words
from webapp.plans.document import PlanDocument, read
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, PlannedTrial, expand, in_order
from webapp.plans.factors import HOSTS_AT_ONCE
from webapp.plans.grids import PartGrid
from webapp.plans.models import PlanVersion
from webapp.plans.points import steps_of
from webapp.plans.preflight import EnduranceUse, capabilities, destroyed, destroys, endurance_uses, missing_parts
from webapp.plans.search_space import within_budget
from webapp.plans.selectors import facts_for
from webapp.runs.arming import arm, refuse_untyped
from webapp.runs.dispatch.dispatcher import dispatch_after_commit
from webapp.runs.dispatch.ending import UNACCEPTED_GRACE_SECONDS, add_batches, end_finished_run
from webapp.runs.dispatch.queue import HEARD_WITHIN_SECONDS, lock_queue, position_for
from webapp.runs.durations import experience_of
from webapp.runs.models import Attempt, AttemptKind, AttemptState, FurtherTarget, Priority, Run, RunState, Trial
from webapp.runs.reasons import Fields, sentence
from webapp.runs.states import ENDED_RUN_STATES, cancel_planned_trials, locked_run
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD

# Checks before a run starts: hosts online, capabilities available, drives armed.


def refuse_unfit_hosts(targets: Sequence[Target]) -> None:
    """Check targets and hosts. Raises Refusal for the first one that cannot be used now."""
    if not targets:
        raise Refusal("target_unavailable", "Choose at least one target.")
    for target in targets:
        refuse_target(target)
        refuse_host(target.host)


def refuse_target(target: Target) -> None:
    if not target.in_policy:
        raise Refusal("target_unavailable", f"{target} is no longer in the policy file of its host.")
    if not target.present:
        why = target.problem or "not found"
        raise Refusal("target_unavailable", f"{target} is unavailable: {why}.")


def refuse_host(host: Host, *, also_in_maintenance: bool = False) -> None:
    """Raises Refusal if the host cannot take orders now. Host actions are allowed during maintenance."""
    usable = (HostState.ACTIVE, HostState.MAINTENANCE) if also_in_maintenance else (HostState.ACTIVE,)
    if host.state not in usable:
        raise Refusal("host_unavailable", f"Host {host} is {host.get_state_display().lower()} and takes no runs.")
    if not also_in_maintenance and (window := open_window(host.pk)):
        raise Refusal("host_unavailable", f"Host {host} is {window} and takes no runs.")
    if second := second_worker_words(host):
        raise Refusal("host_unavailable", f"Host {host}: {second}")
    heard_since = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    if host.last_seen_at is None or host.last_seen_at < heard_since:
        raise Refusal("host_unavailable", f"Host {host} is offline. Check that its worker is running.")
    if not OLDEST_UNDERSTOOD <= host.contract <= CONTRACT_VERSION:
        raise Refusal(
            "host_unavailable", f"The worker of host {host} uses another contract version. Update the worker."
        )


def refuse_unfit_trials(trials: Iterable[PlannedTrial], targets: Sequence[Target]) -> None:
    """Raises Refusal with everything that the plan needs and a host does not support."""
    for host in {target.host for target in targets}:
        if capabilities(host) is None:
            raise Refusal(
                "host_unavailable", f"Host {host} has not reported its capabilities yet. Wait a minute and try again."
            )
    if missing := missing_parts(trials, targets):
        raise Refusal(
            "capability_missing",
            f"Not supported by the host: {'; '.join(missing)}. Remove these levels in a copy of the plan, or choose "
            "another host.",
        )


def obstacles(expansion: Expansion, targets: Sequence[Target]) -> list[str]:
    """Why a run of a plan without problems would be refused on these targets, whatever the state of their hosts."""
    if not expansion.trials:
        return ["No trial can run on these targets."]
    try:
        refuse_unfit_trials(expansion.trials, targets)
        refuse_worn(expansion, targets)
    except Refusal as refusal:
        return [refusal.message]
    return []


def unfit_targets(
    document: PlanDocument, targets: Sequence[Target], expansion: Expansion, grids: Sequence[PartGrid]
) -> dict[UUID, str]:
    """Why no run can start now because of a target, by its id. `expansion` is the plan on all `targets`, whose hosts
    must be fetched with them.

    A target on which the plan cannot run is named only if the plan uses one target at a time: a plan that uses several
    at once runs on none alone.
    """
    is_valid = not any(grid.problems for grid in grids)
    one_at_a_time = all(at_once.all_targets == 1 for grid in grids for at_once in grid.by_targets)
    try_alone = is_valid and one_at_a_time and bool(expansion.problems or obstacles(expansion, targets))
    reasons: dict[UUID, str] = {}
    for target in targets:
        try:
            refuse_unfit_hosts([target])
        except Refusal as refusal:
            reasons[target.pk] = refusal.message
            continue
        if try_alone:
            alone = expand(document, facts_for(document, [target]), seed=0, grids=grids)
            wrong_kind = alone.skipped if all(target.kind not in grid.kinds for grid in grids) else ()
            if words := (*wrong_kind, *alone.problems, *obstacles(alone, [target])):
                reasons[target.pk] = words[0]
    return reasons


def refuse_worn(expansion: Expansion, targets: Sequence[Target]) -> None:
    """Raises Refusal if more could be written to a drive than its host's policy or its remaining rated endurance
    allows."""
    for use in endurance_uses(expansion, estimate(expansion), targets):
        if use.over_limit:
            raise Refusal("write_limit_exceeded", _over_limit(use))
        if use.too_much:
            raise Refusal("endurance_exceeded", _too_much(use))


def _over_limit(use: EnduranceUse) -> str:
    return (
        f"The plan could write {bytes_decimal(use.bytes_most)} to {use.target}, but the policy of its host allows "
        f"{bytes_decimal(use.limit_bytes)} per run (max_write_bytes). Write less, for example "
        "with an amount instead of a run time."
    )


def _too_much(use: EnduranceUse) -> str:
    rating, left = use.endurance.rating, use.endurance.left_bytes
    assert rating is not None
    return (
        f"The plan could write {bytes_decimal(use.bytes_most)} to {use.target}, but of its rated endurance of "
        f"{bytes_decimal(rating.rated_bytes)} ({rating.source}) {bytes_decimal(left)} is left. Write less, for example "
        "with an amount instead of a run time, or delete the rating on the page of the target."
    )


def refuse_unarmed(
    trials: Iterable[PlannedTrial], targets: Sequence[Target], armed: Sequence[str], *, by: User | None
) -> None:
    """Raises Refusal unless the policy allows overwriting every destroyed target and its serial was typed."""
    taken = destroyed(trials, targets)
    for target in taken:
        if not target.destroy:
            raise Refusal(
                "not_destroyable",
                f"The plan overwrites {target}, but the policy of its host does not allow that. "
                "Its administrator can set destroy = true for it.",
            )
    refuse_untyped(taken, armed, by=by)


NO_HISTORY_MARGIN = 0.5  # of the expected time on hosts without earlier runs
TRIALS_AT_ONCE = 500  # in one statement; a row and its SQL take about 20 KiB of memory


class StartRefused(Refusal):
    """The run cannot be started with these options."""


@dataclass(frozen=True)
class StartOptions:
    """Options of a start, with their defaults."""

    again_of: Run | None = None
    keep: Callable[[PlannedTrial], bool] | None = None  # only these trials of the plan
    request_id: UUID | None = None  # the same id twice starts one run
    priority: Priority = Priority.NORMAL
    label: str = ""  # label of its host in a group
    armed_by: User | None = None  # the person who armed it, if not the one who starts it
    armed_until: datetime | None = None  # end of the arming; default: the usual time from now


def start_run(
    *,
    version: PlanVersion,
    targets: Sequence[Target],
    by: User | None,
    armed: Sequence[str] = (),
    seed: int | None = None,
    note: str = "",
    options: StartOptions | None = None,
) -> Run:
    """Create a run with all its trials and send the first ones. `armed` are the serial numbers that the person typed.

    Raises StartRefused: target_unavailable, host_unavailable, plan_problem, plan_too_large, capability_missing,
    write_limit_exceeded, endurance_exceeded, not_armed, token_may_not_arm.
    """
    options = options or StartOptions()
    if before := _started_before(options):
        return before
    known = Target.objects.select_related("host").in_bulk([target.pk for target in targets])
    fresh = [known[pk] for pk in dict.fromkeys(target.pk for target in targets) if pk in known]
    seed = secrets.randbelow(2**53) if seed is None else seed
    document = read(version.document)
    if document.goal and options.keep:
        raise StartRefused("search_is_whole", "A search chooses its trials itself. Run all of it again.")
    try:
        refuse_unfit_hosts(fresh)
        expansion = _wanted_trials(_expanded(document, fresh, seed), options)
        refuse_unfit_trials(expansion.trials, fresh)
        refuse_worn(expansion, fresh)
        refuse_unarmed(expansion.trials, fresh, armed, by=by)
    except Refusal as refusal:
        raise StartRefused(refusal.code, refusal.message) from refusal
    return _create_run(version, document, fresh, expansion, by, armed, seed, note, options)


def _started_before(options: StartOptions) -> Run | None:
    return Run.objects.filter(request_id=options.request_id).first() if options.request_id else None


def _wanted_trials(expansion: Expansion, options: StartOptions) -> Expansion:
    """The expansion with only the wanted trials, in the same order. The first of them does the steps done once."""
    if options.keep is None:
        return expansion
    trials = [trial for trial in expansion.trials if options.keep(trial)]
    if not trials:
        raise Refusal("plan_problem", "The plan no longer contains any of these trials.")
    return replace(expansion, trials=tuple(in_order(trials)))


def _expanded(document: PlanDocument, targets: Sequence[Target], seed: int) -> Expansion:
    expansion = expand(document, facts_for(document, targets), seed=seed)
    if expansion.problems:
        raise Refusal(expansion.problem_code, " ".join(expansion.problems)[:4000])
    if not expansion.trials:
        raise Refusal("plan_problem", "No part of the plan runs on these targets. " + " ".join(expansion.skipped))
    return expansion


@transaction.atomic
def _create_run(
    version: PlanVersion, document: PlanDocument, targets: Sequence[Target], expansion: Expansion,
    by: User | None, armed: Sequence[str], seed: int, note: str,
    options: StartOptions,
) -> Run:  # fmt: skip
    number = _next_number()
    if known := _started_before(options):
        return known
    run = Run.objects.create(
        number=number,
        queue_position=position_for(options.priority),
        priority=options.priority,
        label=options.label,
        again_of=options.again_of,
        request_id=options.request_id,
        version=version,
        target_order=[str(target.pk) for target in targets],
        one_at_a_time=any(HOSTS_AT_ONCE in planned.point for planned in expansion.trials),
        seed=seed,
        trial_count=len(within_budget(expansion).trials),
        budget=expansion.budget,
        budget_s=expansion.budget_s or None,
        expected_most_s=_expected_most_s(expansion, targets),
        note=note,
        created_by=by,
    )
    run.targets.set(targets)
    if armed:
        drives = [target for target in targets if target.arming_serial in armed]
        arm(run=run, serials=armed, targets=drives, by=options.armed_by or by, until=options.armed_until)
    if run.budget is None:
        add_trials(run, expansion.trials, targets, document.retries)
    elif not add_batches(run):
        raise RuntimeError(f"The search of {run} did not begin.")
    detail = {"plan": str(version), "targets": [str(target) for target in targets], "armed": list(armed)}
    audit(by=by, action="run.start", on=run, detail=detail)
    dispatch_after_commit(run)
    return run


def add_trials(
    run: Run, planned: Sequence[PlannedTrial], targets: Sequence[Target], retries: int,
    batch: int | None = None, *, is_final: bool = False,
) -> None:  # fmt: skip
    """Create these trials of the run. `batch` and `is_final`: of a search."""
    by_id = {str(target.pk): target for target in targets}
    for start in range(0, len(planned), TRIALS_AT_ONCE):
        some = planned[start : start + TRIALS_AT_ONCE]
        trials = [_trial(run, each, by_id[each.target_id], retries, batch, is_final=is_final) for each in some]
        Trial.objects.bulk_create(trials)
        FurtherTarget.objects.bulk_create(
            FurtherTarget(trial=trial, stream=stream, target_id=target_id)
            for trial, each in zip(trials, some, strict=True)
            for stream, target_id in enumerate(each.further_ids, start=1)
        )


def _expected_most_s(expansion: Expansion, targets: Sequence[Target]) -> float | None:
    """None if a part of the time is unknown, such as that of a purge. Without earlier runs on these hosts, with a
    margin."""
    expected = estimate(expansion, experience_of(targets))
    purges = any(trial.before.purge for trial, _ in expansion.distinct)
    if expected.unknown_trials or expected.unknown_builds or purges:
        return None
    return expected.seconds_high * (1.0 if expected.learned_runs else 1.0 + NO_HISTORY_MARGIN)


def _next_number() -> int:
    """A number is never used twice, because saved comparisons name runs by it."""
    lock_queue()
    highest: int | None = Run.objects.aggregate(highest=Max("number"))["highest"]
    return max(highest or 0, counted(Counter.RUNS, "")) + 1


@transaction.atomic
def retire_number(number: int) -> None:
    """Give the number of a run that will be deleted to no later run."""
    lock_queue()
    count(Counter.RUNS, "", by=max(0, number - counted(Counter.RUNS, "")))


def _trial(
    run: Run, planned: PlannedTrial, target: Target, retries: int, batch: int | None, *, is_final: bool
) -> Trial:
    before = steps_of(planned.point).first
    destructive = any(destroys(each.workload, planned.kind, each.layout, before) for each in planned.streams)
    return Trial(
        run=run,
        index=planned.index,
        repeat=planned.repeat,
        batch=batch,
        is_final=is_final,
        part=planned.part,
        host_id=target.host_id,
        target=target,
        point=msgspec.to_builtins(planned.point),
        point_key=planned.point_key,
        workload=msgspec.to_builtins(planned.workload),
        further_workloads=[msgspec.to_builtins(work) for work in planned.workloads[1:]],
        settings=dict(planned.settings),
        drop_caches=planned.drop_caches,
        destructive=destructive,
        attempts_left=1 if destructive else 1 + retries,
    )


@transaction.atomic
def cancel_run(*, run: Run, by: User | None, code: str = "", fields: Fields | None = None) -> None:
    """Cancel a run: cancel planned trials, stop running ones and restore settings. Safe to repeat.

    `code` and `fields` are the reason of an automatic cancellation: see runs.reasons.
    """
    locked = locked_run(run)
    if locked.state in ENDED_RUN_STATES or locked.state == RunState.CLOSING or locked.cancel_requested_at:
        return
    locked.cancel_requested_at, locked.cancel_code, locked.cancel_fields = timezone.now(), code, fields or {}
    locked.save(update_fields=["cancel_requested_at", "cancel_code", "cancel_fields"])
    cancelled = cancel_planned_trials(locked)
    _shorten_unaccepted(locked)
    audit(by=by, action="run.cancel", on=locked, detail={"trials": cancelled, "reason": sentence(code, fields or {})})
    end_finished_run(locked.pk)
    dispatch_after_commit(locked)
    run.refresh_from_db(fields=["state", "cancel_requested_at", "ended_at"])


def _shorten_unaccepted(run: Run) -> None:
    """Shorten the leases of unaccepted orders, which the broker may have lost."""
    until = timezone.now() + timedelta(seconds=UNACCEPTED_GRACE_SECONDS)
    Attempt.objects.filter(
        run=run, kind=AttemptKind.TRIAL, state=AttemptState.DISPATCHED, lease_until__gt=until
    ).update(lease_until=until)
