"""Compute stripe widths and alignment of a layout.

*Data stripe width* = chunk × data drives: the data in one stripe of an array. A write that starts or ends inside a
stripe makes RAID 5 and 6 read before they write, and uses the drives of any array unevenly. A layer is aligned if its
start and its unit are whole multiples of the data stripe width below it.
"""

import math
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from worker.contract.layouts import BtrfsProfile, FileSystem, Layout, Maker, Raid, Stripe
from worker.contract.workload import KIB, MIB
from worker.recipes.base import size_words

PARTITION_START_BYTES = MIB  # start of sfdisk's first partition
LVM_DATA_START_BYTES = MIB  # lvm.conf(5), default_data_alignment = 1 MiB: default start of data
F2FS_SEGMENT_BYTES = 2 * MIB  # f2fs writes its log in segments of 2 MiB


class Verdict(StrEnum):
    ALIGNED = "aligned"
    MISALIGNED = "misaligned"
    NOT_STRIPED = "not striped"  # there is no stripe below


class Alignment(msgspec.Struct, frozen=True):
    """One layer compared with the data stripe width below it."""

    layer: str
    verdict: Verdict
    unit_bytes: int | None  # allocation unit of this layer; None without one
    start_bytes: int  # start of its data on the layer below
    width_bytes: int | None  # data stripe width below
    words: str


def data_drives(raid: Raid, drives: int, spans: int = 1) -> int:
    """Number of drives' worth of data in an array. The rest are copies or parity (md(4)), per span."""
    match raid:
        case Raid.RAID0:
            return drives
        case Raid.RAID5:
            return drives - 1
        case Raid.RAID6:
            return drives - 2
        case Raid.RAID10:
            return drives // 2
        case Raid.RAID50:
            return drives - spans
        case Raid.RAID60:
            return drives - 2 * spans
        case _:
            return 1


def array_width_bytes(layout: Layout) -> int | None:
    """Data stripe width of one array; None if the array is not striped (a single drive or its mirrors)."""
    if layout.chunk_bytes is None or layout.raid in (Raid.NONE, Raid.RAID1):
        return None
    return layout.chunk_bytes * data_drives(layout.raid, layout.drives_per_array, layout.spans)


def stripe_unit_bytes(layout: Layout) -> int | None:
    """Stripe unit for the file system: the data on one member of the topmost stripe before the next member."""
    if layout.stripe is not Stripe.NONE:
        return layout.stripe_bytes
    return layout.chunk_bytes if array_width_bytes(layout) is not None else None


def whole_width_bytes(layout: Layout) -> int | None:
    """Data stripe width of everything under the file system."""
    if layout.stripe is Stripe.NONE or layout.stripe_bytes is None:
        return array_width_bytes(layout)
    return layout.stripe_bytes * layout.arrays


def lvm_data_start_bytes(layout: Layout) -> int:
    """Start of LVM's data on each array: the first multiple of the alignment after the metadata.

    pvcreate(8), --dataalignment; the metadata area of LVM 2.03 ends at 1 MiB.
    """
    alignment = lvm_alignment_bytes(layout)
    return math.ceil(LVM_DATA_START_BYTES / alignment) * alignment


def lvm_alignment_bytes(layout: Layout) -> int:
    """Alignment for pvcreate: as requested, else the array's data stripe width, else LVM's default of 1 MiB."""
    return layout.data_alignment_bytes or array_width_bytes(layout) or LVM_DATA_START_BYTES


def md_data_start_bytes(layout: Layout) -> int:
    """Start of md's data on each drive: after the superblock, at a multiple of the chunk and of 1 MiB."""
    return math.lcm(layout.chunk_bytes or MIB, MIB)


def capacity_share(layout: Layout) -> float:
    """Share of the drives' total capacity that is available for data, without a file system's overhead."""
    copies = {BtrfsProfile.RAID1: 0.5, BtrfsProfile.RAID10: 0.5}
    parity = {BtrfsProfile.RAID5: 1, BtrfsProfile.RAID6: 2}
    share = 1.0
    if layout.file_system is FileSystem.BTRFS and layout.arrays > 1 and layout.stripe is Stripe.NONE:
        profile = layout.btrfs_profile
        share = copies.get(profile, (layout.arrays - parity.get(profile, 0)) / layout.arrays)
    inside = 1 / layout.drives_per_array if layout.raid is Raid.RAID1 else 1.0
    if layout.raid not in (Raid.NONE, Raid.RAID1):
        inside = data_drives(layout.raid, layout.drives_per_array, layout.spans) / layout.drives_per_array
    return share * inside * layout.share_percent / 100


# ---- each layer compared with the one below


