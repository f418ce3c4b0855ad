"""Selectors of hosts and targets."""

import re
from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify

from webapp.core.errors import NotFound, Refusal, free_slug
from webapp.hosts.models import (
    EnrolmentToken,
    FormerName,
    GroupMember,
    Host,
    HostGroup,
    HostState,
    Target,
    WorkerLogLine,
)
from worker.contract.reports import LogLevel

# Names of hosts. A former name is never reused, so an old address never leads to another machine.
#
# Also the names of several targets at once: host/nvme0n1 + nvme1n1.

MAX_LENGTH = 63
BESIDE = " + "
NO_LABEL = "no label"  # label of results whose run was not started for a host group
RESERVED = frozenset({"add", "former", "removed"})  # used in the addresses of other pages
_FORM = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def checked_name(slug: str, *, host: Host | None = None) -> str:
    """The checked name for `host` (None: a new host). Raises Refusal with the reason."""
    if not _FORM.fullmatch(slug) or len(slug) > MAX_LENGTH:
        words = f"Use lowercase letters, digits and hyphens between them, at most {MAX_LENGTH} characters."
        raise Refusal("host_name_bad", f"{slug!r} is not a valid name. {words}")
    if slug in RESERVED:
        raise Refusal("host_name_bad", f"{slug} is used in addresses of Sweetspot. Choose another name.")
    taken = Host.objects.filter(slug=slug).first()
    if taken is not None and taken != host:
        where = " (it was removed; its results still carry the name)" if taken.archived_at else ""
        raise Refusal("host_name_taken", f"A host called {slug} already exists{where}. Choose another name.")
    former = FormerName.objects.select_related("host").filter(slug=slug).first()
    if former is not None and former.host != host:
        raise Refusal("host_name_taken", f"{slug} is a former name of {former.host}. Choose another name.")
    return slug


def group_name(first: str, further: Iterable[str]) -> str:
    """`first` is host/target or a target; `further` are slugs of more targets of the host, or host/target of other
    hosts. Slugs contain no spaces."""
    return BESIDE.join((first, *further))


def parted(name: str) -> tuple[str, list[str]]:
    """The host and the slugs of the targets in a name, which may contain several targets."""
    host, _, slugs = name.partition("/")
    return host, slugs.split(BESIDE)


def members_of(name: str) -> list[str]:
    """host/target of each of the targets in a name."""
    host, slugs = parted(name)
    return [slug if "/" in slug else f"{host}/{slug}" for slug in slugs]


def plain_slug(name: str) -> str:
    """A hostname as a slug: storage1.lab.example -> storage1-lab-example."""
    return slugify(name.replace(".", "-")).replace("_", "-")[:50].strip("-") or "host"


