"""The state of a host (online, busy, in maintenance, revoked) and its problems, in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.http import Http404
from django.utils import timezone
from django.utils.text import capfirst

from webapp.core import formatting
from webapp.hosts.maintenance_windows import OpenWindow
from webapp.hosts.models import Host, HostState, Target
from webapp.hosts.selectors import host_named
from webapp.hosts.sessions import second_worker_words
from webapp.runs.models import Attempt
from webapp.runs.selectors import doing
from worker.recipes import DEFAULT_ENGINE, ENGINES

# Finds the host of an address.


def host_or_404(slug: str) -> Host:
    """The host with this name or former name; in the latter case its slug differs."""
    host = host_named(slug)
    if host is None:
        raise Http404(f"There is no host {slug}.")
    return host


# A worker reports every second while it works and at least once a minute while it does not.
SILENT_AFTER = timedelta(minutes=3)
QUIET_AFTER = timedelta(seconds=30)  # while it works
OFFLINE = "The host is offline. Check that its worker is running and can reach this server."
# A larger clock difference cannot be transfer time: log lines and samples would appear shifted (s).
CLOCK_LIMIT_S = 5.0


@dataclass(frozen=True)
class Presence:
    """Whether a host is online, as a state with a colour and in words."""

    state: str
    words: str


def presence(host: Host, active: Attempt | None, window: OpenWindow | None = None) -> Presence:
    """`active` is the current attempt, `window` the open maintenance window."""
    if host.archived_at is not None:
        return Presence("failed", "Removed")
    if host.state != HostState.ACTIVE:
        return Presence("cancelled" if host.state == HostState.MAINTENANCE else "failed", host.get_state_display())
    if window:
        return Presence("cancelled", capfirst(window.words))
    if active and (quiet := quiet_for(host, active)):
        return Presence("lost", f"Nothing heard for {quiet}")
    if silent(host):
        return Presence("lost", "Away")
    return Presence("running", "Working") if active else Presence("done", "Ready")


def silent(host: Host) -> bool:
    return host.last_seen_at is None or timezone.now() - host.last_seen_at > SILENT_AFTER


def quiet_for(host: Host, active: Attempt) -> str:
    """How long a busy host has been silent, in words; "" if not longer than usual.

    The time counts from the order at the earliest: before, the host reported less often.
    """
    heard = max(host.last_seen_at or active.created_at, active.created_at)
    span = timezone.now() - heard
    return formatting.duration(span.total_seconds()) if span >= QUIET_AFTER else ""


def phase_words(attempt: Attempt) -> str:
    """The phase of the attempt, or how long its host has been silent and when the attempt will be lost."""
    quiet = quiet_for(attempt.host, attempt)
    if not quiet or attempt.lease_until is None:
        return doing(attempt)
    left = formatting.duration((attempt.lease_until - timezone.now()).total_seconds())
    return f"nothing heard of {attempt.host.slug} for {quiet}, lost in {left}"


def warnings(host: Host, targets: Iterable[Target], *, newest_version: str, active: Attempt | None = None) -> list[str]:
    """Problems of the host, each with its remedy. None for a revoked host."""
    if host.state == HostState.REVOKED:
        return []
    sentences = [*_about_worker(host, newest_version, active), *_about_clock(host)]
    if second := second_worker_words(host):
        sentences.insert(0, second)
    if host.state_disk_full:
        sentences.append(
            "The disk of its worker's state directory is full, so no trial can start. Free some space there."
        )
    if host.policy_problem:
        sentences.append(f"Its policy file allows nothing: {host.policy_problem}")
    sentences += [f"{target.slug}: {target.problem}" for target in targets if target.in_policy and target.problem]
    return sentences


def _about_worker(host: Host, newest_version: str, active: Attempt | None) -> list[str]:
    if not host.capabilities:
        return ["Its worker has not reported its capabilities yet. Start the worker on the host."]
    sentences = []
    if silent(host) or (active and quiet_for(host, active)):
        sentences.append(OFFLINE)
    if newest_version and host.worker_version != newest_version:
        sentences.append(
            f"Its worker is {host.worker_version or 'of unknown version'}, this server has {newest_version}."
        )
    return [*sentences, *_missing_engines(host)]


def _missing_engines(host: Host) -> list[str]:
    """A warning if fio is not installed, which prefill needs for every engine. Previews warn about the others."""
    offered = host.capabilities.get("engines", {})
    return [
        f"{recipe.LABEL} is not installed on this host: plans that use it cannot run. {recipe.INSTALLATION}"
        for workload, recipe in ENGINES.items()
        if workload.engine_name() == DEFAULT_ENGINE and DEFAULT_ENGINE not in offered
    ]


def _about_clock(host: Host) -> list[str]:
    ahead_s = host.clock_ahead_s or 0.0
    if abs(ahead_s) < CLOCK_LIMIT_S:
        return []
    side = "ahead of" if ahead_s > 0 else "behind"
    return [
        f"Its clock is {abs(ahead_s):,.0f} s {side} this server's. Synchronise it with NTP, e.g. systemd-timesyncd."
    ]
