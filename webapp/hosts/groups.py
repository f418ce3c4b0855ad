"""Creating, changing and deleting groups of hosts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import ProtectedError
from django.utils.text import slugify

from webapp.core.errors import NotFound, Refusal, free_slug
from webapp.core.models import User
from webapp.core.services import audit
from webapp.hosts.models import GroupMember, Host, HostGroup, Target
from webapp.hosts.selectors import NO_LABEL, hosts_by_name

MAX_TITLE = 120
MAX_LABEL = 63
MAX_SLUG = 63
MAX_MEMBERS = 100
RESERVED = frozenset({"new"})  # addresses of other pages under /groups/


@dataclass(frozen=True)
class MemberSpec:
    """A host of a group as a person entered it: names of the host and of its targets."""

    host: str
    targets: Sequence[str]
    label: str | None = None  # None: the name of the host


@dataclass(frozen=True)
class _Member:
    host: Host
    targets: list[Target]
    label: str


@transaction.atomic
def create_group(*, title: str, members: Sequence[MemberSpec], by: User | None, slug: str | None = None) -> HostGroup:
    """Create a group with its members in this order. Without `slug`, it is derived from the title.

    Raises Refusal title_refused, slug_refused, group_exists, members_refused, host_unknown or target_unknown.
    """
    title, checked = _checked_title(title), _checked_members(members)
    chosen = _free_slug(title) if slug is None else _checked_slug(slug)
    if HostGroup.objects.filter(slug=chosen).exists():
        raise Refusal("group_exists", f"A host group `{chosen}` already exists. Choose another name.")
    group = HostGroup.objects.create(slug=chosen, title=title)
    _add_members(group, checked)
    audit(by=by, action="group.create", on=group, label=group.slug, detail=_detail(group, checked))
    return group


@transaction.atomic
def change_group(*, group: HostGroup, title: str, members: Sequence[MemberSpec], by: User | None) -> HostGroup:
    """Replace the title and all members. Raises Refusal as `create_group` does."""
    locked = HostGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
    locked.title, checked = _checked_title(title), _checked_members(members)
    locked.save(update_fields=["title"])
    locked.members.all().delete()
    _add_members(locked, checked)
    audit(by=by, action="group.change", on=locked, label=locked.slug, detail=_detail(locked, checked))
    return locked


@transaction.atomic
def delete_group(*, group: HostGroup, by: User | None) -> None:
    """Delete the group; its hosts and results stay. Raises Refusal group_in_use while a schedule uses it."""
    if not HostGroup.objects.select_for_update().filter(pk=group.pk).exists():
        return  # deleted meanwhile
    # A deleted schedule does not keep its group. When it is restored, it is disabled and has no targets.
    group.schedules.exclude(deleted_at=None).update(group=None)
    try:
        HostGroup.objects.filter(pk=group.pk).delete()
    except ProtectedError as error:
        users = sorted(f"{user._meta.verbose_name} “{user}”" for user in error.protected_objects)
        words = f"The host group “{group}” is in use: {', '.join(users)}. Change or delete that first."
        raise Refusal("group_in_use", words) from error
    audit(by=by, action="group.delete", on=group, label=group.slug, detail={"title": group.title})


def _checked_title(title: str) -> str:
    title = " ".join(title.split())
    if not 1 <= len(title) <= MAX_TITLE:
        raise Refusal("title_refused", f"A host group needs a title of 1 to {MAX_TITLE} characters.")
    if not title.isprintable():
        raise Refusal("title_refused", "The title contains characters that cannot be shown. Remove them.")
    return title


def _checked_members(specs: Sequence[MemberSpec]) -> list[_Member]:
    if not specs:
        raise Refusal("members_refused", "The host group has no hosts. Add at least one.")
    if len(specs) > MAX_MEMBERS:
        raise Refusal("members_refused", f"{len(specs)} hosts are too many: a host group has at most {MAX_MEMBERS}.")
    hosts = hosts_by_name(spec.host for spec in specs)
    if missing := [spec.host for spec in specs if spec.host not in hosts]:
        raise NotFound("host_unknown", f"There is no host `{missing[0]}`.")
    targets = _targets(hosts.values())
    members = [_checked_member(spec, hosts[spec.host], targets) for spec in specs]
    _refuse_twice([member.host.slug for member in members], "The host {} is in the group twice. Remove one of them.")
    _refuse_twice(
        [member.label for member in members], "The label “{}” is used twice. Give each host a different label."
    )
    return members


def _targets(hosts: Iterable[Host]) -> dict[tuple[UUID, str], Target]:
    """Targets by host and name; if several had the same name, the one in the policy."""
    targets = Target.objects.select_related("host").filter(host__in=hosts).order_by("in_policy")
    return {(target.host_id, target.slug): target for target in targets}


def _checked_member(spec: MemberSpec, host: Host, targets: Mapping[tuple[UUID, str], Target]) -> _Member:
    if not spec.targets:
        raise Refusal("members_refused", f"Choose at least one target of {host}.")
    chosen = [_checked_target(host, name, targets) for name in dict.fromkeys(spec.targets)]
    return _Member(host, chosen, _checked_label(host.slug if spec.label is None else spec.label, host))


def _checked_target(host: Host, name: str, targets: Mapping[tuple[UUID, str], Target]) -> Target:
    target = targets.get((host.pk, name))
    if target is None:
        raise NotFound("target_unknown", f"{host} has no target `{name}`. Choose only targets of this host.")
    if not target.in_policy:
        words = f"{target} is no longer in the policy file of its host. Choose another target, or remove the host."
        raise Refusal("members_refused", words)
    return target


def _checked_label(label: str, host: Host) -> str:
    label = " ".join(label.split())
    if not 1 <= len(label) <= MAX_LABEL:
        raise Refusal("members_refused", f"The label of {host} needs 1 to {MAX_LABEL} characters.")
    if label == NO_LABEL:
        raise Refusal("members_refused", f"“{NO_LABEL}” is reserved. Choose another label.")
    if not label.isprintable():
        raise Refusal("members_refused", f"The label of {host} contains characters that cannot be shown. Remove them.")
    return label


def _refuse_twice(texts: Sequence[str], words: str) -> None:
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise Refusal("members_refused", words.format(twice))


def _checked_slug(slug: str) -> str:
    if slugify(slug) != slug or not 0 < len(slug) <= MAX_SLUG:
        words = f"“{slug}” is not a valid name: use lowercase letters, digits and hyphens, at most {MAX_SLUG}."
        raise Refusal("slug_refused", words)
    if slug in RESERVED:
        raise Refusal("slug_refused", f"“{slug}” is the address of another page. Choose another name.")
    return slug


def _free_slug(title: str) -> str:
    """A slug from the title, with a number if it is taken."""
    wanted = slugify(title)[: MAX_SLUG - 5].strip("-") or "group"
    taken = {*HostGroup.objects.filter(slug__startswith=wanted).values_list("slug", flat=True), *RESERVED}
    return free_slug(wanted, taken)


def _add_members(group: HostGroup, members: Sequence[_Member]) -> None:
    rows = [
        GroupMember(group=group, host=member.host, label=member.label, place=place)
        for place, member in enumerate(members)
    ]
    GroupMember.objects.bulk_create(rows)
    through = GroupMember.targets.through
    through.objects.bulk_create(
        through(groupmember=row, target=target)
        for row, member in zip(rows, members, strict=True)
        for target in member.targets
    )


def _detail(group: HostGroup, members: Sequence[_Member]) -> dict[str, object]:
    hosts = [f"{member.label}: {', '.join(map(str, member.targets))}" for member in members]
    return {"title": group.title, "hosts": hosts}
