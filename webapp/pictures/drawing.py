"""Pictures: a title, the legend, charts one below the other, notes. Pure.

A picture is made of pieces, each an SVG of its own: pages print the charts alone, and a file has all pieces one below
the other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from textwrap import wrap
from xml.etree.ElementTree import Element, tostring

from webapp.pictures.charts import SHEET, Chart, Piece, chart_piece, legend_of
from webapp.pictures.elements import (
    BACKGROUND,
    CHARACTER,
    FONT,
    LINE,
    MUTED,
    element,
    text_at,
)

SPACE = 8  # below each piece


@dataclass(frozen=True)
class Drawing:
    """`note`: what the marks are. `first`: between the legend and the charts. `further`: pieces that are no charts.
    `notes`: below all."""

    title: str
    charts: Sequence[Chart] = ()
    note: str = ""
    first: Sequence[Piece] = ()
    further: Sequence[Piece] = ()
    notes: Sequence[str] = ()

    def pieces(self, source: str) -> list[tuple[str, Piece]]:
        """Each with its class: head | chart | foot. `source`: who drew it from which numbers."""
        charts = [*self.first, *map(chart_piece, self.charts), *self.further]
        return [("head", self._head()), *(("chart", each) for each in charts), ("foot", _texts([*self.notes, source]))]

    def _head(self) -> Piece:
        parts, top = list[Element](), 8.0
        for line in wrap(self.title, int(SHEET / CHARACTER * 0.72)):
            top += 20
            parts.append(text_at(12, top, line, size=16, weight=600))
        for line in wrap(self.note, int(SHEET / CHARACTER)):
            top += LINE
            parts.append(text_at(12, top, line, fill=MUTED))
        legend, height = legend_of([chart for chart in self.charts if not chart.has_legend])
        parts.append(element("g", *legend, transform=f"translate(0 {top:.0f})"))
        return Piece(tuple(parts), SHEET, top + height + LINE / 2)


def _texts(texts: Sequence[str]) -> Piece:
    lines = [line for text in texts for line in wrap(text, int(SHEET / CHARACTER))]
    parts = tuple(text_at(12, LINE * number, line, fill=MUTED) for number, line in enumerate(lines, start=1))
    return Piece(parts, SHEET, LINE * len(lines) + SPACE)


def source_text(drawn_at: datetime, *further: str) -> str:
    """`Sweetspot, 2026-11-29 05:07 UTC, https://…`: who drew the picture, when, and from what."""
    return ", ".join(["Sweetspot", f"{drawn_at:%Y-%m-%d %H:%M} UTC", *further])


def svg_of(piece: Piece, **attributes: str | float) -> Element:
    box = f"0 0 {piece.width:g} {piece.height:g}"
    size: dict[str, str | float] = {"width": piece.width, "height": piece.height, "viewBox": box}
    return element(
        "svg",
        element("rect", width=piece.width, height=piece.height, fill=BACKGROUND),
        *piece.parts,
        xmlns="http://www.w3.org/2000/svg",
        font_family=FONT,
        font_size=12,
        **(size | attributes),
    )


def picture(drawing: Drawing, source: str, *, scaled: bool = False) -> str:
    """One SVG. `scaled`: as wide as its place."""
    pieces = [piece for _, piece in drawing.pieces(source)]
    width = max(piece.width for piece in pieces)
    tops = [0.0]
    for piece in pieces:
        tops.append(tops[-1] + math.ceil(piece.height) + SPACE)
    parts = (svg_of(piece, y=top) for piece, top in zip(pieces, tops, strict=False))
    sheet = Piece((element("title", drawing.title), *parts), width, tops[-1])
    made = svg_of(sheet, role="img", **({"width": "100%"} if scaled else {}))
    if scaled:
        del made.attrib["height"]
    return tostring(made, encoding="unicode")
