"""Runs with trials on several hosts (`Run.one_at_a_time`).

A trial on several hosts has one attempt on each of them. All are created in one transaction, or none is. The trials of
such a run never overlap, so that a host that is measured alone is really alone.

Two such runs could wait for each other if each had some of the hosts. So a run gets no host while another run has not
restored its settings on any of its hosts. It continues only while all its hosts take trials; otherwise the others are
free for other runs meanwhile.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from webapp.hosts.maintenance_windows import open_windows
from webapp.hosts.models import Host, HostState
from webapp.hosts.sessions import has_second_worker
from webapp.runs.dispatch.host_lock import try_lock_host
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    Trial,
    TrialState,
)


def hosts_of(run: Run) -> list[Host]:
    """The hosts of a run's targets, without revoked ones, whose trials are cancelled."""
    hosts = Host.objects.filter(targets__runs=run).exclude(state=HostState.REVOKED)
    return list(hosts.order_by("pk").distinct())


def runs_that_can_continue(host_id: UUID, *, heard_since: datetime) -> list[UUID]:
    """Open runs of this kind that use the host, have a planned trial, and whose hosts all take trials now."""
    planned = Trial.objects.filter(run=OuterRef("pk"), state=TrialState.PLANNED, attempts_left__gt=0)
    runs = Run.objects.filter(Exists(planned), one_at_a_time=True, state__in=OPEN_RUN_STATES)
    with_host = runs.filter(pk__in=Run.targets.through.objects.filter(target__host=host_id).values("run"))
    return [run.pk for run in with_host if _all_available(hosts_of(run), heard_since)]


def _all_available(hosts: Sequence[Host], heard_since: datetime) -> bool:
    active = all(
        host.state == HostState.ACTIVE and host.last_seen_at is not None and host.last_seen_at >= heard_since
        for host in hosts
    )
    known = [host.pk for host in hosts]
    seconds = Host.objects.filter(has_second_worker(), pk__in=known)
    return active and not open_windows(known) and not seconds.exists()


def others_wait(run: Run) -> bool:
    """Whether a trial of the run is under way, or another run has changed settings on one of its hosts."""
    active = Attempt.objects.filter(run=run, kind=AttemptKind.TRIAL, state__in=ACTIVE_ATTEMPT_STATES)
    return active.exists() or any(unclosed_runs(host.pk).exclude(pk=run.pk).exists() for host in hosts_of(run))


def unclosed_runs(host_id: UUID) -> QuerySet[Run]:
    """Open runs that sent a trial to the host since their settings were last restored there."""
    return Run.objects.filter(Exists(unclosed(host_id)), state__in=OPEN_RUN_STATES)


def unclosed(host_id: UUID) -> QuerySet[Attempt]:
    """Subquery of a run: trials sent to the host since the run's settings were last restored there."""
    own = Attempt.objects.filter(host=host_id)
    closed = own.filter(run=OuterRef("run"), kind=AttemptKind.CLOSE_RUN, sequence__gt=OuterRef("sequence"))
    sent = own.filter(run=OuterRef("pk"), kind=AttemptKind.TRIAL)
    return sent.filter(~Exists(closed.exclude(state=AttemptState.LOST)))


def lock_others(hosts: Collection[Host], host_id: UUID) -> bool:
    """Lock these hosts, if all of them are idle; `host_id` is locked already. False if one is in use.

    Without waiting for a lock, because two hosts could wait for each other. The next tick tries again.
    """
    locked = all(try_lock_host(host.pk) for host in hosts if host.pk != host_id)
    return locked and not Attempt.objects.filter(host__in=hosts, state__in=ACTIVE_ATTEMPT_STATES).exists()
