"""The bars of Rankings as a picture, at the positions of the page."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element

from webapp.pictures.charts import SHEET, Piece
from webapp.pictures.drawing import Drawing
from webapp.pictures.elements import GRID, LINE, MUTED, colour_of, element, path, text_at
from webapp.screens.rankings.views import ShownEntry, ShownGroup

NAMES, BARS = 12.0, 260.0  # left ends of the columns, in pixels
ROW, BAR = 28.0, 16.0  # heights
OTHERS = "#b4bcc8"  # bars that do not lead
HEAD = 2.4 * LINE


def ranking_picture(title: str, note: str, groups: Sequence[ShownGroup]) -> Drawing:
    """Also of entries that are folded."""
    has_whiskers = any(entry.bar.low for group in groups for entry in group.all)
    whiskers = ["Whiskers: 95 % interval"] if has_whiskers else []
    return Drawing(title, first=[_group(group) for group in groups], note=". ".join([note, *whiskers]))


def _group(group: ShownGroup) -> Piece:
    height = HEAD + ROW * len(group.all)
    parts = [text_at(NAMES, LINE - 4, group.title, weight=600), text_at(NAMES, 2 * LINE - 4, group.about, fill=MUTED)]
    for tick in group.ticks:
        parts.append(path(f"M{_x(tick.at):.1f} {HEAD}V{height}", GRID))
        parts.append(text_at(_x(tick.at), height + LINE - 4, tick.text, size=11, anchor="middle", fill=MUTED))
    for place, entry in enumerate(group.all):
        parts.append(element("g", *_entry(entry), transform=f"translate(0 {HEAD + ROW * place:.0f})"))
    parts.append(text_at(SHEET - 12, height + LINE - 4, group.unit, size=11, anchor="end", fill=MUTED))
    return Piece(tuple(parts), SHEET, height + 2 * LINE)


def _entry(entry: ShownEntry) -> Iterator[Element]:
    middle, leads = ROW / 2, entry.mark in ("lead", "seen")
    yield text_at(NAMES, middle + (-2 if entry.where else 4), entry.name, weight=600)
    if entry.where:
        yield text_at(NAMES, middle + 10, entry.where, size=10, fill=MUTED)
    box = {"x": BARS, "y": middle - BAR / 2, "width": _x(entry.bar.length) - BARS, "height": BAR}
    yield element("rect", fill=colour_of(0) if leads else OTHERS, **box)
    if entry.bar.low:
        low, high = _x(entry.bar.low), _x(entry.bar.high)
        yield path(f"M{low:.1f} {middle - 4}v8m0-4H{high:.1f}m0-4v8", MUTED, 1.5)
    value = f"{entry.value}, shared ceiling" if entry.ceiling else entry.value
    yield text_at(_x(entry.bar.end) + 8, middle + 4, value, weight=600)


def _x(percent: str) -> float:
    return BARS + (SHEET - 12 - BARS) * float(percent.removesuffix("%")) / 100
