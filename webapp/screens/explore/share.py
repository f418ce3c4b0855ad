"""Reports of saved comparisons: freeze the numbers, and show them to people without an account.

A link contains a token of 256 random bits. It shows one report, read only; no other page accepts it.
"""

from collections.abc import Callable
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from webapp.analysis.models import ComparisonLink, SavedComparison
from webapp.analysis.question import read_options
from webapp.analysis.services import (
    create_link,
    freeze_comparison,
    linked_comparison,
    may_change,
    revoke_link,
    unfreeze_comparison,
)
from webapp.bench.saved import is_bench
from webapp.core.errors import Refusal
from webapp.imports.selectors import import_titles
from webapp.screens.access import operator_action, page, person
from webapp.screens.bench.report import frozen_report, report_context
from webapp.screens.explore.answer import answer_to, packed
from webapp.screens.explore.pictures import explore_drawing
from webapp.screens.explore.saved import filters_in_words
from webapp.screens.explore.shown import shown
from webapp.screens.one_time_secrets import keep, take

SERIES_ON_PAPER = 4  # of a table, so that its text stays readable
SECRET = "comparison link {}"  # noqa: S105 - the name under which the session keeps one


@page
def report_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A saved comparison to print, save or send, with its links."""
    saved = get_object_or_404(SavedComparison, pk=pk)
    token = take(request, SECRET.format(pk))
    context = {
        "own": may_change(saved, person(request)),
        "links": saved.links.select_related("created_by"),
        "address": request.build_absolute_uri(reverse("shared_comparison", args=[token])) if token else "",
        "chart_address": request.build_absolute_uri(reverse("shared_chart", args=[token])) if token else "",
        "frame_address": request.build_absolute_uri(reverse("shared_frame", args=[token])) if token else "",
    }
    return _report(request, saved, context)


@require_safe
def shared_page(request: HttpRequest, token: str) -> HttpResponse:
    """The report for whoever has the link. Unknown, revoked and deleted look the same."""
    saved = linked_comparison(token)
    if saved is None:
        raise Http404
    return _report(request, saved, {"shared": True})


def _of_explore(saved: SavedComparison) -> dict[str, object]:
    pairs, answer = parse_qsl(saved.query), answer_to(saved)
    options = read_options(pairs)
    context = shown(answer, options, dict(pairs).get("ratios", ""), columns=SERIES_ON_PAPER)
    filters = {"filters": answer.filters} if answer.filters else {}
    return context | filters | {"drawing": explore_drawing(answer, options)}


def _report(request: HttpRequest, saved: SavedComparison, context: dict[str, object]) -> HttpResponse:
    filters = filters_in_words(parse_qsl(saved.query), import_titles())
    of_bench = is_bench(saved.query)
    given: dict[str, object] = {"saved": saved, "now": timezone.now(), "filters": filters, "of_bench": of_bench}
    try:
        given |= report_context(saved) if of_bench else _of_explore(saved)
    except Refusal as refusal:
        given["refusal"] = str(refusal)
    response = render(request, f"screens/{'bench' if of_bench else 'comparison'}_report.html", given | context)
    response["Cache-Control"] = "no-store"
    if "shared" in context:  # elsewhere, forms need the origin: Django refuses a POST without it
        response["Referrer-Policy"] = "no-referrer"  # the address is the secret
    response["X-Robots-Tag"] = "noindex"
    return response


# ---- actions


@operator_action
def freeze_action(request: HttpRequest, pk: int) -> HttpResponse:
    saved = get_object_or_404(SavedComparison, pk=pk)
    message = f"The numbers of {saved.title} are frozen."
    numbers_of = frozen_report if is_bench(saved.query) else packed

    def freeze() -> None:
        freeze_comparison(saved=saved, numbers_of=numbers_of, by=person(request))

    return _done(request, saved, freeze, message)


@operator_action
def unfreeze_action(request: HttpRequest, pk: int) -> HttpResponse:
    saved = get_object_or_404(SavedComparison, pk=pk)
    message = f"{saved.title} shows the current numbers."
    return _done(request, saved, lambda: unfreeze_comparison(saved=saved, by=person(request)), message)


@operator_action
def create_link_action(request: HttpRequest, pk: int) -> HttpResponse:
    saved = get_object_or_404(SavedComparison, pk=pk)
    name = str(request.POST.get("name", ""))

    def create() -> None:
        keep(request, SECRET.format(pk), create_link(saved=saved, name=name, by=person(request)))

    return _done(request, saved, create, "")


@operator_action
def revoke_link_action(request: HttpRequest, pk: int, link: int) -> HttpResponse:
    link_to_revoke = get_object_or_404(ComparisonLink.objects.select_related("comparison"), pk=link, comparison=pk)
    message = f"The link {link_to_revoke.name} is revoked."
    return _done(
        request, link_to_revoke.comparison, lambda: revoke_link(link=link_to_revoke, by=person(request)), message
    )


def _done(request: HttpRequest, saved: SavedComparison, act: Callable[[], object], message: str) -> HttpResponse:
    try:
        act()
        if message:
            messages.success(request, message)
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect(f"{reverse('comparison_report', args=[saved.pk])}#share-title")
