"""Host groups: the list, and the page of one group with its editor."""

from django.contrib import messages
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse

from webapp.core.errors import Refusal
from webapp.hosts.groups import MAX_LABEL, MAX_TITLE, change_group, create_group, delete_group
from webapp.hosts.models import HostGroup
from webapp.hosts.selectors import host_groups, trouble_of
from webapp.schedules.models import Schedule
from webapp.screens.access import operator_action, operator_page, page, person
from webapp.screens.hosts.group_draft import Draft, draft_from, draft_of, fields_of, hosts_to_add, rows_of
from webapp.screens.undo import with_undo


def groups_with_schedules() -> "Prefetch[str]":
    """The schedules that use a group, as `used_by`."""
    return Prefetch("schedules", Schedule.objects.filter(deleted_at=None).order_by("name"), to_attr="used_by")


def _found(slug: str) -> HostGroup:
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
    found = _found(slug)
    return _show(request, draft_of(found), found)


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
    found, draft = _found(slug), draft_from(request.POST)
    if "do" in request.POST:
        return _show(request, draft, found, unsaved=True)
    try:
        saved = change_group(group=found, title=draft.title, members=draft.specs(), by=person(request))
    except Refusal as refusal:
        return _show(request, draft, found, problem=refusal.message, unsaved=True)
    words, undo = f"The host group “{saved}” was saved.", reverse("host_group", args=[slug])
    messages.success(request, with_undo(request, words, undo, given=fields_of(draft_of(found))))
    return redirect("host_group", slug=slug)


def _show(
    request: HttpRequest, draft: Draft, found: HostGroup | None, *, problem: str = "", unsaved: bool = False
) -> HttpResponse:
    rows = rows_of(draft)
    context = {
        "group": found,
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
    found = _found(slug)
    before = [("slug", slug), *fields_of(draft_of(found))]
    try:
        delete_group(group=found, by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("host_group", slug=slug)
    words = f"The host group “{found}” was deleted. Its hosts and results stay."
    messages.success(request, with_undo(request, words, reverse("new_host_group"), given=before))
    return redirect("host_groups")
