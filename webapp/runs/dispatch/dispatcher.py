"""The dispatcher, the only sender of orders: gives an idle host its next order.

First come close_run orders: for runs whose trials on this host have all ended, and for paused runs once another run
needs the host or the pause has lasted long enough; such a run applies its settings again when it continues. Then come
planned trials, by index: those of the run that already works on this host, else of the first run in the queue that can
continue. The attempt and its locks are claimed in one transaction; a second transaction for the same host waits and
then finds it busy. A host with too many consecutive failed trials of a run gets no more of them (failure_limit). The
order is published after the commit; if the broker is unavailable, the next tick publishes it again.

A trial on several hosts is claimed for all of them in one transaction (several_hosts). While its run waits for one of
them, the others may do later runs that end in time (backfill).

A host that is offline gets no orders; when it is back, it first reports the state of its attempts. A host in
maintenance or in a maintenance window gets no trials, but restores settings that a run has changed.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.hosts.maintenance_windows import open_window, open_windows
from webapp.hosts.models import Host, HostState
from webapp.hosts.sessions import has_second_worker
from webapp.plans.expected_time import COMMON_START_S
from webapp.runs.dispatch.ending import add_batches, end_finished_run, lock_trial, stop_failing, stop_unprepared
from webapp.runs.dispatch.loads import RateUnknown, set_rates, stop_without_rate
from webapp.runs.dispatch.locks import free, keys_of, lock_host, take_locks, try_lock_host
from webapp.runs.dispatch.orders import about_attempt, publish
from webapp.runs.dispatch.queue import HEARD_WITHIN_SECONDS, QueueState, starts_of, waits_for_arming
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    ENDED_TRIAL_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    Trial,
    TrialState,
)
from webapp.runs.states import StaleTransition, transition_run, transition_trial

# The common start of a trial on several hosts: set once all its attempts are ready.

# In which all hosts ask for the start, read the server's clock and launch the engine.
LEAD = timedelta(seconds=COMMON_START_S)


def common_start(*, host: Host, attempt_id: UUID) -> datetime | None:
    """The start of the attempt's trial; None while other hosts are not ready. The first call makes it ready.

    Raises Refusal attempt_closed.
    """
    attempts = Attempt.objects.filter(pk=attempt_id, host=host, state__in=ACTIVE_ATTEMPT_STATES, trial__isnull=False)
    times = attempts.values_list("ready_at", "trial__common_start_at").first()
    if times is None:
        raise Refusal("attempt_closed", "This host has no such attempt, or it has ended.")
    ready_at, start_at = times
    if ready_at is None:
        return _become_ready(attempts)
    return start_at


@transaction.atomic
def _become_ready(attempts: QuerySet[Attempt]) -> datetime | None:
    """The attempt is locked before its trial, as everywhere."""
    attempt = attempts.select_for_update(no_key=True, of=("self",)).first()
    if attempt is None:
        raise Refusal("attempt_closed", "The attempt has ended.")
    trial = lock_trial(attempt)
    attempt.ready_at = timezone.now()
    attempt.save(update_fields=["ready_at"])
    tried = trial.attempts.filter(number=attempt.number)
    if tried.exclude(state__in=ACTIVE_ATTEMPT_STATES, ready_at__isnull=False).exists():
        return None
    trial.common_start_at = timezone.now() + LEAD
    trial.save(update_fields=["common_start_at"])
    return trial.common_start_at


# Runs with trials on several hosts (`Run.one_at_a_time`).
#
# A trial on several hosts has one attempt on each of them. All are created in one transaction, or none is. The trials
# of such a run never overlap, so that a host that is measured alone is really alone.
#
# Two such runs could wait for each other if each had some of the hosts. So a run gets no host while another run has
# not restored its settings on any of its hosts. It continues only while all its hosts take trials. Meanwhile the others
# are free for other runs. If it only waits for the end of a maintenance window, these runs must end in time.


def hosts_of(run: Run) -> list[Host]:
    """The hosts of a run's targets, without revoked ones, whose trials are cancelled."""
    hosts = Host.objects.filter(targets__runs=run).exclude(state=HostState.REVOKED)
    return list(hosts.order_by("pk").distinct())


def runs_that_can_continue(host_id: UUID) -> list[UUID]:
    """Open runs of this kind that use the host, have a planned trial, and whose hosts all take trials now."""
    return [
        run.pk
        for run in _runs_on_several_hosts(host_id)
        if _all_available(hosts := hosts_of(run)) and not open_windows([host.pk for host in hosts])
    ]


