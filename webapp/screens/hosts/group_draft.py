"""A host group in the editor: the fields of its form.

member          name of a host, once for each host, in order
label.<host>    its label; empty: the name of the host
target.<host>   one of its targets, once for each ticked target
add             the host that the step “add” adds
do              a step: add, up:<host>, down:<host> or remove:<host>; without it the group is saved
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.http import QueryDict

from webapp.hosts.groups import MAX_MEMBERS, MemberSpec
from webapp.hosts.models import Host, HostGroup, Target
from webapp.hosts.selectors import hosts_by_name, trouble_of


@dataclass(frozen=True)
class Member:
    """A host of the group in the form."""

    host: str
    label: str
    targets: tuple[str, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    title: str = ""
    members: tuple[Member, ...] = ()
    focus: str = ""  # id of the pressed button, which keeps the focus

    def specs(self) -> list[MemberSpec]:
        return [MemberSpec(member.host, member.targets, member.label or None) for member in self.members]


@dataclass(frozen=True)
class Row:
    """A member with all its options."""

    host: Host
    member: Member
    targets: Sequence[Target]
    moves: tuple[tuple[str, str, bool], ...]  # step, arrow, whether it cannot move further


def draft_of(group: HostGroup) -> Draft:
    """The values to save. Targets that are no longer in the policy are problems: they cannot be chosen again."""
    members = (
        Member(
            member.host.slug,
            member.label,
            tuple(target.slug for target in member.targets.all() if target.in_policy),
            tuple(trouble_of(member)),
        )
        for member in group.members.all()
    )
    return Draft(group.title, tuple(members))


def draft_from(data: QueryDict) -> Draft:
    """The sent form, after its step was applied."""
    names = list(dict.fromkeys(data.getlist("member")))[: MAX_MEMBERS + 1]
    members = [Member(name, data.get(f"label.{name}", ""), tuple(data.getlist(f"target.{name}"))) for name in names]
    step, _, name = data.get("do", "").partition(":")
    place = next((place for place, member in enumerate(members) if member.host == name), None)
    if step == "add" and (added := data.get("add")) and added not in names:
        members.append(Member(added, "", ()))
    elif step == "remove" and place is not None:
        del members[place]
    elif step in ("up", "down") and place is not None:
        other = max(place - 1, 0) if step == "up" else min(place + 1, len(members) - 1)
        members[place], members[other] = members[other], members[place]
        if other in (0, len(members) - 1):  # the pressed button is now disabled
            step = "down" if other == 0 else "up"
    return Draft(data.get("title", ""), tuple(members), focus=f"{step}-{name}" if name else step)


def fields_of(draft: Draft) -> list[tuple[str, str]]:
    """The fields of the form that sends this draft."""
    fields = [("title", draft.title)]
    for member in draft.members:
        fields += [("member", member.host), (f"label.{member.host}", member.label)]
        fields += [(f"target.{member.host}", target) for target in member.targets]
    return fields


def rows_of(draft: Draft) -> list[Row]:
    """Members whose hosts exist; three queries. Former names of hosts are replaced by the current names."""
    hosts = hosts_by_name(member.host for member in draft.members)
    targets: dict[UUID, list[Target]] = {}
    for target in Target.objects.filter(host__in=hosts.values(), in_policy=True).order_by("slug"):
        targets.setdefault(target.host_id, []).append(target)
    there = [(hosts[member.host], member) for member in draft.members if member.host in hosts]
    last = len(there) - 1
    return [
        Row(host, member, targets.get(host.pk, []), (("up", "↑", place == 0), ("down", "↓", place == last)))
        for place, (host, member) in enumerate(there)
    ]


def hosts_to_add(rows: Iterable[Row]) -> list[Host]:
    """Hosts with targets that are not removed and not in the group yet."""
    usable = Host.objects.filter(archived_at=None, targets__in_policy=True).distinct()
    return list(usable.exclude(pk__in=[row.host.pk for row in rows]).order_by("slug"))
