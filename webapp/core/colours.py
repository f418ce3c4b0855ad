"""One colour for each product or series, by its name: the same on all pages. `frontend/src/lib/colours.ts` has them."""

from collections.abc import Iterable
from zlib import crc32

COLOURS = 8


def colours_of(names: Iterable[str]) -> dict[str, int]:
    """Number of the colour by name. If two names of a page want one colour, the later of them in the alphabet gets the
    next free one."""
    found: dict[str, int] = {}
    for name in sorted(set(names)):
        wanted = crc32(name.lower().encode()) % COLOURS
        known = [(wanted + step) % COLOURS for step in range(COLOURS)]
        found[name] = next((colour for colour in known if colour not in found.values()), wanted)
    return found
