"""Announces once that a host is away, and once that it is back.

heard ──► away   silent for AWAY_AFTER; not during maintenance, not if it is revoked
      ◄── back   heard again
"""

import threading
import time
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from webapp.core.formatting import duration
from webapp.hosts.maintenance_windows import open_windows
from webapp.hosts.models import Host, HostState
from webapp.notices.models import Event
from webapp.notices.services import announce

AWAY_AFTER = timedelta(minutes=10)
# After a longer gap between two ticks, the server was away itself, and hears from its hosts only now.
GAP_LIMIT = timedelta(minutes=1)


class Watch:
    """How long this process has ticked without a gap."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since_s = self._last_s = -GAP_LIMIT.total_seconds()

    def tick(self, now_s: float) -> timedelta:
        """`now_s`: seconds of a clock that never goes back."""
        with self._lock:
            if now_s - self._last_s > GAP_LIMIT.total_seconds():
                self._since_s = now_s
            self._last_s = now_s
            return timedelta(seconds=now_s - self._since_s)


_watch = Watch()


def announce_absent_hosts(now: datetime, watched: timedelta | None = None) -> None:
    """`watched`: how long the server has heard from hosts; by default, how long this process has called this."""
    if watched is None:
        watched = _watch.tick(time.monotonic())
    _announce_back()
    if watched >= AWAY_AFTER:
        _announce_away(now)


def _announce_away(now: datetime) -> None:
    away = Host.objects.filter(state=HostState.ACTIVE, away_since=None, last_seen_at__lt=now - AWAY_AFTER)
    hosts = list(away)
    in_maintenance = open_windows([host.pk for host in hosts], now) if hosts else {}
    for host in hosts:
        if host.pk in in_maintenance:
            continue
        with transaction.atomic():
            # The host may be heard at this moment, and two processes may tick at once.
            if not away.filter(pk=host.pk).update(away_since=F("last_seen_at")):
                continue
            assert host.last_seen_at
            silent_for = duration((now - host.last_seen_at).total_seconds())
            _announce(
                host,
                host.last_seen_at,
                away=True,
                subject=f"Host {host} is away",
                text=f"The server has not heard from the host {host} for {silent_for}. Check its power, its network "
                "and its service sweetspot-worker. Runs on this host wait or fail.",
            )


def _announce_back() -> None:
    was_away = Host.objects.filter(away_since__isnull=False)
    was_away.filter(state=HostState.REVOKED).update(away_since=None)
    back = was_away.filter(last_seen_at__gt=F("away_since"))
    for host in back:
        with transaction.atomic():
            if not back.filter(pk=host.pk).update(away_since=None):
                continue
            assert host.last_seen_at
            assert host.away_since
            silent_for = duration((host.last_seen_at - host.away_since).total_seconds())
            _announce(
                host,
                host.away_since,
                away=False,
                subject=f"Host {host} is back",
                text=f"The server hears from the host {host} again, after {silent_for}.",
            )


def _announce(host: Host, since: datetime, *, away: bool, subject: str, text: str) -> None:
    announce(
        event=Event.AWAY,
        plan=None,
        key=f"host:{host.pk}:{'away' if away else 'back'}:{since.isoformat()}",
        subject=subject,
        text=text,
        path=f"/hosts/{host.slug}/",
        detail={"host": host.slug, "away": away, "last_seen_at": since.isoformat()},
    )
