"""What the box in the bar finds: hosts, drives, plans and runs, one query each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from webapp.core import formatting
from webapp.hosts.models import Host, Target
from webapp.plans.models import Plan
from webapp.runs.models import Note, Run
from worker.contract.workload import TargetKind

MAX_FOUND = 20
_NUMBER = re.compile(r"^(?:run\s*)?#?(\d{1,9})$", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    title: str
    address: str
    detail: str


@dataclass(frozen=True)
class Group:
    """`more`: there are more than MAX_FOUND, which are not shown."""

    title: str
    hits: tuple[Hit, ...]
    more: bool


def find(words: str) -> tuple[Group, ...]:
    """Groups that have a hit. A hit contains the words as they are, in any case."""
    groups = (
        _group("Hosts", _hosts(words)),
        _group("Drives and directories", _targets(words)),
        _group("Plans", _plans(words)),
        _group("Runs", _runs(words)),
    )
    return tuple(group for group in groups if group.hits)


def _group(title: str, hits: Iterable[Hit]) -> Group:
    found = tuple(hits)
    return Group(title, found[:MAX_FOUND], len(found) > MAX_FOUND)


def _hosts(words: str) -> Iterable[Hit]:
    named = Q(slug__icontains=words) | Q(hostname__icontains=words) | Q(former_names__slug__icontains=words)
    for host in Host.objects.filter(named).distinct().order_by("slug")[: MAX_FOUND + 1]:
        state = "removed" if host.archived_at else ""
        yield Hit(host.slug, reverse("host", args=[host.slug]), _joined(host.hostname, state))


def _targets(words: str) -> Iterable[Hit]:
    fields = ("serial", "model", "slug", "stable_id", "path", "device")
    wanted = Q(*((f"{field}__icontains", words) for field in fields), _connector=Q.OR)
    for target in Target.objects.filter(wanted).select_related("host").order_by("host__slug", "slug")[: MAX_FOUND + 1]:
        serial = f"serial {target.serial}" if target.serial else ""
        gone = "" if target.in_policy else "no longer in the policy"
        size = formatting.bytes_decimal(target.size_bytes) if target.size_bytes else ""
        if size and target.kind == TargetKind.DIRECTORY:
            size += " free"
        detail = _joined(target.model, serial, size, target.path, gone)
        yield Hit(str(target), reverse("host", args=[target.host.slug]), detail)


def _plans(words: str) -> Iterable[Hit]:
    plans = Plan.objects.filter(Q(title__icontains=words) | Q(slug__icontains=words), deleted_at=None)
    for plan in plans.order_by("title")[: MAX_FOUND + 1]:
        yield Hit(plan.title, reverse("plan", args=[plan.slug]), plan.slug)


def _runs(words: str) -> Iterable[Hit]:
    noted = Exists(Note.objects.filter(run=OuterRef("pk"), text__icontains=words))
    wanted = Q(note__icontains=words) | noted | Q(version__plan__title__icontains=words)
    if number := _NUMBER.match(words):
        wanted |= Q(number=int(number.group(1)))
    for run in Run.objects.filter(wanted).select_related("version__plan").order_by("-number")[: MAX_FOUND + 1]:
        detail = _joined(run.version.plan.title, run.get_state_display(), run.note.partition("\n")[0][:120])
        yield Hit(f"Run {run.number}", reverse("run", args=[run.number]), detail)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
