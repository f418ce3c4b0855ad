"""The page that compares two inventories of a host, which the address names."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from webapp.hosts.inventory.diff import differences, table
from webapp.hosts.inventory.store import read_inventory
from webapp.hosts.models import Host, HostInventory
from webapp.runs.models import Run
from webapp.screens.access import page
from webapp.screens.hosts.presence import host_or_404

INVENTORIES_OFFERED = 200


@page
def host_differences(request: HttpRequest, slug: str) -> HttpResponse:
    host = host_or_404(slug)
    if host.slug != slug:
        return redirect(f"{request.path.replace(slug, host.slug, 1)}?{request.GET.urlencode()}")
    inventories = list(host.inventories.all()[:INVENTORIES_OFFERED])
    before = _chosen(host, request.GET.get("from", ""), inventories, 1)
    after = _chosen(host, request.GET.get("to", ""), inventories, 0)
    old, new = read_inventory(before), read_inventory(after)
    offered = {*inventories, *(inventory for inventory in (before, after) if inventory)}
    context = {
        "host": host,
        "inventories": sorted(offered, key=lambda inventory: inventory.taken_at, reverse=True),
        "before": before,
        "after": after,
        "readable": old is not None and new is not None,
        "changes": table(old, new) if old and new else [],
    }
    return render(request, "screens/host_differences.html", context)


def _chosen(host: Host, text: str, inventories: Sequence[HostInventory], default: int) -> HostInventory | None:
    """The inventory with this id, else the default one."""
    is_id = text.isdecimal() and len(text) < 18
    inventory = host.inventories.filter(pk=int(text)).first() if is_id else None
    return inventory or (inventories[min(default, len(inventories) - 1)] if inventories else None)


@dataclass(frozen=True)
class SinceThen:
    """The inventories of a host in a run and in the run before it on that host."""

    host: Host
    earlier: int  # number of that run
    before: HostInventory
    after: HostInventory

    @property
    def same(self) -> bool:
        """By the rules of `table`, which may be newer than the inventories."""
        if self.before.content_id == self.after.content_id:
            return True
        before, after = read_inventory(self.before), read_inventory(self.after)
        return before is not None and after is not None and not differences(before, after)


def since_run_before(run: Run) -> list[SinceThen]:
    """Inventories of each host of a started run that had an earlier run. Up to five queries per host."""
    hosts = Host.objects.filter(pk__in=run.targets.values("host")).order_by("slug") if run.started_at else []
    return [since for host in hosts if (since := _since(run, host))]


def _since(run: Run, host: Host) -> SinceThen | None:
    earlier = Run.objects.filter(targets__host=host, started_at__lt=run.started_at).order_by("-started_at").first()
    if earlier is None:
        return None
    inventories = host.inventories.only("pk", "host", "content_id", "taken_at")
    before = inventories.filter(taken_at__lte=earlier.started_at).first() or inventories.last()
    after = inventories.filter(taken_at__lte=run.ended_at).first() if run.ended_at else inventories.first()
    return SinceThen(host, earlier.number, before, after) if before and after else None
