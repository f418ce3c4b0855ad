"""Pictures of shared comparisons for other pages, such as a wiki: an SVG image, and a page for a frame.

Both are drawn here and need no script. The token is that of the link to the report; the frame is the only page that
other sites may embed.
"""

from urllib.parse import parse_qsl

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from webapp.analysis.answer import Comparison
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import ViewOptions, read_options
from webapp.analysis.services import linked_comparison
from webapp.analysis.timeline import has_seconds
from webapp.bench.saved import is_bench
from webapp.core.errors import Refusal
from webapp.pictures.drawing import Drawing, picture, source_text
from webapp.screens.bench.picture import report_drawing
from webapp.screens.explore.answer import Answer, answer_to
from webapp.screens.explore.pictures import explore_drawing
from webapp.screens.explore.shown import sentences_of

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
