"""Layouts: how drives are combined and formatted. Sizes are in bytes.

From the bottom: a share of each drive ─► arrays of RAID ─► one stripe over the arrays ─► a file system.
All layers except the drives are optional. An array's RAID is made by md, or by a controller as a virtual drive.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import KIB, MIB, Message


class Raid(StrEnum):
    """The RAID level of an array."""

    NONE = "single"  # none: each array is one drive
    RAID0 = "raid0"
    RAID1 = "raid1"
    RAID5 = "raid5"
    RAID6 = "raid6"
    RAID10 = "raid10"  # md's near layout with two copies; a controller's stripe over mirrors
    RAID50 = "raid50"  # only controllers: a stripe over spans of RAID 5
    RAID60 = "raid60"


class Maker(StrEnum):
    """Who implements the RAID of an array."""

    MD = "md"
    CONTROLLER = "vd"  # a virtual drive


class DrivePolicy(StrEnum):
    """A policy of a virtual drive, in the short names of controller tools."""

    WRITE_BACK = "wb"
    WRITE_THROUGH = "wt"
    ALWAYS_WRITE_BACK = "awb"  # also with a bad battery
    READ_AHEAD = "ra"
    NO_READ_AHEAD = "nora"
    DIRECT = "direct"
    CACHED = "cached"
    DISK_CACHE_ON = "pdcache=on"
    DISK_CACHE_OFF = "pdcache=off"


class Stripe(StrEnum):
    """The stripe over the arrays."""

    NONE = "none"  # one array, or the file system uses them all (btrfs)
    LVM = "lvm"
    MD = "md"  # RAID 0 of md


class FileSystem(StrEnum):
    NONE = "raw"
    XFS = "xfs"
    EXT4 = "ext4"
    BTRFS = "btrfs"
    JFS = "jfs"
    F2FS = "f2fs"


class BtrfsProfile(StrEnum):
    """The RAID of btrfs over the arrays, for data and metadata."""

    SINGLE = "single"
    RAID0 = "raid0"
    RAID1 = "raid1"
    RAID10 = "raid10"
    RAID5 = "raid5"
    RAID6 = "raid6"


StripeBytes = Annotated[int, Meta(ge=4 * KIB, le=64 * MIB, multiple_of=4 * KIB)]
MountOption = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,30}(=[a-zA-Z0-9._-]{1,30})?\Z")]


class Layout(Message, frozen=True, kw_only=True):
    """`recipes.layouts.problems` checks what the types cannot."""

    arrays: Annotated[int, Meta(ge=1, le=64)] = 1
    raid: Raid = Raid.NONE
    drives_per_array: Annotated[int, Meta(ge=1, le=64)] = 1
    maker: Maker = Maker.MD
    spans: Annotated[int, Meta(ge=1, le=8)] = 1  # of a virtual drive of RAID 10, 50 or 60
    policies: Annotated[tuple[DrivePolicy, ...], Meta(max_length=4)] = ()  # of virtual drives; default: the tool's
    share_percent: Annotated[int, Meta(ge=1, le=100)] = 100  # of each drive, from its start; the rest stays unused
    chunk_bytes: StripeBytes | None = None  # md's chunk or a controller's strip: contiguous bytes per drive
    stripe: Stripe = Stripe.NONE
    stripe_bytes: StripeBytes | None = None  # contiguous bytes per array
    extent_bytes: Annotated[int, Meta(ge=128 * KIB, le=2**34, multiple_of=128 * KIB)] = 4 * MIB  # LVM's
    data_alignment_bytes: StripeBytes | None = None  # LVM: start of the data on an array; None: computed
    file_system: FileSystem = FileSystem.NONE
    btrfs_profile: BtrfsProfile = BtrfsProfile.SINGLE
    told_geometry: bool = True  # mkfs gets stripe unit and width (XFS: su, sw; ext4: stride, stripe-width)
    mount_options: Annotated[tuple[MountOption, ...], Meta(max_length=20)] = ()

    @property
    def drives(self) -> int:
        return self.arrays * self.drives_per_array
