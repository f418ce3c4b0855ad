"""Problems of a layout that types cannot express. The messages say what to do."""

from collections.abc import Iterator

from worker.contract.layouts import BtrfsProfile, FileSystem, Layout, Maker, Raid, Stripe
from worker.contract.workload import KIB, MIB
from worker.recipes.base import size_words
from worker.recipes.layouts.geometry import lvm_alignment_bytes

MIN_DRIVES = {Raid.RAID0: 1, Raid.RAID1: 2, Raid.RAID5: 3, Raid.RAID6: 4, Raid.RAID10: 4}
MIN_ARRAYS_BTRFS = {
    BtrfsProfile.RAID0: 2, BtrfsProfile.RAID1: 2, BtrfsProfile.RAID10: 4, BtrfsProfile.RAID5: 2, BtrfsProfile.RAID6: 3,
}  # fmt: skip
# Drives in each span of a virtual drive.
MIN_DRIVES_PER_SPAN = {Raid.RAID10: 2, Raid.RAID50: 3, Raid.RAID60: 4}
MIN_STRIP, MAX_STRIP = 8 * KIB, MIB  # StorCLI Reference Manual, `add vd … Strip=`
CHUNKED = (Raid.RAID0, Raid.RAID5, Raid.RAID6, Raid.RAID10)
MAX_DRIVES = 64
PARITY = (Raid.RAID5, Raid.RAID6)
REDUNDANT = (Raid.RAID1, Raid.RAID10, *PARITY)
_EITHER = (("wb", "wt", "awb"), ("ra", "nora"), ("direct", "cached"), ("pdcache=on", "pdcache=off"))

# Allowed mount options of each file system; others are refused by name. From mount(8), xfs(5), ext4(5),
# btrfs(5) and the kernel's Documentation/filesystems.
COMMON_OPTIONS = ("noatime", "nodiratime", "relatime", "lazytime", "discard", "nodiscard", "sync")
OWN_OPTIONS = {
    FileSystem.XFS: ("allocsize", "inode64", "largeio", "logbsize", "logbufs", "noalign", "swalloc", "wsync"),
    FileSystem.EXT4: (
        "auto_da_alloc", "barrier", "commit", "data", "delalloc", "journal_async_commit", "max_batch_time",
        "nobarrier", "noauto_da_alloc", "nodelalloc", "stripe",
    ),
    FileSystem.BTRFS: (
        "autodefrag", "barrier", "commit", "compress", "nobarrier", "nodatacow", "nodatasum", "space_cache", "ssd",
        "nossd", "thread_pool",
    ),
    FileSystem.JFS: ("nointegrity", "integrity"),
    FileSystem.F2FS: ("background_gc", "extent_cache", "nobarrier", "mode"),
}  # fmt: skip


def problems(layout: Layout) -> tuple[str, ...]:
    """All reasons why the layout cannot be built; () if it can."""
    return tuple(problem for rule in _RULES for problem in rule(layout))


# Part of a layout -> Debian's package with its program, and what other distributions call it.
PACKAGES = {
    "md": "mdadm", "lvm": "lvm2", "xfs": "xfsprogs", "ext4": "e2fsprogs", "btrfs": "btrfs-progs (SUSE: btrfsprogs)",
    "f2fs": "f2fs-tools", "jfs": "jfsutils", "share": "fdisk (RHEL, SUSE: util-linux)",
}  # fmt: skip


def with_package(part: str) -> str:
    """`md (package mdadm)`. The kernel must support the part too."""
    return f"{part} (package {PACKAGES[part]})" if part in PACKAGES else part


def needed(layout: Layout) -> tuple[str, ...]:
    """The parts that a host must be able to build, by their names in `Capabilities.layouts`."""
    parts = {
        "share": layout.share_percent < 100,
        "vd": layout.maker is Maker.CONTROLLER,
        "md": (layout.raid is not Raid.NONE and layout.maker is Maker.MD) or layout.stripe is Stripe.MD,
        "lvm": layout.stripe is Stripe.LVM,
        str(layout.file_system): layout.file_system is not FileSystem.NONE,
    }
    return tuple(name for name, wanted in parts.items() if wanted)


def array_problem(layout: Layout | None, *, replaces_member: bool) -> str:
    """Why a stream cannot check the array of this layout, or rebuild a member of it, as a clause; "" if it can.

    md arrays are created without a first synchronisation, so a rebuild with parity changes unwritten blocks.
    """
    if layout is None:
        return "an array action needs a layout with an md array: add the factor `layout`"
    if layout.maker is not Maker.MD:
        return "an array action needs an md array; the array of this layout belongs to a controller"
    if layout.raid not in REDUNDANT:
        return f"an array action needs md raid1, raid5, raid6 or raid10; this layout has {layout.raid}"
    if layout.arrays > 1:
        return f"an array action needs a layout with one array; this one has {layout.arrays}"
    if replaces_member and layout.raid in PARITY and layout.file_system is not FileSystem.NONE:
        return (
            f"a rebuild of {layout.raid} would damage the file system, because the array was created without a first "
            "synchronisation: use raid1 or raid10, or no file system"
        )
    return ""


def _arrays(layout: Layout) -> Iterator[str]:
    if layout.drives > MAX_DRIVES:
        yield f"{layout.drives} drives exceed the limit of {MAX_DRIVES}"
    if layout.maker is Maker.CONTROLLER:
        return
    if layout.raid in (Raid.RAID50, Raid.RAID60):
        yield f"md has no {layout.raid}: use `vd {layout.raid} …` (controller) or `2 arrays of raid5 x4 …` (md)"
    if layout.raid is Raid.NONE and layout.drives_per_array != 1:
        yield "without RAID each drive is an array: give the number of arrays, not of drives per array"
    fewest = MIN_DRIVES.get(layout.raid, 1)
    if layout.drives_per_array < fewest:
        yield f"{layout.raid} needs at least {fewest} drives, not {layout.drives_per_array}"
    if layout.raid is Raid.RAID10 and layout.drives_per_array % 2:
        yield f"raid10 with two copies needs an even number of drives, not {layout.drives_per_array}"


