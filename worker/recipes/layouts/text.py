"""Parse and write layouts as lines of text, and expand sweeps.

    single                                          one drive
    single share 80% / xfs noatime                  the first 80 % of it, with a file system
    raid0 x4 chunk 64k                              md RAID 0 over 4 drives
    vd raid50 x8 spans 2 strip 64k wb ra direct     a virtual drive of a RAID controller, with its policies
    2 arrays of raid5 x5 chunk 64k / lvm stripe 256k / xfs
    4 drives / btrfs raid10
    raid0 x1..8 chunk 8k..2M *2 / xfs|ext4          8 × 9 × 2 layouts

Layers are separated by ` / `, from the drives up. In a sweep, a number may be a range with the step `*2`
or `+N` (ranges of drives and arrays have the step 1 by default), and words may be alternatives separated
by `|`.
"""

import itertools
import math
import re
from typing import TypeVar

import msgspec

from worker.contract.layouts import BtrfsProfile, DrivePolicy, FileSystem, Layout, Maker, Raid, Stripe
from worker.recipes.layouts.problems import problems

MAX_LAYOUTS = 200
UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_RANGE = re.compile(
    r"(?P<first>\d+[kmg]?)\.\.(?P<last>\d+[kmg]?)(?:\s*(?P<how>[*+])\s*(?P<by>\d+[kmg]?))?", re.I | re.ASCII
)
_DRIVES = re.compile(
    r"(?:(?P<arrays>\d+) arrays? of )?(?P<vd>vd )?(?P<raid>\w+)(?: x(?P<drives>\d+))?(?: spans (?P<spans>\d+))?"
    r"(?: (?P<unit>chunk|strip) (?P<chunk>\w+))?(?P<policies>(?: (?:wb|wt|awb|ra|nora|direct|cached|pdcache=\w+))*)"
    r"(?: share (?P<share>\d+) ?%)?",
    re.I | re.ASCII,
)
_LVM = re.compile(r"lvm stripe (\w+)(?: extent (\w+))?(?: align (\w+))?", re.I | re.ASCII)
_MD = re.compile(r"md chunk (\w+)", re.I | re.ASCII)

Given = dict[str, object]
_Named = TypeVar("_Named", Raid, FileSystem, DrivePolicy)


class LayoutError(ValueError):
    """The text is not a layout. `code` is for programs; the message names the part and the correct form."""

    code = "layout_not_understood"


def parse(text: str) -> Layout:
    """One layout. Raises LayoutError."""
    first, *rest = (" ".join(layer.split()) for layer in text.split("/"))
    given = _drives(first)
    for number, layer in enumerate(rest):
        if not layer:
            raise LayoutError(f"a layer is missing between two `/` in `{text.strip()}`")
        if layer.lower().startswith(("lvm ", "md ")) and "file_system" not in given and "stripe" not in given:
            given |= _stripe(layer)
        elif number == len(rest) - 1:
            given |= _file_system(layer)
        else:
            raise LayoutError(
                f"`{layer}` is not allowed here: use one stripe (`lvm stripe 256k`, `md chunk 256k`) and a file system"
            )
    return _checked(given)


def write(layout: Layout) -> str:
    """The line of a layout: `parse(write(layout)) == layout`."""
    layers = [_write_drives(layout)]
    if layout.stripe is Stripe.LVM:
        layers.append(_write_lvm(layout))
    elif layout.stripe is Stripe.MD:
        layers.append(f"md chunk {_short(layout.stripe_bytes or 0)}")
    if layout.file_system is not FileSystem.NONE:
        layers.append(_write_file_system(layout))
    return " / ".join(layers)


def sweep(text: str) -> tuple[Layout, ...]:
    """All distinct layouts of a line; the first range varies slowest. Raises LayoutError."""
    if sweep_size(text) > MAX_LAYOUTS:
        raise LayoutError(f"more than {MAX_LAYOUTS} layouts: use larger steps")
    ranges = [_range_values(match) for match in _RANGE.finditer(text)]
    pieces = _RANGE.split(text)[:: len(_RANGE.groupindex) + 1]
    given: dict[Layout, None] = {}
    for numbers in itertools.product(*ranges):
        filled = "".join(itertools.chain(*itertools.zip_longest(pieces, numbers, fillvalue="")))
        for words in _alternatives(filled):
            given[parse(words)] = None
    return tuple(given)