def _runs_on_several_hosts(host_id: UUID) -> QuerySet[Run]:
    planned = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.PLANNED, attempts_left__gt=0)
    runs = Run.objects.filter(Exists(planned), one_at_a_time=True, state__in=OPEN_RUN_STATES)
    return runs.filter(pk__in=Run.targets.through.objects.filter(target__host=host_id).values("run"))


def _all_available(hosts: Sequence[Host]) -> bool:
    """Whether all of them take trials outside their maintenance windows."""
    heard_since = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    active = all(
        host.state == HostState.ACTIVE and host.last_seen_at is not None and host.last_seen_at >= heard_since
        for host in hosts
    )
    return active and not Host.objects.filter(has_second_worker(), pk__in=[host.pk for host in hosts]).exists()


def _awaits_window(host_id: UUID) -> bool:
    """Whether a run on this host and others waits only for the end of a maintenance window of another one."""
    runs = _continuable().filter(pk__in=_runs_on_several_hosts(host_id))
    return any(_awaits_only_windows(hosts_of(run)) for run in runs)


def _awaits_only_windows(hosts: Sequence[Host]) -> bool:
    """A host in its window may be offline."""
    windows = open_windows([host.pk for host in hosts])
    return (
        bool(windows)
        and all(host.state == HostState.ACTIVE for host in hosts)
        and _all_available([host for host in hosts if host.pk not in windows])
    )


def others_wait(run: Run) -> bool:
    """Whether a trial of the run is under way, or another run has changed settings on one of its hosts."""
    active = Attempt.objects.filter(run=run, kind=AttemptKind.TRIAL, state__in=ACTIVE_ATTEMPT_STATES)
    return active.exists() or any(unclosed_runs(host.pk).exclude(pk=run.pk).exists() for host in hosts_of(run))


def unclosed_runs(host_id: UUID) -> QuerySet[Run]:
    """Open runs that sent a trial to the host since their settings were last restored there."""
    return Run.objects.filter(Exists(unclosed(host_id)), state__in=OPEN_RUN_STATES)


def unclosed(host_id: UUID) -> QuerySet[Attempt]:
    """Subquery of a run: trials sent to the host since the run's settings were last restored there."""
    of_host = Attempt.objects.filter(host=host_id)
    closed = of_host.filter(run=OuterRef("run"), kind=AttemptKind.CLOSE_RUN, sequence__gt=OuterRef("sequence"))
    sent = of_host.filter(run=OuterRef("pk"), kind=AttemptKind.TRIAL)
    return sent.filter(~Exists(closed.exclude(state=AttemptState.LOST)))


def lock_others(hosts: Collection[Host], host_id: UUID) -> bool:
    """Lock these hosts, if all of them are idle; `host_id` is locked already. False if one is in use.

    Without waiting for a lock, because two hosts could wait for each other. The next tick tries again.
    """
    locked = all(try_lock_host(host.pk) for host in hosts if host.pk != host_id)
    return locked and not Attempt.objects.filter(host__in=hosts, state__in=ACTIVE_ATTEMPT_STATES).exists()


log = logging.getLogger(__name__)


def dispatch_host(host_id: UUID) -> Attempt | None:
    """Give the host its next order if it is idle; None if there is none, or another transaction was first."""
    if not _idle(host_id):
        return None
    try:
        with transaction.atomic():
            lock_host(host_id)
            attempt = _claim(host_id, in_window=open_window(host_id) is not None) if _idle(host_id) else None
            if attempt is not None:
                transaction.on_commit(lambda: publish_safely(attempt))
            return attempt
    except (IntegrityError, StaleTransition) as error:
        log.debug("host %s: another transaction was first: %s", host_id, error)
        return None


def dispatch_after_commit(run: Run) -> None:
    """After the commit of this transaction, give each host of the run its next order."""
    for host_id in run.targets.order_by().values_list("host_id", flat=True).distinct():
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]


def request_inventory(host_id: UUID) -> Attempt | None:
    """Ask an idle host for an inventory; None if it is busy."""
    try:
        with transaction.atomic():
            lock_host(host_id)
            if Attempt.objects.filter(host=host_id, state__in=ACTIVE_ATTEMPT_STATES).exists():
                return None
            attempt = create_attempt(AttemptKind.INVENTORY, host_id)
            transaction.on_commit(lambda: publish_safely(attempt))
            return attempt
    except IntegrityError:
        return None


def publish_safely(attempt: Attempt) -> None:
    """Errors after the commit are only logged: the caller's work is done, and the next tick tries again."""
    try:
        publish(attempt)
    except Exception:
        with about_attempt(attempt):
            log.exception("Publishing failed, it will be tried again.")


