"""Colours of products and series, by their names, so that pages agree. `frontend/src/lib/colours.ts` has them."""

from collections.abc import Iterable
from zlib import crc32

# Of pictures that the server draws; a test compares them with those of the scripts and styles, and measures their
# distances and contrasts. The same colours are used on light and on dark backgrounds.
HEX = ("#3c60fc", "#e47800", "#30a860", "#e460a8", "#846c54", "#a83cd8", "#e40c30", "#249ccc")
COLOURS = len(HEX)


def colours_of(names: Iterable[str]) -> dict[str, int]:
    """Number of the colour by name. If two names lead to the same colour, the later one in the alphabet gets the
    next free colour."""
    found: dict[str, int] = {}
    for name in sorted(set(names)):
        wanted = crc32(name.lower().encode()) % COLOURS
        known = [(wanted + step) % COLOURS for step in range(COLOURS)]
        found[name] = next((colour for colour in known if colour not in found.values()), wanted)
    return found