def free_host_slug(name: str) -> str:
    """The name as a slug, with a number appended if it is taken, a former name, or reserved."""
    wanted = plain_slug(name)
    taken = {*Host.objects.filter(slug__startswith=wanted).values_list("slug", flat=True), *RESERVED}
    taken |= set(FormerName.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    return free_slug(wanted, taken)


LEVELS = [level.value for level in LogLevel]  # in ascending order of severity


def host_named(slug: str) -> Host | None:
    """The host with this name or former name; in the latter case its `slug` differs."""
    host = Host.objects.filter(slug=slug).first()
    if host is not None:
        return host
    former = FormerName.objects.select_related("host").filter(slug=slug).first()
    return former.host if former else None


def known_host(slug: str) -> Host:
    """The host with this name or former name. Raises Refusal host_unknown."""
    host = host_named(slug)
    if host is None:
        raise NotFound("host_unknown", f"There is no host {slug}.")
    return host


def hosts_called(names: Iterable[str]) -> QuerySet[Host]:
    """Hosts with these names or former names."""
    wanted = list(names)
    former = FormerName.objects.filter(slug__in=wanted).values("host")
    return Host.objects.filter(Q(slug__in=wanted) | Q(pk__in=former)).order_by()


def hosts_by_name(names: Iterable[str]) -> dict[str, Host]:
    """Hosts by name or former name. Names without a host are left out."""
    wanted = {name for name in names if "\0" not in name}  # PostgreSQL cannot look up NUL
    former = {old.slug: old.host for old in FormerName.objects.select_related("host").filter(slug__in=wanted)}
    return former | {host.slug: host for host in Host.objects.filter(slug__in=wanted)}


def host_groups() -> QuerySet[HostGroup]:
    """Groups with their members, hosts and targets. Three more queries for any number of groups."""
    targets = Prefetch("targets", Target.objects.select_related("host").order_by("slug"))
    members = GroupMember.objects.select_related("host").prefetch_related(targets).order_by("place")
    return HostGroup.objects.prefetch_related(Prefetch("members", members))


def known_group(slug: str) -> HostGroup:
    """The group with this name and its members. Raises Refusal group_unknown."""
    group = host_groups().filter(slug=slug).first()
    if group is None:
        raise NotFound("group_unknown", f"There is no host group {slug}.")
    return group


def trouble_of(member: GroupMember) -> list[str]:
    """Why a host of a group or one of its targets can no longer be used, in words. Ignores temporary reasons."""
    if member.host.archived_at is not None:
        return ["The host was removed."]
    revoked = ["The host is revoked."] if member.host.state == HostState.REVOKED else []
    gone = [
        f"{target.slug} is no longer in the policy file." for target in member.targets.all() if not target.in_policy
    ]
    none = [] if member.targets.all() else ["No target is left."]
    return revoked + gone + none


def known_targets(names: Sequence[str]) -> list[Target]:
    """Targets by `host/target`, each once, in the given order; former names of hosts are allowed.

    Raises Refusal target_unknown naming the missing ones.
    """
    slugs = [name.partition("/")[::2] for name in names]
    hosts = {host for host, _ in slugs}
    former = dict(FormerName.objects.filter(slug__in=hosts).values_list("slug", "host__slug"))
    listed = Target.objects.select_related("host").filter(host__slug__in=hosts | set(former.values()), in_policy=True)
    known = {(target.host.slug, target.slug): target for target in listed}
    targets = [known.get((host, slug)) or known.get((former.get(host, host), slug)) for host, slug in slugs]
    missing = [name for name, target in zip(names, targets, strict=True) if target is None]
    if missing:
        raise NotFound("target_unknown", f"There is no target {', '.join(missing)}. Write targets as host/target.")
    return list(dict.fromkeys(target for target in targets if target is not None))


def known_target(host: str, slug: str) -> Target:
    """The target `host/target`. Raises Refusal target_unknown."""
    return known_targets([f"{host}/{slug}"])[0]


def drives_of(pool: Target) -> list[Target]:
    """The drives of a pool as targets, in its order; [] for any other target. One query."""
    if not pool.drives:
        return []
    drives = Target.objects.filter(host=pool.host_id, in_policy=True, slug__in=pool.drives).select_related("host")
    listed = {drive.slug: drive for drive in drives}
    return [listed[slug] for slug in pool.drives if slug in listed]


def open_enrolments() -> QuerySet[EnrolmentToken]:
    """Valid one-time tokens, the next to expire first."""
    tokens = EnrolmentToken.objects.filter(used_at=None, expires_at__gt=timezone.now())
    return tokens.select_related("created_by", "host").order_by("expires_at")


def enrolment_called(reference: str) -> EnrolmentToken | None:
    """The one-time token with this reference, used or not."""
    if len(reference) < 16:
        return None
    return EnrolmentToken.objects.select_related("host").filter(token_hash__startswith=reference).first()


def log_lines(host: Host, *, level: str = "", attempt: UUID | None = None) -> QuerySet[WorkerLogLine]:
    """Lines of the worker's log with at least this level, about this order; newest first."""
    lines = WorkerLogLine.objects.filter(host=host).order_by("-id")
    if level in LEVELS:
        lines = lines.filter(level__in=LEVELS[LEVELS.index(level) :])
    return lines.filter(attempt=attempt) if attempt else lines