def idle_hosts() -> QuerySet[Host]:
    """Hosts that are online and have no active attempt."""
    heard = timezone.now() - timedelta(seconds=HEARD_WITHIN_SECONDS)
    active = Attempt.objects.filter(host=OuterRef("pk"), state__in=ACTIVE_ATTEMPT_STATES)
    return Host.objects.filter(~Exists(active), last_seen_at__gte=heard).exclude(state=HostState.REVOKED)


def _idle(host_id: UUID) -> bool:
    return idle_hosts().filter(pk=host_id).exists()


def _claim(host_id: UUID, *, in_window: bool) -> Attempt | None:
    """The next order; in a maintenance window a host only restores settings."""
    return _claim_close(host_id, in_window=in_window) or (None if in_window else _claim_trial(host_id))


def _claim_close(host_id: UUID, *, in_window: bool) -> Attempt | None:
    run = runs_to_close(host_id, in_window=in_window).order_by("created_at").first()
    if run is not None and run.budget is not None and _goes_on(run.pk):
        run = runs_to_close(host_id, in_window=in_window).order_by("created_at").first()
    if run is None:
        return None
    if (
        run.state in (RunState.RUNNING, RunState.PAUSED)
        and not run.trials.exclude(state__in=ENDED_TRIAL_STATES).exists()
    ):
        transition_run(run, RunState.CLOSING)
    return create_attempt(AttemptKind.CLOSE_RUN, host_id, run=run)


def _goes_on(run_id: UUID) -> bool:
    """Whether a search has got further trials."""
    return add_batches(Run.objects.select_for_update(no_key=True).get(pk=run_id))


def _claim_trial(host_id: UUID) -> Attempt | None:
    """A trial of the first run that can continue. If this run waits for other hosts or their drives, or if another one
    waits for the end of a maintenance window, a run that ends in time may start ahead of it (`queue`)."""
    # Locked, so that a pause or a cancellation is either seen here or waits until the order is written.
    run = ready_runs(host_id).select_for_update(no_key=True, of=("self",)).first()
    if run is None:
        return None
    begun = run.holds or run.goes_first  # type: ignore[attr-defined]
    if not begun and _awaits_window(host_id):
        return _claim_in_time(host_id)
    return _next_attempt(run, host_id) or _claim_in_time(host_id, passed_over=run)


def _claim_in_time(host_id: UUID, *, passed_over: Run | None = None) -> Attempt | None:
    """A trial of a run that can start now by the forecast of the queue."""
    candidates = [
        pk for pk in ready_runs(host_id).values_list("pk", flat=True) if not passed_over or pk != passed_over.pk
    ]
    if not candidates:
        return None
    state = QueueState()
    if passed_over and state.is_under_way(passed_over, host_id):
        return None
    starts = starts_of(state)
    for run_id in candidates:
        start = starts.get((run_id, host_id))
        if start is None or start.at_s != 0.0:
            continue
        # Without waiting for a lock, because two hosts could wait for each other. The next tick tries again.
        runs = ready_runs(host_id).filter(pk=run_id).select_for_update(no_key=True, of=("self",), skip_locked=True)
        run = runs.first()
        attempt = None if run is None else _next_attempt(run, host_id)
        if attempt is not None:
            log.info("Run %s starts ahead of %d waiting runs.", run_id, len(start.overtakes))
            return attempt
    return None


def _next_attempt(run: Run, host_id: UUID) -> Attempt | None:
    """The order for the run's next trial; None if it must wait. The run is locked."""
    trial = _next_trial(run, host_id)
    if trial is None:
        return None
    if stop_failing(run, host_id) or stop_unprepared(run, trial):
        end_finished_run(run.pk)  # without settings to restore, nothing else would end the run
        return _claim(host_id, in_window=False)
    try:
        set_rates(trial)
    except RateUnknown as unknown:
        stop_without_rate(run, trial, unknown)
        end_finished_run(run.pk)
        return _claim(host_id, in_window=False)
    if run.one_at_a_time and (others_wait(run) or not lock_others(trial.all_hosts, host_id)):
        return None
    if run.one_at_a_time and run.state == RunState.QUEUED and not _is_due(run, host_id):
        return None
    if not free(trial):
        return None
    if run.state == RunState.QUEUED:  # the run before the trial: all code locks in this order
        transition_run(run, RunState.RUNNING)
    number = 1 + (trial.attempts.aggregate(last=Max("number"))["last"] or 0 if trial.tried else 0)  # type: ignore[attr-defined]
    attempts = _attempts(run, trial, number)
    if trial.on_several_hosts:
        Trial.objects.filter(pk=trial.pk).update(stop_requested_at=None, common_start_at=None)
    transition_trial(trial, TrialState.DISPATCHED, attempt=attempts[0], attempts_left=trial.attempts_left - 1)
    for other in attempts[1:]:
        transaction.on_commit(lambda other=other: publish_safely(other))  # type: ignore[misc]
    return attempts[0]


