"""Hosts: the list, one host with its data for scripts, and its worker's log."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from django.contrib import messages
from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from webapp.core.errors import uuid_or_none
from webapp.core.models import AuditEntry
from webapp.hosts.installer import upgrade_line, worker_wheel
from webapp.hosts.inventory.lock_groups import sharing
from webapp.hosts.inventory.store import read_inventory
from webapp.hosts.maintenance_windows import OpenWindow, open_window, open_windows
from webapp.hosts.models import Host, HostInventory, HostState, Target, WorkerLogLine
from webapp.hosts.selectors import LEVELS, log_lines
from webapp.plans.factors import FACTORS
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run, TargetLock
from webapp.screens.access import page
from webapp.screens.ceilings import ceiling_form
from webapp.screens.hosts.presence import OFFLINE, Presence, host_or_404, presence, warnings
from webapp.screens.payloads import Payload
from webapp.screens.runs.views import listed_runs
from webapp.screens.trend.charts import Scale
from webapp.screens.trend.claims import number, sentence
from webapp.screens.trend.listing import TrendRow, trend_row
from webapp.trends.summaries import summaries, worst_by_target
from worker.contract.inventory import BlockDevice, Inventory

# The worker's log on the page of its host.

# Data that the pages of hosts send to their scripts.


class Enrolment(Payload, frozen=True, kw_only=True):
    """The state of an enrolment command; enrolled: host created, heard: worker registered."""

    state: Literal["waiting", "expired", "enrolled", "heard"]
    host: str  # its name, "" while waiting
    url: str  # address of the host's page
    seconds_left: float


class LogTailLine(Payload, frozen=True, kw_only=True):
    """A line of a worker's log; `about` and `url` name its trial or run, "" if it has none."""

    at: str  # ISO 8601, UTC
    level: str
    text: str
    about: str
    url: str


class LogTail(Payload, frozen=True, kw_only=True):
    """Lines in order; send `last` to get the following lines."""

    lines: tuple[LogTailLine, ...]
    last: int


SHOWN = 200


@never_cache
@page
def worker_log(request: HttpRequest, slug: str) -> HttpResponse:
    """Lines after `after`, oldest first."""
    after = request.GET.get("after", "")
    tail = log_tail(host_or_404(slug), request, after=int(after) if after.isdecimal() and len(after) < 19 else 0)
    return HttpResponse(msgspec.json.encode(tail), content_type="application/json")


def log_tail(host: Host, request: HttpRequest, *, after: int = 0) -> LogTail:
    """The newest lines, filtered by `level` and `attempt` in the address."""
    lines = log_lines(host, level=request.GET.get("level", ""), attempt=uuid_or_none(request.GET.get("attempt", "")))
    newest = list(lines.filter(id__gt=after)[:SHOWN])[::-1]
    trials = _trials(newest)
    return LogTail(lines=tuple(_line(line, trials) for line in newest), last=newest[-1].pk if newest else after)


def _trials(lines: Sequence[WorkerLogLine]) -> dict[UUID, tuple[str, str]]:
    """Attempt -> (text, address) of its run or trial. One query."""
    wanted = {line.attempt for line in lines if line.attempt}
    attempts = Attempt.objects.filter(pk__in=wanted, run__isnull=False).select_related("run", "trial")
    return {attempt.pk: _about(attempt) for attempt in attempts}


def _about(attempt: Attempt) -> tuple[str, str]:
    number = attempt.run.number if attempt.run else 0
    if attempt.trial is None:
        return f"run {number}", reverse("run", args=[number])
    trial = attempt.trial.number
    return f"run {number}, trial {trial}", reverse("trial", args=[number, trial])


def _line(line: WorkerLogLine, trials: dict[UUID, tuple[str, str]]) -> LogTailLine:
    words, url = trials.get(line.attempt, ("", "")) if line.attempt else ("", "")
    return LogTailLine(
        at=line.at.isoformat(timespec="milliseconds"), level=line.level, text=line.text, about=words, url=url
    )


# Data for the page of a host.

INVENTORIES_SHOWN = 20
ACTIONS_SHOWN = 30
MAX_BRANCHES, MAX_LEVELS = 2000, 16
_TITLES = {
    "host.enrol": "Enrolled",
    "host.rename": "Renamed",
    "host.maintenance_start": "Maintenance started",
    "host.maintenance_end": "Maintenance ended",
    "host.window_add": "Maintenance window added",
    "host.window_delete": "Maintenance window deleted",
    "host.rotate_token": "New token requested",
    "host.second_worker": "Second worker refused",
    "host.token_replace": "New token in use",
    "host.revoke": "Token revoked",
    "host.remove": "Removed",
    "host.restore": "Restored",
}


@dataclass
class Branch:
    """A block device in the tree, with the devices on it."""

    device: BlockDevice
    above: "list[Branch]" = field(default_factory=list)


@dataclass(frozen=True)
class Event:
    """An event in the history of a host."""

    at: datetime
    title: str
    by: str = ""
    sentences: Sequence[str] = ()
    address: str = ""  # query of the page with all details of the change


