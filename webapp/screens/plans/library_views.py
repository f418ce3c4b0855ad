"""The library: the list of plans; copy, delete and restore a plan."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.core.errors import Refusal
from webapp.plans.models import Plan
from webapp.plans.services import copy_plan, delete_plan, undelete_plan
from webapp.screens.access import operator_action, page, person
from webapp.screens.plans.finding import found_version
from webapp.screens.plans.library import SHOWN_AS, Shown, listed_plans, rows

PER_PAGE = 50
MAX_SEARCH_LENGTH = 200


@page
def plans_page(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("show", "")
    shown = Shown(asked) if asked in set(Shown) else Shown.ALL
    search = request.GET.get("q", "")[:MAX_SEARCH_LENGTH]
    pages = Paginator(listed_plans(search, shown), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "rows": rows(list(pages.object_list)),
        "pages": pages,
        "search": search,
        "shown": shown,
        "choices": SHOWN_AS.items(),
        "any": search or shown is not Shown.ALL or pages.paginator.count,
    }
    return render(request, "screens/plans.html", context)


@operator_action
def copy_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    """Copy a plan, perhaps with sizes of at most `most_bytes`, and open the copy in the editor."""
    version = found_version(slug, request.POST.get("version", ""))
    most = request.POST.get("most_bytes", "")
    most_bytes = int(most) if most.isascii() and most.isdecimal() and len(most) < 20 else 0
    try:
        copied = copy_plan(version=version, by=person(request), most_bytes=most_bytes)
    except Refusal as refusal:
        messages.error(request, f"Not copied: {refusal}")
        return redirect("plan", slug=slug)
    messages.success(request, f"Copied from {version.plan.title}, version {version.number}.")
    return redirect("edit_plan", slug=copied.slug)


@operator_action
def delete_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    plan = found_version(slug).plan
    if plan.deleted_at is not None:
        messages.info(request, f"{plan.title} was already deleted.")
        return redirect("plans")
    delete_plan(plan=plan, by=person(request))
    messages.success(request, _with_undo(request, plan))
    return redirect("plans")


def _with_undo(request: HttpRequest, plan: Plan) -> SafeString:
    """The message with an Undo button, which is a form and needs no script."""
    context = {"title": plan.title, "restore": reverse("undelete_plan", kwargs={"slug": plan.slug})}
    return render_to_string("screens/messages/plan_deleted.html", context, request)


@operator_action
def undelete_plan_action(request: HttpRequest, slug: str) -> HttpResponse:
    plan = found_version(slug).plan
    if plan.deleted_at is None:
        messages.info(request, f"{plan.title} is not deleted.")
    else:
        undelete_plan(plan=plan, by=person(request))
        messages.success(request, f"{plan.title} is restored.")
    return redirect("plan", slug=slug)
