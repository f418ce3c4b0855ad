"""SVG elements and the marks of series. Pure."""

from collections.abc import Iterable
from xml.etree.ElementTree import Element
from zlib import crc32

# Colours of products and series, by their names, so that pages agree. `frontend/src/lib/colours.ts` has them.

# Pictures that the server draws have a white background. `frontend/src/styles/tokens.css` has the colours of both
# themes; a test compares them, and measures their distances and contrasts.
HEX = ("#1572db", "#e66700", "#1f4820", "#b135b1", "#705b21", "#571974", "#066374", "#917a75")
COLOURS = len(HEX)


def colours_of(names: Iterable[str]) -> dict[str, int]:
    """Number of the colour by name. If two names lead to the same colour, the later one in the alphabet gets the
    next free colour."""
    colours: dict[str, int] = {}
    for name in sorted(set(names)):
        wanted = crc32(name.lower().encode()) % COLOURS
        known = [(wanted + step) % COLOURS for step in range(COLOURS)]
        colours[name] = next((colour for colour in known if colour not in colours.values()), wanted)
    return colours


FONT = '"Inter Variable", Arial, "Liberation Sans", sans-serif'  # the font that we ship first, and no features
# The palette of pictures, which are always light.
TEXT, MUTED, GRID, BACKGROUND = "#1f2933", "#5f6b7a", "#e1e5ea", "#ffffff"
LINE, CHARACTER = 18, 6.6  # px: height of a line of text, width of a character of 12 px
CAPITAL, LETTER = 9.0, 7.6  # in wide fonts, for names beside each other

# The markers of products and series, in the order of their colours; centred, so that they stand at a point.
SHAPES = (
    "M0-5a5 5 0 1 0 0 10A5 5 0 1 0 0-5Z", "M-4.3-4.3H4.3V4.3H-4.3Z", "M0-5.3 5 4.2H-5Z", "M0-5.8 5.3 0 0 5.8-5.3 0Z",
    "M0 5.3-5-4.2H5Z", "M-1.6-5H1.6V-1.6H5V1.6H1.6V5H-1.6V1.6H-5V-1.6H-1.6Z", "M0-5.5 5-1.6 3.1 4.5H-3.1L-5-1.6Z",
    "M-3.1-5.2 0-2 3.1-5.2 5.2-3.1 2 0 5.2 3.1 3.1 5.2 0 2-3.1 5.2-5.2 3.1-2 0-5.2-3.1Z",
)  # fmt: skip
LEFTWARDS, RIGHTWARDS = "M-6 0 3-5.2V5.2Z", "M6 0-3-5.2V5.2Z"  # beyond an end of the axis


def colour_of(colour: int) -> str:
    return HEX[colour % len(HEX)]


def shape_of(colour: int) -> str:
    return SHAPES[colour % len(SHAPES)]


def px(value: float) -> str:
    """With one decimal, as SVG wants it."""
    return f"{value:.1f}".removesuffix(".0")


def element(tag: str, *content: Element | str, **attributes: str | float) -> Element:
    """`content` is a text or elements. Numbers have one decimal; `_` in the name of an attribute stands for `-`."""
    texts = {name: value if isinstance(value, str) else px(value) for name, value in attributes.items()}
    made = Element(tag, {name.replace("_", "-"): text for name, text in texts.items()})
    for each in content:
        if isinstance(each, str):
            made.text = each
        else:
            made.append(each)
    return made


def text_at(
    x: float, y: float, text: str, *, size: int = 12, weight: int = 400, anchor: str = "start", fill: str = TEXT
) -> Element:
    look: dict[str, str | float] = {"font_size": size, "font_weight": weight, "text_anchor": anchor, "fill": fill}
    return element("text", text, x=x, y=y, **look)


def path(line: str, colour: str, width: float = 1, dash: str = "") -> Element:
    dashes = {"stroke_dasharray": dash} if dash else {}
    return element("path", d=line, fill="none", stroke=colour, stroke_width=width, **dashes)


def area(line: str, colour: str, opacity: str) -> Element:
    return element("path", d=line, fill=colour, fill_opacity=opacity)


def mark(shape: str, x: float, y: float, colour: str, *, hollow: bool = False) -> Element:
    look = {"fill": BACKGROUND, "stroke": colour} if hollow else {"fill": colour, "stroke": BACKGROUND}
    return element("path", d=shape, transform=f"translate({px(x)} {px(y)})", **look)


def whisker(x: float, low: float, high: float, colour: str) -> Element:
    """Upright, with caps."""
    return path(f"M{px(x - 4)} {px(high)}h8m-4 0V{px(low)}m-4 0h8", colour, 1.5)


def width_of(text: str) -> float:
    return sum(CAPITAL if letter.isupper() else LETTER for letter in text)