@dataclass(frozen=True)
class TargetRow:
    """A target of the host."""

    target: Target
    used_by: int | None  # number of the run that uses one of its drives now, on any host
    shares: list[Target]  # other targets on the same drives, which are never used at the same time
    trend: TrendRow | None  # its most serious one; None before the first run of a plan


@dataclass(frozen=True)
class SettingRow:
    """A setting of the worker, and the targets for which the policy allows to change it."""

    name: str
    label: str
    targets: tuple[str, ...]
    host_wide: bool


def tree(inventory: Inventory) -> list[Branch]:
    """The tree of block devices: disks at the root, partitions and arrays under all their underlying devices."""
    devices = {device.name: device for device in inventory.block_devices}
    on: dict[str, list[BlockDevice]] = {}
    for device in inventory.block_devices:
        for parent in device.parents:
            on.setdefault(parent, []).append(device)
    roots = [device for device in inventory.block_devices if not any(parent in devices for parent in device.parents)]
    left = itertools.count(MAX_BRANCHES, -1)
    return list(_branches(roots, on, (), left))


def _branches(
    devices: Iterable[BlockDevice], on: dict[str, list[BlockDevice]], below: tuple[str, ...], left: Iterator[int]
) -> Iterator[Branch]:
    """At most MAX_LEVELS levels, and as many branches as are left: an array of many drives is under each of them."""
    for device in devices:
        if device.name in below or len(below) == MAX_LEVELS or next(left) <= 0:
            continue
        path = (*below, device.name)
        yield Branch(device, list(_branches(on.get(device.name, ()), on, path, left)))


def history(host: Host, inventories: Sequence[HostInventory]) -> list[Event]:
    """Actions on the host and changes of its hardware, newest first. `inventories` are newest first."""
    events = [_changed(after, before) for after, before in itertools.pairwise(inventories)]
    if inventories and len(inventories) <= INVENTORIES_SHOWN:
        events.append(Event(inventories[-1].taken_at, "First inventory"))
    of_host = AuditEntry.objects.filter(object_type="host", object_id=str(host.pk), action__in=_TITLES)
    entries = of_host.select_related("actor").order_by("-at")[:ACTIONS_SHOWN]
    events += [Event(entry.at, _TITLES[entry.action], entry.actor_name, _detail(entry)) for entry in entries]
    return sorted(events, key=lambda event: event.at, reverse=True)


def _changed(after: HostInventory, before: HostInventory) -> Event:
    if after.changes is None:
        sentences = ["The earlier inventory has a format that is no longer supported."]
        return Event(after.taken_at, "Changed", sentences=sentences)
    sentences = after.changes or ["Hardware details changed."]
    return Event(after.taken_at, "Changed", sentences=sentences, address=f"from={before.pk}&to={after.pk}")


def _detail(operation: AuditEntry) -> list[str]:
    templates = {
        "before": "The former name is {}.",
        "window": "{}.",
        "note": "{}",
        "hostname": "Changed by the worker on {}.",
    }
    return [templates[key].format(value) for key, value in operation.detail.items() if key in templates and value]


def setting_rows(host: Host, targets: Iterable[Target]) -> list[SettingRow]:
    """Every setting of the host's worker, with the targets for which the policy allows to change it."""
    listed = [target for target in targets if target.in_policy]
    return [
        SettingRow(
            name=name,
            label=FACTORS[name].label if name in FACTORS else name,
            targets=tuple(t.slug for t in listed if name in t.settings_allowed or "*" in t.settings_allowed),
            host_wide=name in host.settings_allowed or "*" in host.settings_allowed,
        )
        for name in host.capabilities.get("settings", [])
    ]


def target_rows(host: Host, targets: Sequence[Target]) -> list[TargetRow]:
    """Rows of all targets of a host, with a fixed number of queries. Their sparklines have one scale."""
    used, shares = _users(targets), sharing(targets)
    worst = worst_by_target(summaries(host))
    scale = Scale.of(row.summary for row in worst)
    trends = {row.target.pk: trend_row(row, scale, *SPARK) for row in worst}
    return [
        TargetRow(
            target=target,
            used_by=next((used[key] for key in target.lock_keys if key in used), None),
            shares=shares.get(target.pk, []),
            trend=trends.get(target.pk),
        )
        for target in targets
    ]


def _users(targets: Sequence[Target]) -> dict[str, int]:
    """Lock key -> number of the run that uses the drive now, on any host."""
    keys = {key for target in targets for key in target.lock_keys}
    locks = TargetLock.objects.filter(lock_key__in=keys)
    return {lock.lock_key: lock.attempt.run.number for lock in locks.select_related("attempt__run") if lock.attempt.run}


RUNS_SHOWN = 3
SPARK = (200, 32)  # px


@dataclass(frozen=True)
class HostRow:
    """A row of the list."""

    host: Host
    presence: Presence
    note: str  # note of its maintenance or of its open maintenance window
    active: Attempt | None
    usable: int
    listed: int
    warnings: list[str]

    @property
    def problems(self) -> list[str]:
        """Without what its state says."""
        return [words for words in self.warnings if words != OFFLINE]


