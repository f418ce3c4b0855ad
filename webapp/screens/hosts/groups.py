"""Host groups: the list, and the page of one group with its editor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.hosts.groups import MAX_LABEL, MAX_MEMBERS, MAX_TITLE, MemberSpec, change_group, create_group, delete_group
from webapp.hosts.models import Host, HostGroup, Target
from webapp.hosts.selectors import host_groups, hosts_by_name, trouble_of
from webapp.schedules.models import Schedule
from webapp.screens.access import operator_action, operator_page, page, person
from webapp.screens.undo import with_undo

# A host group in the editor: the fields of its form.
#
# member          name of a host, once for each host, in order
# label.<host>    its label; empty: the name of the host
# target.<host>   one of its targets, once for each ticked target
# add             the host that the step “add” adds
# do              a step: add, up:<host>, down:<host> or remove:<host>; without it the group is saved


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
    known = [(hosts[member.host], member) for member in draft.members if member.host in hosts]
    last = len(known) - 1
    return [
        Row(host, member, targets.get(host.pk, []), (("up", "↑", place == 0), ("down", "↓", place == last)))
        for place, (host, member) in enumerate(known)
    ]


def hosts_to_add(rows: Iterable[Row]) -> list[Host]:
    """Hosts with targets that are not removed and not in the group yet."""
    usable = Host.objects.filter(archived_at=None, targets__in_policy=True).distinct()
    return list(usable.exclude(pk__in=[row.host.pk for row in rows]).order_by("slug"))


def groups_with_schedules() -> "Prefetch[str]":
    """The schedules that use a group, as `used_by`."""
    return Prefetch("schedules", Schedule.objects.filter(deleted_at=None).order_by("name"), to_attr="used_by")


def _group(slug: str) -> HostGroup:
    group = host_groups().prefetch_related(groups_with_schedules()).filter(slug=slug).first()
    if group is None:
        raise Http404(f"There is no host group {slug}.")
    return group


@page
def groups_page(request: HttpRequest) -> HttpResponse:
    groups = host_groups().prefetch_related(groups_with_schedules()).order_by("title")
    rows = [(group, [(member, trouble_of(member)) for member in group.members.all()]) for group in groups]
    return render(request, "screens/host_groups.html", {"rows": rows})


def new_group(request: HttpRequest) -> HttpResponseBase:
    return save_new_group(request) if request.method == "POST" else show_new_group(request)


def group(request: HttpRequest, slug: str) -> HttpResponseBase:
    return save_group(request, slug) if request.method == "POST" else show_group(request, slug)


@operator_page
def show_new_group(request: HttpRequest) -> HttpResponse:
    return _show(request, Draft(), None)


@page
def show_group(request: HttpRequest, slug: str) -> HttpResponse:
    group = _group(slug)
    return _show(request, draft_of(group), group)


@operator_action
def save_new_group(request: HttpRequest) -> HttpResponse:
    draft = draft_from(request.POST)
    if "do" in request.POST:
        return _show(request, draft, None, unsaved=True)
    try:
        slug = request.POST.get("slug") or None  # of a deleted group
        made = create_group(title=draft.title, members=draft.specs(), by=person(request), slug=slug)
    except Refusal as refusal:
        return _show(request, draft, None, problem=refusal.message, unsaved=True)
    messages.success(request, f"The host group “{made}” was created.")
    return redirect("host_group", slug=made.slug)


@operator_action
def save_group(request: HttpRequest, slug: str) -> HttpResponse:
    group, draft = _group(slug), draft_from(request.POST)
    if "do" in request.POST:
        return _show(request, draft, group, unsaved=True)
    try:
        saved = change_group(group=group, title=draft.title, members=draft.specs(), by=person(request))
    except Refusal as refusal:
        return _show(request, draft, group, problem=refusal.message, unsaved=True)
    words, undo = f"The host group “{saved}” was saved.", reverse("host_group", args=[slug])
    messages.success(request, with_undo(request, words, undo, given=fields_of(draft_of(group))))
    return redirect("host_group", slug=slug)


def _show(
    request: HttpRequest, draft: Draft, group: HostGroup | None, *, problem: str = "", unsaved: bool = False
) -> HttpResponse:
    rows = rows_of(draft)
    context = {
        "group": group,
        "draft": draft,
        "rows": rows,
        "offered": hosts_to_add(rows),
        "problem": problem,
        "unsaved": unsaved,
        "max_title": MAX_TITLE,
        "max_label": MAX_LABEL,
    }
    return render(request, "screens/host_group.html", context, status=422 if problem else 200)


@operator_action
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    group = _group(slug)
    before = [("slug", slug), *fields_of(draft_of(group))]
    try:
        delete_group(group=group, by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("host_group", slug=slug)
    words = f"The host group “{group}” was deleted. Its hosts and results stay."
    messages.success(request, with_undo(request, words, reverse("new_host_group"), given=before))
    return redirect("host_groups")