def sweep_size(text: str) -> int:
    """The number of layouts of a line, equal ones included. Raises LayoutError."""
    ranges = [len(_range_values(match)) for match in _RANGE.finditer(text)]
    return math.prod([*ranges, *(word.count("|") + 1 for word in text.split())])


def _alternatives(text: str) -> list[str]:
    choices = [word.split("|") for word in re.split(r"(\s+)", text)]
    if any("" in alternatives and len(alternatives) > 1 for alternatives in choices):
        raise LayoutError(f"an alternative is missing next to a `|` in `{text.strip()}`")
    return ["".join(words) for words in itertools.product(*choices)]


def _range_values(match: "re.Match[str]") -> list[str]:
    first, last = _number(match["first"]), _number(match["last"])
    if first < 1 or last < first:
        raise LayoutError(f"`{match[0]}` must start above 0, and its end must not be below its start")
    counts = (match["first"] + match["last"]).isdigit()
    if match["how"] is None and not counts:
        raise LayoutError(f"`{match[0]}` has no step: write for example `{match[0]} *2`")
    how, by = match["how"] or "+", _number(match["by"] or "1")
    if by < (2 if how == "*" else 1):
        raise LayoutError(f"`{match[0]}` never ends: use a larger step")
    values = [first]
    while (following := values[-1] * by if how == "*" else values[-1] + by) <= last:
        values.append(following)
        if len(values) > MAX_LAYOUTS:
            raise LayoutError(f"`{match[0]}` has more than {MAX_LAYOUTS} levels: use larger steps")
    return [_short(value) for value in values]


# ---- layers


def _drives(text: str) -> Given:
    match = _DRIVES.fullmatch(re.sub(r"^(\d+) drives?\b", r"\1 arrays of single", text, flags=re.I | re.ASCII))
    if match is None:
        raise LayoutError(
            f"`{text}` is not valid: write for example `single`, `raid0 x4 chunk 64k`, `2 arrays of raid5 x4 …`, "
            "`vd raid5 x4 strip 64k wb ra direct`"
        )
    raid = _named(Raid, match["raid"].lower(), "a RAID level")
    given: Given = {"raid": raid, "arrays": int(match["arrays"] or 1), "share_percent": int(match["share"] or 100)}
    if match["drives"]:
        given["drives_per_array"] = int(match["drives"])
    if match["chunk"]:
        _refuse_the_others_word(match)
        given["chunk_bytes"] = _number(match["chunk"])
    return given | _virtual_drive(match, raid)


def _refuse_the_others_word(match: "re.Match[str]") -> None:
    right, of = ("strip", "a controller's virtual drive") if match["vd"] else ("chunk", "md")
    if match["unit"].lower() != right:
        raise LayoutError(f"`{match['unit']}`: use `{right}` for {of}")


def _virtual_drive(match: "re.Match[str]", raid: Raid) -> Given:
    words = match["policies"].lower().split()
    if not match["vd"]:
        if words or match["spans"]:
            raise LayoutError(f"`{(words or ['spans'])[0]}` is only for virtual drives: start with `vd {raid}`")
        return {}
    mirrors = int(match["drives"] or 0) // 2 if raid is Raid.RAID10 else 1
    policies = sorted((_named(DrivePolicy, word, "a policy") for word in words), key=tuple(DrivePolicy).index)
    return {"maker": Maker.CONTROLLER, "spans": int(match["spans"] or mirrors or 1), "policies": tuple(policies)}