# States of `presence`, in the order of a heading.
_STATES = {"lost": "away", "failed": "revoked", "cancelled": "in maintenance", "running": "at work", "done": "ready"}
_USABLE = ("running", "done")


def listed_hosts() -> QuerySet[Host]:
    """Hosts with their last reported `kernel` and the targets in the policy."""
    newest = HostInventory.objects.filter(host=OuterRef("pk")).order_by("-taken_at")
    release = KeyTextTransform("release", KeyTransform("kernel", "content__facts"))
    kernel = newest.annotate(release=release).values("release")[:1]
    listed = Prefetch("targets", Target.objects.filter(in_policy=True))
    return Host.objects.annotate(kernel=Subquery(kernel)).prefetch_related(listed)


def active_attempts() -> dict[UUID, Attempt]:
    """Active attempts by host id."""
    active = Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).select_related(
        "host", "run__version__plan", "trial__target"
    )
    return {attempt.host_id: attempt for attempt in active}


@page
def hosts_page(request: HttpRequest) -> HttpResponse:
    removed = "removed" in request.GET
    rows = host_rows(listed_hosts().filter(archived_at__isnull=not removed), active_attempts())
    context = {
        "heading": "Removed hosts" if removed else hosts_heading(rows),
        "rows": rows,
        "any_offline": any(OFFLINE in row.warnings for row in rows),
        "removed_count": Host.objects.exclude(archived_at=None).count(),
        "removed": removed,
    }
    return render(request, "screens/hosts.html", context)


def host_rows(hosts: Iterable[Host], active: Mapping[UUID, Attempt]) -> list[HostRow]:
    """`hosts` with their targets; `active` attempts by host id. One query, for the maintenance windows."""
    windows = open_windows()
    return [_row(host, active.get(host.pk), windows.get(host.pk)) for host in hosts]


def hosts_heading(rows: Sequence[HostRow]) -> str:
    """`Two hosts are away, one is in maintenance, four are ready, one has problems`: what needs a person first."""
    states = Counter(row.presence.state for row in rows)
    if not states:
        return "No host yet"
    counted = [(states[state], words) for state, words in _STATES.items() if states[state]]
    (count, words), *others = counted
    hosts = "The host is" if len(rows) == 1 else f"{'Both' if len(rows) == 2 else f'All {number(len(rows))}'} hosts are"
    first = f"{number(count)} {'host is' if count == 1 else 'hosts are'}" if others else hosts
    phrases = [
        f"{first} {words}",
        *(f"{number(count)} {'is' if count == 1 else 'are'} {words}" for count, words in others),
    ]
    troubled = sum(row.presence.state in _USABLE and any(row.problems) for row in rows)
    if troubled:
        phrases.append(f"{number(troubled)} {'has' if troubled == 1 else 'have'} problems")
    return sentence(phrases)


def _row(host: Host, active: Attempt | None, window: OpenWindow | None) -> HostRow:
    targets = list(host.targets.all())
    return HostRow(
        host=host,
        presence=presence(host, active, window),
        note=window.note if window and host.state == HostState.ACTIVE else host.maintenance_note,
        active=active,
        usable=sum(target.present for target in targets),
        listed=len(targets),
        warnings=warnings(host, targets, newest_version=worker_wheel().version, active=active),
    )


def active_attempt(host: Host) -> Attempt | None:
    """The active attempt of the host."""
    active = Attempt.objects.filter(host=host, state__in=ACTIVE_ATTEMPT_STATES)
    return active.select_related("run", "trial").first()


@page
def host_page(request: HttpRequest, slug: str) -> HttpResponse:
    host = host_or_404(slug)
    if host.slug != slug:
        messages.info(request, f"{slug} is now called {host.slug}.")
        return redirect("host", slug=host.slug)
    return render(request, "screens/host.html", _context(request, host))


def _context(request: HttpRequest, host: Host) -> dict[str, object]:
    active, targets = active_attempt(host), list(host.targets.all())
    inventories = list(host.inventories.all()[:INVENTORIES_SHOWN])
    inventory = read_inventory(inventories[0] if inventories else None)
    newest, window = worker_wheel().version, open_window(host.pk)
    return {
        "host": host,
        "presence": presence(host, active, window),
        "window": window if host.state == HostState.ACTIVE else None,
        "active": active,
        "warnings": warnings(host, (), newest_version=newest, active=active),  # a target's problem is in its row
        "upgrade": upgrade_line() if host.worker_version not in ("", newest) else "",
        "targets": targets,
        "usable": sum(target.present for target in targets if target.in_policy),
        "listed": sum(target.in_policy for target in targets),
        "target_rows": target_rows(host, targets),
        "inventory": inventory,
        "tree": tree(inventory) if inventory else [],
        "settings": setting_rows(host, targets),
        "events": history(host, inventories),
        "runs": listed_runs().filter(id__in=Run.objects.filter(targets__host=host).values("id"))[:RUNS_SHOWN],
        "log": log_tail(host, request),
        "levels": LEVELS,
        "level": request.GET.get("level", ""),
        "log_attempt": request.GET.get("attempt", ""),
        "ceiling_form": ceiling_form([("host", host.slug)], reverse("host", args=[host.slug])),
    }
