"""Hosts: the list, one host, and adding one."""

from dataclasses import dataclass
from datetime import timedelta

import msgspec
from django.conf import settings
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from webapp.hosts.keys import signing_key
from webapp.hosts.models import Host, HostSnapshot
from webapp.hosts.services import issue_enrolment_token
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run
from webapp.screens.access import operator_action, page, person
from webapp.screens.hosts.forms import AddHostForm
from webapp.screens.runs.views import listed_runs
from worker.contract.inventory import Inventory

# A worker reports every second while it works and at least once a minute while it does not.
SILENT_AFTER = timedelta(minutes=3)
RUNS_SHOWN = 10


@dataclass(frozen=True)
class Presence:
    """Whether a host's worker is heard, as a state with a colour and in words."""

    state: str
    words: str


def presence(host: Host, busy: bool) -> Presence:
    if host.state != "active":
        return Presence("cancelled" if host.state == "maintenance" else "failed", host.get_state_display())
    if host.last_seen_at is None or timezone.now() - host.last_seen_at > SILENT_AFTER:
        return Presence("lost", "Silent")
    return Presence("running", "Working") if busy else Presence("done", "Ready")


@page
def hosts_page(request: HttpRequest) -> HttpResponse:
    hosts = Host.objects.annotate(
        target_count=Count("targets", filter=Q(targets__in_policy=True), distinct=True),
        usable_count=Count("targets", filter=Q(targets__in_policy=True, targets__present=True), distinct=True),
        active_count=Count("attempts", filter=Q(attempts__state__in=ACTIVE_ATTEMPT_STATES), distinct=True),
    )
    rows = [(host, presence(host, host.active_count > 0)) for host in hosts]
    return render(request, "screens/hosts.html", {"rows": rows, "form": AddHostForm()})


@operator_action
def add_host(request: HttpRequest) -> HttpResponse:
    """Shows the one line to paste; the token in it is shown this once."""
    form = AddHostForm(request.POST)
    if not form.is_valid():
        return render(request, "screens/add_host.html", {"form": form}, status=400)
    token = issue_enrolment_token(by=person(request), slug=form.cleaned_data["slug"])
    key_id, _ = signing_key()
    context = {
        "slug": form.cleaned_data["slug"],
        "line": f"sweetspot-worker enrol --server {settings.PUBLIC_URL} --token {token} --key {key_id}",
        "fingerprint": key_id,
        "minutes": settings.ENROLMENT_SECONDS // 60,
    }
    response = render(request, "screens/add_host.html", context)
    response["Cache-Control"] = "no-store"
    return response


def _inventory(host: Host) -> Inventory | None:
    latest = HostSnapshot.objects.filter(host=host).select_related("snapshot").first()
    if latest is None:
        return None
    return msgspec.convert(latest.snapshot.facts, Inventory)


@page
def host_page(request: HttpRequest, slug: str) -> HttpResponse:
    host = get_object_or_404(Host, slug=slug)
    active = Attempt.objects.filter(host=host, state__in=ACTIVE_ATTEMPT_STATES).select_related("run", "trial").first()
    context = {
        "host": host,
        "presence": presence(host, active is not None),
        "active": active,
        "targets": host.targets.all(),
        "inventory": _inventory(host),
        "runs": listed_runs().filter(id__in=Run.objects.filter(targets__host=host).values("id"))[:RUNS_SHOWN],
    }
    return render(request, "screens/host.html", context)