def _virtual_drive(layout: Layout) -> Iterator[str]:
    if layout.maker is not Maker.CONTROLLER:
        if layout.spans != 1 or layout.policies:
            yield "spans and cache policies are only for virtual drives of a controller"
        return
    raid, drives = layout.raid, layout.drives_per_array
    if raid is Raid.NONE:
        yield "a virtual drive needs a RAID level; for one drive use `vd raid0 x1 strip 64k`"
    elif fewest := MIN_DRIVES_PER_SPAN.get(raid):
        if layout.spans < 2 or drives % layout.spans or drives // layout.spans < fewest:
            yield f"{raid} with {drives} drives in {layout.spans} spans: use 2 to 8 spans of at least {fewest} drives"
        elif raid is Raid.RAID10 and drives // layout.spans % 2:
            yield f"each span of raid10 needs an even number of drives, not {drives // layout.spans}"
    elif layout.spans != 1:
        yield f"{raid} has no spans: only raid10, raid50 and raid60 do"
    elif drives < MIN_DRIVES[raid] or (raid is Raid.RAID1 and drives != 2):
        yield f"{raid} takes {'' if raid is Raid.RAID1 else 'at least '}{MIN_DRIVES[raid]} drives, not {drives}"
    if layout.chunk_bytes is None or not MIN_STRIP <= layout.chunk_bytes <= MAX_STRIP:
        limits = f"from {size_words(MIN_STRIP)} to {size_words(MAX_STRIP)}"
        yield f"a virtual drive needs a strip {limits}, such as `strip 64k`"
    elif layout.chunk_bytes & (layout.chunk_bytes - 1):
        yield f"a strip of {size_words(layout.chunk_bytes)} is not a power of two, as controllers require"
    if layout.share_percent < 100:
        yield "slots of a controller do not support a share: remove it"
    for group in _EITHER:
        if len(both := [str(policy) for policy in layout.policies if policy in group]) > 1:
            yield f"{' and '.join(both)} exclude each other"


def _chunk(layout: Layout) -> Iterator[str]:
    if layout.maker is Maker.CONTROLLER:
        return
    if layout.raid in CHUNKED and layout.chunk_bytes is None:
        yield f"{layout.raid} needs a chunk, such as `chunk 64k`"
    if layout.raid not in CHUNKED and layout.chunk_bytes is not None:
        yield f"{layout.raid} has no chunk: remove it"
    if layout.chunk_bytes and layout.raid is not Raid.RAID0 and layout.chunk_bytes & (layout.chunk_bytes - 1):
        yield f"a chunk of {size_words(layout.chunk_bytes)} is not a power of two, as {layout.raid} requires"


def _stripe(layout: Layout) -> Iterator[str]:
    if layout.stripe is Stripe.NONE:
        if layout.stripe_bytes is not None:
            yield "a stripe size without a stripe: use `lvm stripe …` or `md chunk …`"
        if layout.arrays > 1 and layout.file_system is not FileSystem.BTRFS:
            yield f"{layout.arrays} arrays need a layer that combines them: `lvm stripe 256k`, `md chunk 256k` or btrfs"
        return
    if layout.stripe_bytes is None:
        yield f"the {layout.stripe} stripe needs a size"
    if layout.stripe is Stripe.MD and layout.arrays < 2:
        yield "md on a single array has nothing to stripe: remove it"


def _lvm(layout: Layout) -> Iterator[str]:
    if layout.stripe is not Stripe.LVM or layout.stripe_bytes is None:
        return
    if layout.stripe_bytes & (layout.stripe_bytes - 1):
        yield f"LVM's stripe must be a power of two, not {size_words(layout.stripe_bytes)}"
    if layout.stripe_bytes > layout.extent_bytes:
        stripe, extent = size_words(layout.stripe_bytes), size_words(layout.extent_bytes)
        yield f"LVM's stripe of {stripe} is larger than its extent of {extent}"
    if layout.extent_bytes % 512 or lvm_alignment_bytes(layout) % 512:
        yield "LVM needs multiples of 512 bytes"


def _file_system(layout: Layout) -> Iterator[str]:
    kind, profile = layout.file_system, layout.btrfs_profile
    if kind is not FileSystem.BTRFS and profile is not BtrfsProfile.SINGLE:
        yield f"the profile {profile} is only for btrfs, not for {kind}"
    if profile is not BtrfsProfile.SINGLE and layout.stripe is not Stripe.NONE:
        yield f"btrfs {profile} needs the arrays without a stripe: remove the {layout.stripe} stripe"
    elif layout.arrays < MIN_ARRAYS_BTRFS.get(profile, 1):
        yield f"btrfs {profile} needs at least {MIN_ARRAYS_BTRFS[profile]} arrays, not {layout.arrays}"
    if kind is FileSystem.NONE and layout.mount_options:
        yield "mount options without a file system"


def _mount(layout: Layout) -> Iterator[str]:
    kind = layout.file_system
    known = (*COMMON_OPTIONS, *OWN_OPTIONS.get(kind, ()))
    for option in layout.mount_options:
        if kind is not FileSystem.NONE and option.partition("=")[0] not in known:
            yield f"mount option {option} is not allowed for {kind}; allowed: {', '.join(sorted(known))}"


_RULES = (_arrays, _virtual_drive, _chunk, _stripe, _lvm, _file_system, _mount)
