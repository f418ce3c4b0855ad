"""Reports of saved comparisons: freeze the numbers, and show them to people without an account.

A link contains a token of 256 random bits. It shows one report, read only; no other page accepts it. Other sites can
embed its chart.
"""

from collections.abc import Callable
from urllib.parse import parse_qsl

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from webapp.analysis.answer import Comparison
from webapp.analysis.models import ComparisonLink, SavedComparison
from webapp.analysis.question import ViewOptions, read_options
from webapp.analysis.services import (
    create_link,
    freeze_comparison,
    linked_comparison,
    may_change,
    revoke_link,
    unfreeze_comparison,
)
from webapp.analysis.timeline import has_seconds
from webapp.bench.saved import is_bench
from webapp.core.errors import Refusal
from webapp.imports.selectors import import_titles
from webapp.pictures.drawing import Drawing, picture, source_text
from webapp.screens.access import operator_action, page, person
from webapp.screens.bench.picture import report_drawing
from webapp.screens.bench.report import frozen_report, report_context
from webapp.screens.explore.answer import Answer, answer_to, packed
from webapp.screens.explore.pictures import explore_drawing
from webapp.screens.explore.saved import filters_in_words
from webapp.screens.explore.shown import sentences_of, shown
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


# Pictures of shared comparisons for other pages, such as a wiki: an SVG image, and a page for a frame.
#
# Both are drawn here and need no script. The token is that of the link to the report; the frame is the only page that
# other sites may embed.

SENTENCES = 3
# No script, no style, nothing from anywhere: the picture is in the page.
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors {}"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address is the secret
    "X-Robots-Tag": "noindex",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


@require_safe
def shared_chart(_: HttpRequest, token: str) -> HttpResponse:
    """The picture for `<img>`. Unknown, revoked and deleted look the same."""
    saved = _linked(token)
    headers = {**HEADERS, "Content-Security-Policy": _POLICY.format("'none'")}
    return HttpResponse(_picture(saved), content_type="image/svg+xml", headers=headers)


@xframe_options_exempt
@require_safe
def shared_frame(request: HttpRequest, token: str) -> HttpResponse:
    """The page for `<iframe>`, whose width the picture takes."""
    saved = _linked(token)
    drawn = mark_safe(_picture(saved, scaled=True))  # noqa: S308 - every text in it is escaped
    response = render(request, "screens/shared_frame.html", {"saved": saved, "picture": drawn})
    for name, value in {**HEADERS, "Content-Security-Policy": _POLICY.format("*")}.items():
        response[name] = value
    return response


def _linked(token: str) -> SavedComparison:
    saved = linked_comparison(token)
    if saved is None:
        raise Http404
    return saved


def _picture(saved: SavedComparison, *, scaled: bool = False) -> str:
    drawing, source = _drawing(saved)
    return picture(drawing, source_text(saved.frozen_at or timezone.now()) + source, scaled=scaled)


def _drawing(saved: SavedComparison) -> tuple[Drawing, str]:
    """Also what the numbers are, to follow the date."""
    try:
        if is_bench(saved.query):
            return report_drawing(saved)
        answer = answer_to(saved)
    except Refusal as refusal:
        return Drawing(saved.title, notes=[str(refusal)]), ""
    comparison, options = answer.comparison, read_options(parse_qsl(saved.query))
    notes = [*_missing(answer, options), *comparison.warnings, *_conclusions(comparison)]
    drawing = explore_drawing(answer, options, saved.title, notes)
    return drawing, f", {comparison.results} results. {comparison.verdict}"


def _missing(answer: Answer, options: ViewOptions) -> list[str]:
    """What the picture does not show."""
    if not answer.comparison.results:
        return ["No results match any more."]
    if options.view == "latency" and not answer.distributions:
        return [f"No histogram is stored for {answer.chart_point}."]
    if answer.lines and not has_seconds(answer.lines):
        return [f"No values per second are stored for {answer.chart_point}."]
    if answer.scatter and not answer.scatter.panels:
        return [f"No result has both {answer.scatter.x_label} and {answer.scatter.y_label}."]
    return []


def _conclusions(comparison: Comparison) -> list[str]:
    """The first conclusions, and the number of the others."""
    conclusions = [f"{panel}: {sentence}" if panel else sentence for panel, sentence in sentences_of(comparison)]
    more = len(conclusions) - SENTENCES
    left_out = [f"{more} more conclusion{'' if more == 1 else 's'} in the report."] if more > 0 else []
    return [*conclusions[:SENTENCES], *left_out]
