"""What time alone changes: leases lapse, orders are sent again, lost attempts are heard again.

Every exchange with the worker renews the lease. When it expires, the attempt is lost. If its worker reports again
before the host gets a newer order, the attempt continues.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from webapp.hosts.models import Host
from webapp.hosts.sessions import CLOCK_TOLERANCE
from webapp.runs.dispatch.ending import end_attempt
from webapp.runs.dispatch.locks import keys_for, lock_host, take_locks
from webapp.runs.dispatch.orders import about_attempt, publish, to_publish_again, waiting_orders
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptState,
    Run,
    RunState,
    TrialState,
)
from webapp.runs.states import revive_trial, transition_attempt

log = logging.getLogger(__name__)

# Between the request to stop an attempt and its end, and for restoring settings. The longest part is a purge in a
# trial, which some drives finish by themselves.
STOP_LIMIT = timedelta(hours=1)
# A host may accept an order between the moment at which it lists its attempts and the arrival of this list.
LISTED_WITHIN = timedelta(minutes=1)


def correct_times_ahead() -> None:
    """Correct what was noted while the server's clock was ahead, if it was set back.

    Otherwise the attempt of a host that is gone would last, an order would not be sent again, a paused run would keep
    its settings, and a run would stay armed, until it is that late. The arming of a schedule has an end that a person
    has chosen.
    """
    now = timezone.now()
    ahead = now + CLOCK_TOLERANCE
    active = Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES)
    active.filter(lease_until__gt=new_lease() + CLOCK_TOLERANCE).update(lease_until=new_lease())
    active.filter(published_at__gt=ahead).update(published_at=None)
    Run.objects.filter(state=RunState.PAUSED, paused_at__gt=ahead).update(paused_at=now)
    latest = ahead + timedelta(seconds=settings.ARMING_SECONDS)
    armed = Run.objects.filter(state__in=OPEN_RUN_STATES, started_at=None, occurrence=None, armed_until__gt=latest)
    if disarmed := armed.update(armed_until=None):
        log.warning("%d runs were disarmed: they were armed while the clock was ahead.", disarmed)


def expire_leases() -> int:
    """Mark active attempts with expired leases as lost; return their number."""
    lapsed = Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES, lease_until__lt=timezone.now())
    return sum(_expire(pk) for pk in lapsed.values_list("pk", flat=True))


@transaction.atomic
def _expire(attempt_id: UUID) -> bool:
    attempts = Attempt.objects.select_for_update(no_key=True, of=("self",), skip_locked=True).select_related("trial")
    attempt = attempts.filter(pk=attempt_id, state__in=ACTIVE_ATTEMPT_STATES, lease_until__lt=timezone.now()).first()
    if attempt is None:
        return False
    end_attempt(attempt, AttemptState.LOST, code="lease_expired", fields={"accepted": attempt.accepted_at is not None})
    with about_attempt(attempt):
        log.warning("Lost: %s", attempt.outcome)
    return True


def publish_again() -> int:
    """Send unaccepted orders again, unless they are still in the queue; return their number."""
    sent = 0
    for attempt in to_publish_again():
        try:
            sent += waiting_orders(attempt.host_id) == 0 and publish(attempt)
        except (OperationalError, RedisError, OSError) as error:
            log.warning("The broker cannot be reached: %s", error)
            break
    return sent


def revive(attempt: Attempt) -> bool:
    """Make a lost attempt active again; False if it is too late.

    Too late: its run has ended or is being cancelled, its trial is being skipped, or the host got a newer order since.
    Always too late for a trial on several hosts, because the others were stopped.
    Call inside a transaction that has locked the attempt.
    """
    run, trial = attempt.run, attempt.trial
    if run is not None and (
        run.state not in OPEN_RUN_STATES or (trial is not None and (run.cancel_requested_at or trial.skip_requested_at))
    ):
        return False
    if trial is not None and trial.on_several_hosts:
        return False
    lock_host(attempt.host_id)
    if Attempt.objects.filter(host_id=attempt.host_id, sequence__gt=attempt.sequence).exists():
        return False
    try:
        with transaction.atomic():
            _reactivate(attempt)
    except IntegrityError:  # another host has locked the drive since
        return False
    with about_attempt(attempt):
        log.info("The host reported again after the attempt was lost.")
    return True


def _reactivate(attempt: Attempt) -> None:
    state = AttemptState.DISPATCHED
    if attempt.accepted_at:
        state = AttemptState.RUNNING if attempt.started_at else AttemptState.ACCEPTED
    transition_attempt(attempt, state)
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=new_lease())
    take_locks(attempt, keys_for(attempt))
    if attempt.trial is not None:
        revive_trial(attempt.trial, TrialState(state.value), attempt=attempt)


def revive_unfinished(*, host: Host, journal: Sequence[str]) -> int:
    """Revive lost attempts that a registering host has not finished reporting."""
    ids = [parsed for parsed in map(parse_id, journal) if parsed is not None]
    lost = Attempt.objects.filter(host=host, pk__in=ids, state=AttemptState.LOST)
    return sum(_revive_locked(pk) for pk in lost.values_list("pk", flat=True))


def lose_forgotten(*, host: Host, journal: Sequence[str]) -> int:
    """Lose attempts that a registering host no longer has, without waiting for the end of their leases.

    A server that was restored from a backup knows attempts that the host has given up, and orders that the host has
    finished: it ignores them when they are published again. `journal`: what it has not finished.
    """
    before = timezone.now() - LISTED_WITHIN
    active = Attempt.objects.filter(host=host, state__in=ACTIVE_ATTEMPT_STATES)
    missing = active.exclude(pk__in=[parsed for parsed in map(parse_id, journal) if parsed is not None])
    lost = list(missing.filter(accepted_at__lt=before).values_list("pk", flat=True))
    taken = list(
        missing.filter(published_at__isnull=False, accepted_at=None, created_at__lt=before).values_list("pk", flat=True)
    )
    if taken and _queue_is_empty(host):
        lost += taken
    return sum(_lose(pk) for pk in lost)


def _queue_is_empty(host: Host) -> bool:
    """Whether the host has taken all its orders; False if the broker cannot be reached."""
    try:
        return waiting_orders(host.pk) == 0
    except (OperationalError, RedisError, OSError):
        return False


@transaction.atomic
def _lose(attempt_id: UUID) -> bool:
    attempts = Attempt.objects.select_for_update(no_key=True, of=("self",), skip_locked=True).select_related("trial")
    attempt = attempts.filter(pk=attempt_id, state__in=ACTIVE_ATTEMPT_STATES).first()
    if attempt is None:
        return False
    end_attempt(attempt, AttemptState.LOST, code="not_on_host")
    with about_attempt(attempt):
        log.warning("Lost: %s", attempt.outcome)
    return True


@transaction.atomic
def _revive_locked(attempt_id: UUID) -> bool:
    locked = Attempt.objects.select_for_update(no_key=True, of=("self",)).select_related("run", "trial__target")
    attempt = locked.get(pk=attempt_id)
    return attempt.state == AttemptState.LOST and revive(attempt)


def new_lease() -> datetime:
    return timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)


def renewed(lease_until: datetime, *, ends_after: datetime | None = None) -> datetime:
    """The lease after an exchange: a new one, or the existing one if it is almost new.

    `ends_after`: when a person requested the stop of the attempt, or when a host was asked to restore settings. The
    lease ends at most STOP_LIMIT later, regardless of reports.
    """
    lease = new_lease()
    if ends_after is not None:
        return min(lease, ends_after + STOP_LIMIT)
    return lease_until if whole_from(lease) <= lease_until <= lease else lease


def whole_from(lease: datetime) -> datetime:
    """A lease that ends between this time and `lease`, a new one, is almost new and is not renewed.

    A renewal with every report would change an index with every report.
    """
    return lease - timedelta(seconds=settings.LEASE_SECONDS / 20)


def parse_id(text: str) -> UUID | None:
    """The contract's attempt id as a UUID; None if it is not one of the server's ids."""
    try:
        return UUID(text)
    except ValueError:
        return None