def _stripe(text: str) -> Given:
    if md := _MD.fullmatch(text):
        return {"stripe": Stripe.MD, "stripe_bytes": _number(md[1])}
    lvm = _LVM.fullmatch(text)
    if lvm is None:
        raise LayoutError(f"`{text}` is not valid: write `lvm stripe 256k extent 4M align 512k` or `md chunk 256k`")
    given: Given = {"stripe": Stripe.LVM, "stripe_bytes": _number(lvm[1])}
    if lvm[2]:
        given["extent_bytes"] = _number(lvm[2])
    if lvm[3] and lvm[3].lower() != "auto":
        given["data_alignment_bytes"] = _number(lvm[3])
    return given


def _file_system(text: str) -> Given:
    name, *words = text.split()
    kind = _named(FileSystem, name.lower(), "a file system")
    given: Given = {"file_system": kind}
    if kind is FileSystem.BTRFS and words and words[0].lower() in tuple(BtrfsProfile):
        given["btrfs_profile"] = BtrfsProfile(words.pop(0).lower())
    if words and words[0].lower() == "untold":
        given["told_geometry"] = False
        words.pop(0)
    given["mount_options"] = tuple(words)
    return given


def _checked(given: Given) -> Layout:
    try:
        layout = msgspec.convert(given, Layout)
    except msgspec.ValidationError as error:
        raise LayoutError(_in_words(str(error))) from error
    if wrong := problems(layout):
        raise LayoutError("; ".join(wrong))
    return layout


def _in_words(error: str) -> str:
    """msgspec's message `Expected … - at `$.chunk_bytes`` with the field first."""
    words, _, place = error.partition(" - at `$.")
    name = re.sub(r"_bytes|_percent|\[.*|`", "", place).replace("_", " ")
    return f"{name or 'layout'}: {words[0].lower()}{words[1:]}"


def _named(kind: type[_Named], text: str, what: str) -> _Named:
    try:
        return kind(text)
    except ValueError:
        raise LayoutError(f"`{text}` is not {what}: use {', '.join(kind)}") from None


def _number(text: str) -> int:
    match = re.fullmatch(r"(\d{1,12})([kmg]?)(?:i?b)?", text.strip(), re.I | re.ASCII)
    if match is None:
        raise LayoutError(f"`{text}` is not a number: write for example `4`, `64k` or `1M`")
    return int(match[1]) * UNITS[match[2].lower()]


# ---- and back


def _write_arrays(layout: Layout) -> list[str]:
    if layout.raid is Raid.NONE:
        return [f"{layout.arrays} drives" if layout.arrays > 1 else str(layout.raid)]
    return [f"{layout.arrays} arrays of"] if layout.arrays > 1 else []


def _write_drives(layout: Layout) -> str:
    by_controller = layout.maker is Maker.CONTROLLER
    words = _write_arrays(layout) + (["vd"] if by_controller else [])
    if layout.raid is not Raid.NONE:
        words += [str(layout.raid), f"x{layout.drives_per_array}"]
    if layout.spans > 1:
        words.append(f"spans {layout.spans}")
    if layout.chunk_bytes:
        words.append(f"{'strip' if by_controller else 'chunk'} {_short(layout.chunk_bytes)}")
    words += map(str, layout.policies)
    if layout.share_percent < 100:
        words.append(f"share {layout.share_percent}%")
    return " ".join(words)


def _write_lvm(layout: Layout) -> str:
    words = [f"lvm stripe {_short(layout.stripe_bytes or 0)}"]
    if layout.extent_bytes != Layout().extent_bytes:
        words.append(f"extent {_short(layout.extent_bytes)}")
    if layout.data_alignment_bytes:
        words.append(f"align {_short(layout.data_alignment_bytes)}")
    return " ".join(words)


def _write_file_system(layout: Layout) -> str:
    words = [str(layout.file_system)]
    if layout.btrfs_profile is not BtrfsProfile.SINGLE:
        words.append(str(layout.btrfs_profile))
    if not layout.told_geometry:
        words.append("untold")
    return " ".join((*words, *layout.mount_options))


def _short(size_bytes: int) -> str:
    for letter in "gmk":
        if size_bytes and size_bytes % UNITS[letter] == 0:
            return f"{size_bytes // UNITS[letter]}{letter.upper() if letter != 'k' else 'k'}"
    return str(size_bytes)
