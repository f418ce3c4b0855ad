"""Charts of a page as SVG, for printing and for the buttons PNG and SVG; and the shapes of markers."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import tostring

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.safestring import SafeString

from webapp.pictures.drawing import Drawing, source_text, svg_of
from webapp.pictures.elements import LEFTWARDS, RIGHTWARDS, SHAPES
from webapp.screens.bench.charts import BenchCharts, LoadCharts
from webapp.screens.bench.picture import bench_picture, load_picture
from webapp.screens.rankings.picture import ranking_picture
from webapp.screens.rankings.views import ShownGroup

register = template.Library()
MARKERS: Mapping[str, str] = {**{str(n): d for n, d in enumerate(SHAPES)}, "left": LEFTWARDS, "right": RIGHTWARDS}


@register.inclusion_tag("screens/tags/chart_drawing.html", takes_context=True)
def chart_drawing(context: Context, drawing: Drawing, element_id: str) -> dict[str, Any]:
    """Hidden on the screen; on paper it stands in place of the charts before it."""
    pieces = [
        (name, SafeString(tostring(svg_of(piece), encoding="unicode")))  # every text in it is escaped
        for name, piece in drawing.pieces(_source(context))
    ]
    return {"pieces": pieces, "id": element_id, "title": drawing.title}


def _source(context: Context) -> str:
    """The address of a shared page is a secret."""
    is_secret = context.get("shared") is True
    return source_text(timezone.now(), *([] if is_secret else [context["request"].build_absolute_uri()]))


@register.inclusion_tag("screens/tags/chart_drawing.html", takes_context=True)
def bench_drawing(context: Context, charts: BenchCharts, place: int, title: str, note: str) -> dict[str, Any]:
    drawing = Drawing(title, [bench_picture("", charts.charts[place])], note)
    return chart_drawing(context, drawing, f"drawing-{place}")


@register.inclusion_tag("screens/tags/chart_drawing.html", takes_context=True)
def load_drawing(context: Context, charts: LoadCharts, place: int, title: str, note: str) -> dict[str, Any]:
    drawing = Drawing(title, [load_picture("", charts.charts[place])], note)
    return chart_drawing(context, drawing, f"load-drawing-{place}")


@register.inclusion_tag("screens/tags/chart_drawing.html", takes_context=True)
def ranking_drawing(context: Context, title: str, note: str, groups: Sequence[ShownGroup]) -> dict[str, Any]:
    return chart_drawing(context, ranking_picture(title, note, groups), "drawing-0")


@register.simple_tag
def markers() -> list[tuple[str, str]]:
    return list(MARKERS.items())
