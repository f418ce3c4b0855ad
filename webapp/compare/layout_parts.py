"""Parts of a layout as dimensions of their own: drives, RAID level, chunk, stripe over arrays, file system, share.

They are read from the line that a plan states, or from the label of an import if it is such a line.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from webapp.compare.comparison import Level
from webapp.core.formatting import bytes_binary
from worker.contract.layouts import BtrfsProfile, Layout, Maker, Stripe
from worker.recipes.layouts import LayoutError, parse

PREFIX = "layout."
ABSENT = Level("", "none", None)  # the layout does not have the part, or the result has no layout


@dataclass(frozen=True)
class LayoutPart:
    """`read` returns the number in a layout, or its name; None if the layout does not have the part."""

    label: str
    read: Callable[[Layout], int | str | None]
    words: Callable[[int], str] = str

    def level(self, layout: Layout) -> Level:
        value = self.read(layout)
        if value is None:
            return ABSENT
        return Level(value, value, None) if isinstance(value, str) else Level(str(value), self.words(value), value)


def _level(layout: Layout) -> str:
    """The RAID level of the arrays, and that of btrfs over them."""
    of_btrfs = layout.btrfs_profile is not BtrfsProfile.SINGLE
    return f"btrfs {layout.btrfs_profile}" if of_btrfs else str(layout.raid)


NUMBERS = {
    f"{PREFIX}drives": LayoutPart("Drives", lambda layout: layout.drives),
    f"{PREFIX}chunk": LayoutPart("Chunk size", lambda layout: layout.chunk_bytes, bytes_binary),
    f"{PREFIX}stripe": LayoutPart("Stripe over arrays", lambda layout: layout.stripe_bytes, bytes_binary),
    f"{PREFIX}share": LayoutPart("Share of the drives", lambda layout: layout.share_percent, "{} %".format),
}
NAMES = {
    f"{PREFIX}level": LayoutPart("RAID level", _level),
    f"{PREFIX}file_system": LayoutPart("File system", lambda layout: str(layout.file_system)),
}
PARTS: Mapping[str, LayoutPart] = NUMBERS | NAMES


@lru_cache(maxsize=1_000)
def layout_of(line: str) -> Layout | None:
    """None for no layout, and for a label that is not a line of a layout."""
    try:
        return parse(line) if line else None
    except LayoutError:
        return None


def part_of(name: str, line: str) -> Level:
    """The level of a part; thousands of rows share a few lines."""
    layout = layout_of(line)
    return PARTS[name].level(layout) if layout else ABSENT


def varying_parts(lines: Iterable[str]) -> list[str]:
    """Parts with several levels. A layout without the part, such as RAID 1 without a chunk, does not differ in it."""
    known = set(lines)
    return [name for name in PARTS if len({part_of(name, line) for line in known} - {ABSENT}) > 1]


def others_of(line: str) -> str:
    """Everything that no part says, in words; the line itself if it is not a line of a layout."""
    layout = layout_of(line)
    if layout is None:
        return line
    lvm = layout.stripe is Stripe.LVM
    words = [
        f"{layout.arrays} arrays" if layout.arrays > 1 else "",
        "by a controller" if layout.maker is Maker.CONTROLLER else "",
        f"{layout.spans} spans" if layout.spans > 1 else "",
        f"over arrays by {layout.stripe}" if layout.stripe is not Stripe.NONE else "",
        f"extent {bytes_binary(layout.extent_bytes)}" if lvm else "",
        f"align {bytes_binary(layout.data_alignment_bytes)}" if layout.data_alignment_bytes else "",
        "" if layout.told_geometry else "untold",
        *map(str, layout.policies),
        *layout.mount_options,
    ]
    return ", ".join(filter(None, words)) or "default options"
