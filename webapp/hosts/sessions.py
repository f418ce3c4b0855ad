"""The session of a host: the worker process that works with the host's identity.

    none ─► held by the first session ─► held by its successor, a worker with the same state directory
                    └── silent for HEARD_WITHIN ─► held by the next session

A second worker with the same identity, of a cloned machine or a copied state directory, is refused. Otherwise one
worker could change a setting, and the other one would be asked to restore it. Each order names the session that may
carry it out. A copy that was made while the worker ran looks like a successor, until the worker itself is heard again.
So the host gets no new trials while a second worker is heard: settings are restored, and nothing new is changed.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Case, Q, Value, When
from django.db.models.functions import Concat, Left
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.services import audit
from webapp.hosts.models import EnrolmentToken, Host
from worker.contract.greetings import SESSION_OTHER

log = logging.getLogger(__name__)

# An idle worker registers every minute; it counts as offline after two missed registrations.
HEARD_WITHIN = timedelta(seconds=150)
# A message of a former session may arrive so much later, after a proxy or a retry.
IN_FLIGHT = timedelta(seconds=30)
CLOCK_TOLERANCE = timedelta(minutes=1)  # between the clocks of several servers
FORMER_LENGTH = 4000  # characters, as the column


class SecondWorker(Refusal):
    """Another worker holds the host's session."""

    def __init__(self, host: Host) -> None:
        super().__init__(
            SESSION_OTHER,
            f"Another worker with the identity of {host.slug} is active. Stop one of them. Enrol the copy of a machine "
            "as a host of its own.",
        )


def claim_session(*, host: Host, session: str, earlier: Sequence[str], hostname: str = "") -> None:
    """Give the session to this worker, if it may have it. Raises SecondWorker.

    `session`: "" of a command that takes no orders. `earlier`: of workers with the same state directory; which of them
    this server has accepted, they do not always know. `hostname`: of its machine, "" if the message does not say it.
    """
    if session in ("", host.session):
        return
    now = timezone.now()
    free = Q(session="") | Q(last_seen_at__lt=now - HEARD_WITHIN)
    if earlier:
        free |= Q(session__in=earlier)
    changes = {
        "session": session,
        "former_sessions": _former(earlier, now),
        "session_since": now,
        "last_seen_at": now,
        # After silence, the worker that was refused is this one. Another one is refused again when it is heard.
        "second_worker_at": Case(When(session__in=earlier, then="second_worker_at"), default=None),
    }
    if Host.objects.filter(free, pk=host.pk).update(**changes) == 1:
        host.session = session
        return
    _note_second(host, session, hostname)
    raise SecondWorker(host)


def _former(earlier: Sequence[str], now: datetime) -> Left:
    """The former sessions, each between blanks: those that the new worker names, the last one, and recent ones.

    A worker that was stopped at its start may never have held the host, and its message may arrive later all the same.
    """
    recent = Case(When(session_since__gt=now - IN_FLIGHT, then="former_sessions"), default=Value(""))
    named = Value("".join(f" {each} " for each in earlier))
    return Left(Concat(named, Value(" "), "session", Value(" "), recent), FORMER_LENGTH)


def _note_second(host: Host, session: str, hostname: str) -> None:
    now = timezone.now()
    late = Q(former_sessions__contains=f" {session} ", session_since__gt=now - IN_FLIGHT)
    others = Host.objects.filter(~late, pk=host.pk).exclude(session=session)
    recent = Q(second_worker_at__gte=now - HEARD_WITHIN)
    is_new = others.exclude(recent).update(second_worker_at=now) == 1
    if not is_new and others.update(second_worker_at=now) == 0:
        return
    if hostname:
        others.update(second_worker_hostname=hostname[:255])
    if is_new:
        log.error("host %s: a second worker with its identity was refused (%s)", host, hostname or "unknown machine")
        audit(by=None, action="host.second_worker", on=host, detail={"hostname": hostname})


def has_second_worker() -> Q:
    """Hosts of which a second worker was heard lately."""
    return Q(second_worker_at__gte=timezone.now() - HEARD_WITHIN)


def correct_times_ahead() -> None:
    """Correct what was noted while the server's clock was ahead, if it was set back.

    Otherwise a silent host would count as heard, a worker that is gone would keep the session, and an enrolment token
    would be valid, until it is that late.
    """
    now = timezone.now()
    ahead = now + CLOCK_TOLERANCE
    Host.objects.filter(last_seen_at__gt=ahead).update(last_seen_at=now)
    Host.objects.filter(session_since__gt=ahead).update(session_since=now)
    Host.objects.filter(second_worker_at__gt=ahead).update(second_worker_at=None)
    latest = ahead + timedelta(seconds=settings.ENROLMENT_SECONDS)
    EnrolmentToken.objects.filter(used_at=None, expires_at__gt=latest).update(expires_at=now)


def second_worker_words(host: Host) -> str:
    """A warning about a second worker that was heard lately; "" without one."""
    if host.second_worker_at is None or host.second_worker_at < timezone.now() - HEARD_WITHIN:
        return ""
    machine = f" on {host.second_worker_hostname}" if host.second_worker_hostname else ""
    return (
        f"A second worker with this host's identity is active{machine}. It was refused, and this host gets no new "
        "trials meanwhile. Stop one of the two workers; enrol the copy of a machine as a host of its own."
    )