def _is_due(run: Run, host_id: UUID) -> bool:
    """Whether no run before it waits for one of its other hosts."""
    start = starts_of(QueueState()).get((run.pk, host_id))
    return start is not None and start.at_s == 0.0


def _attempts(run: Run, trial: Trial, number: int) -> list[Attempt]:
    """One on each host of the trial, with the locks of the targets there. A drive that two hosts see is locked once."""
    attempts: list[Attempt] = []
    locked: set[str] = set()
    for host in trial.all_hosts if trial.on_several_hosts else [trial.host]:
        attempt = create_attempt(AttemptKind.TRIAL, host.pk, run=run, trial=trial, number=number)
        keys = keys_of(trial, host.pk) - locked
        take_locks(attempt, keys)
        locked |= keys
        attempts.append(attempt)
    return attempts


def _next_trial(run: Run, host_id: UUID) -> Trial | None:
    planned = _planned_of(run) if run.one_at_a_time else _planned(host_id).filter(run=run)
    planned = planned.annotate(tried=Exists(Attempt.objects.filter(trial=OuterRef("pk"))))
    return planned.select_related("target__host").order_by("index").first()


def _planned_of(run: Run) -> QuerySet[Trial]:
    return Trial.objects.filter(run=run, state=TrialState.PLANNED, attempts_left__gt=0)


def _planned(host_id: UUID) -> QuerySet[Trial]:
    """Planned trials of a host outside its maintenance windows: none in maintenance or with a second worker."""
    waiting = Trial.objects.filter(host=host_id, state=TrialState.PLANNED, attempts_left__gt=0)
    second = Host.objects.filter(has_second_worker(), pk=OuterRef("host"))
    return waiting.filter(~Exists(second), host__state=HostState.ACTIVE)


def _continuable() -> QuerySet[Run]:
    """Runs that wait only for hosts and drives."""
    open_runs = Run.objects.filter(state__in=OPEN_RUN_STATES, cancel_requested_at=None)
    return open_runs.exclude(state=RunState.PAUSED).exclude(waits_for_arming())


def ready_runs(host_id: UUID) -> QuerySet[Run]:
    """Runs that can continue with a trial on this host outside its maintenance windows, in queue order."""
    unordered = Q(Exists(_planned(host_id).filter(run=OuterRef("pk"))), one_at_a_time=False)
    goes_on = _continuable().filter(unordered | Q(pk__in=runs_that_can_continue(host_id)))
    goes_on = goes_on.annotate(
        holds=Exists(unclosed(host_id)), goes_first=Q(one_at_a_time=True, state=RunState.RUNNING)
    )
    return goes_on.order_by("-holds", "-goes_first", F("queue_position").asc(nulls_last=True), "number")


def runs_to_close(host_id: UUID, *, in_window: bool) -> QuerySet[Run]:
    """Open runs that changed settings on this host, have no trial for it now, and whose settings are not
    restored yet."""
    long_ago = timezone.now() - timedelta(seconds=settings.PAUSE_RESTORE_SECONDS)
    ready = Run.objects.none() if in_window else ready_runs(host_id).order_by()
    rests = ~Q(state=RunState.PAUSED) | Q(paused_at__lt=long_ago) | Q(Exists(ready))
    of_run = Q(host=host_id) | Q(run__one_at_a_time=True)
    unended = Trial.objects.filter(of_run, run=OuterRef("pk")).exclude(state__in=ENDED_TRIAL_STATES)
    measuring = Attempt.objects.filter(run=OuterRef("pk"), kind=AttemptKind.TRIAL, state__in=ACTIVE_ATTEMPT_STATES)
    at_rest = unclosed_runs(host_id).exclude(Exists(measuring), one_at_a_time=True)
    return at_rest.filter(~Exists(unended) | (rests & ~Exists(ready.filter(pk=OuterRef("pk")))))


def create_attempt(
    kind: AttemptKind, host_id: UUID, *, run: Run | None = None, trial: Trial | None = None, number: int = 1
) -> Attempt:
    lease_until = timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)
    return Attempt.objects.create(
        kind=kind, host_id=host_id, run=run, trial=trial, number=number, lease_until=lease_until
    )
