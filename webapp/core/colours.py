"""Colours of products and series, by their names, so that pages agree. `frontend/src/lib/colours.ts` has them."""

from collections.abc import Iterable
from zlib import crc32

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