def alignment(layout: Layout, *, physical_block_bytes: int = 4 * KIB) -> tuple[Alignment, ...]:
    """All layers, from the drives up. The lowest one is compared with the drives' `physical_block_bytes`."""
    return tuple(
        layer
        for layers in (
            _partition(layout, physical_block_bytes),
            _array(layout, physical_block_bytes),
            _lvm(layout),
            _md_stripe(layout),
            _file_system(layout),
        )
        for layer in layers
    )


def _partition(layout: Layout, block: int) -> Iterator[Alignment]:
    if layout.share_percent < 100:
        yield _held("partition", None, PARTITION_START_BYTES, block, "physical block")


def _array(layout: Layout, block: int) -> Iterator[Alignment]:
    if layout.maker is Maker.CONTROLLER:
        what = f"virtual drive {layout.raid} of {layout.drives_per_array}"
        yield _held(what, layout.chunk_bytes, 0, block, "physical block")
    elif layout.raid is not Raid.NONE:
        what = f"md {layout.raid} of {layout.drives_per_array}"
        yield _held(what, layout.chunk_bytes, md_data_start_bytes(layout), block, "physical block")


def _lvm(layout: Layout) -> Iterator[Alignment]:
    if layout.stripe is not Stripe.LVM:
        return
    width = array_width_bytes(layout)
    made = _held(
        "LVM stripe", layout.stripe_bytes, lvm_data_start_bytes(layout), width, "data stripe width of an array"
    )
    if made.verdict is Verdict.MISALIGNED and _never_a_power_of_two(layout):
        data = data_drives(layout.raid, layout.drives_per_array, layout.spans)
        hint = f" LVM's stripe is a power of two and never a multiple of {data} data drives: use 2, 4 or 8."
        made = msgspec.structs.replace(made, words=made.words + hint)
    yield made


def _never_a_power_of_two(layout: Layout) -> bool:
    data = data_drives(layout.raid, layout.drives_per_array, layout.spans)
    return data & (data - 1) != 0


def _md_stripe(layout: Layout) -> Iterator[Alignment]:
    if layout.stripe is Stripe.MD:
        start = math.lcm(layout.stripe_bytes or MIB, MIB)
        below = "data stripe width of an array"
        yield _held(f"md raid0 of {layout.arrays} arrays", layout.stripe_bytes, start, array_width_bytes(layout), below)


def _file_system(layout: Layout) -> Iterator[Alignment]:
    kind, width = layout.file_system, whole_width_bytes(layout)
    if kind is FileSystem.NONE:
        return
    name = str(kind)
    if kind in (FileSystem.XFS, FileSystem.EXT4):
        if width is None:
            yield Alignment(name, Verdict.NOT_STRIPED, None, 0, None, "There is no stripe below.")
        elif layout.told_geometry:
            yield _held(name, width, 0, width, "data stripe width")
        else:
            words = (
                f"mkfs gets no stripe width although the data stripe is {size_words(width)}: files may cross stripes."
            )
            yield Alignment(name, Verdict.MISALIGNED, None, 0, width, words)
    elif kind is FileSystem.F2FS:
        yield _held(name, F2FS_SEGMENT_BYTES, 0, width, "data stripe width")
    else:
        words = f"{kind} has no option for the stripe width, so its allocations may start anywhere."
        verdict = Verdict.NOT_STRIPED if width is None else Verdict.MISALIGNED
        yield Alignment(name, verdict, None, 0, width, words if width else "There is no stripe below.")


def _held(layer: str, unit: int | None, start: int, width: int | None, below: str) -> Alignment:
    if width is None:
        return Alignment(layer, Verdict.NOT_STRIPED, unit, start, None, "There is no stripe below.")
    wrong = [words for words in (_start_words(start, width, below), _unit_words(unit, width, below)) if words]
    if wrong:
        return Alignment(layer, Verdict.MISALIGNED, unit, start, width, " ".join(wrong))
    pieces = [f"starts at {size_words(start)}"] if start else []
    pieces += [f"its unit of {size_words(unit)}"] if unit else []
    words = " and ".join(pieces) or "starts at 0"
    fits = "are whole multiples" if len(pieces) > 1 else "is a whole multiple"
    return Alignment(
        layer, Verdict.ALIGNED, unit, start, width, f"{words[0].upper()}{words[1:]}: {fits} of the {below}."
    )


def _start_words(start: int, width: int, below: str) -> str:
    return (
        f"Its start, {size_words(start)}, is not a multiple of the {below}, {size_words(width)}."
        if start % width
        else ""
    )


def _unit_words(unit: int | None, width: int, below: str) -> str:
    return (
        f"Its unit, {size_words(unit)}, is not a multiple of the {below}, {size_words(width)}."
        if unit and unit % width
        else ""
    )
