"""Hosts: the list, and one host."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db.models import OuterRef, Prefetch, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.hosts.installer import upgrade_line, worker_wheel
from webapp.hosts.inventory.store import read_inventory
from webapp.hosts.maintenance_windows import OpenWindow, open_window, open_windows
from webapp.hosts.models import Host, HostInventory, HostState, Target
from webapp.hosts.selectors import LEVELS
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run
from webapp.screens.access import page
from webapp.screens.hosts import detail
from webapp.screens.hosts.find import host_or_404
from webapp.screens.hosts.presence import Presence, presence, warnings
from webapp.screens.hosts.worker_log import log_tail
from webapp.screens.runs.views import listed_runs

RUNS_SHOWN = 10


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
    context = {
        "rows": host_rows(listed_hosts().filter(archived_at__isnull=not removed), active_attempts()),
        "removed_count": Host.objects.exclude(archived_at=None).count(),
        "removed": removed,
    }
    return render(request, "screens/hosts.html", context)


def host_rows(hosts: Iterable[Host], active: Mapping[UUID, Attempt]) -> list[HostRow]:
    """`hosts` with their targets; `active` attempts by host id. One query, for the maintenance windows."""
    windows = open_windows()
    return [_row(host, active.get(host.pk), windows.get(host.pk)) for host in hosts]


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
    inventories = list(host.inventories.all()[: detail.INVENTORIES_SHOWN])
    inventory = read_inventory(inventories[0] if inventories else None)
    newest, window = worker_wheel().version, open_window(host.pk)
    return {
        "host": host,
        "presence": presence(host, active, window),
        "window": window if host.state == HostState.ACTIVE else None,
        "active": active,
        "warnings": warnings(host, targets, newest_version=newest, active=active),
        "upgrade": upgrade_line() if host.worker_version not in ("", newest) else "",
        "targets": targets,
        "target_rows": detail.target_rows(targets),
        "inventory": inventory,
        "tree": detail.tree(inventory) if inventory else [],
        "settings": detail.setting_rows(host, targets),
        "events": detail.history(host, inventories),
        "runs": listed_runs().filter(id__in=Run.objects.filter(targets__host=host).values("id"))[:RUNS_SHOWN],
        "log": log_tail(host, request),
        "levels": LEVELS,
        "level": request.GET.get("level", ""),
        "log_attempt": request.GET.get("attempt", ""),
    }
