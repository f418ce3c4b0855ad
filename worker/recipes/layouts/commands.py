"""The exact commands that build a layout on given drives and take it down. Pure functions.

Choices that affect results:
- Building discards nothing (`-K`, nodiscard): a purge is a separate step, so the state of the drives is known.
- md arrays are created with --assume-clean, because a resync would disturb the measurement. Parity is correct only
  where data was written afterwards: good enough for measurements, not for keeping data.
- Virtual drives of controllers are not initialised in the background, for the same reason.
- md gets no write-intent bitmap, which would add a write to the first write of each region.
- LVM stores no backups in /etc/lvm, so that nothing is left on the host, whose /etc may be read-only.
- mkfs writes ext4's inode tables and journal at once, so that the kernel does not write them during the first trials.
"""

import shlex
import uuid
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from worker.contract.layouts import FileSystem, Layout, Maker, Raid, Stripe
from worker.contract.workload import KIB, MIB
from worker.recipes.layouts import virtual_drives
from worker.recipes.layouts.geometry import (
    PARTITION_START_BYTES,
    lvm_alignment_bytes,
    md_data_start_bytes,
    stripe_unit_bytes,
    whole_width_bytes,
)

_TABLES = uuid.UUID("8d2c9d9e-3a8b-4b0e-9a55-6a1d0f6c2b11")  # UUID namespace of the layouts' partition tables
EXT4_BLOCK_BYTES = 4 * KIB
NO_COPIES = ("--config", "backup { backup=0 archive=0 }")  # lvm.conf(5)
# End of a drive that partitions cannot use: the backup GPT, rounded to MiB.
GPT_TAIL_BYTES = MIB
SHOWN_NUMBER = "N"  # number of a virtual drive in previews


class Drive(msgspec.Struct, frozen=True):
    """One drive of a layout. `path` is a device node without links, or a `virtual_drives.Bay` behind a controller."""

    path: str
    size_bytes: int


class Step(msgspec.Struct, frozen=True):
    """One command, executed without a shell, with its purpose."""

    words: str
    argv: tuple[str, ...]
    stdin: str = ""
    makes: str = ""  # path of a device that exists afterwards
    wipes: str = ""  # path of a device that is blank afterwards: the worker erases the signatures that `argv` lists
    opens_all: bool = False  # the command opens all drives exclusively, not only those that it names
    by_controller: bool = False  # runs a controller's tool, see `worker.layouts.virtual_drives`

    @property
    def line(self) -> str:
        """The command as typed in a shell."""
        return shlex.join(self.argv)


class Names(msgspec.Struct, frozen=True):
    """Names of a layout's parts. They contain the layout's key, so that a crashed worker finds them again."""

    key: str  # up to 8 lower-case letters and digits, because labels of XFS have 12 characters
    made: tuple[str, ...] = ()  # nodes of the arrays' virtual drives, if known

    @property
    def label(self) -> str:
        """The label of the file system."""
        return f"ss-{self.key}"

    @property
    def table_id(self) -> str:
        """The UUID of the drives' partition tables."""
        return str(uuid.uuid5(_TABLES, self.key))

    def array(self, number: int | str) -> str:
        """The name in md's superblocks of array `number`, or of the stripe over the arrays (`s`)."""
        return f"sweetspot-{self.key}-{number}"

    def md(self, number: int) -> str:
        return f"/dev/md/{self.array(number)}"

    @property
    def md_stripe(self) -> str:
        return f"/dev/md/{self.array('s')}"

    def drive_name(self, number: int) -> str:
        """The name of an array's virtual drive; controllers accept 15 characters."""
        return f"ss-{self.key}-{number}"

    def virtual_drive(self, array: int) -> str:
        """Device node of the virtual drive; a placeholder before it exists."""
        return self.made[array] if self.made else f"/dev/disk/by-id/wwn-OF-{self.drive_name(array)}"

    @property
    def group(self) -> str:
        return f"sweetspot-{self.key}"

    @property
    def volume(self) -> str:
        return f"/dev/{self.group}/data"


def part_path(drive: str, number: int = 1) -> str:
    """Device node of a partition: nvme0n1 ─► nvme0n1p1, sda ─► sda1."""
    return f"{drive}p{number}" if drive[-1].isdigit() else f"{drive}{number}"


def members(layout: Layout, drives: tuple[Drive, ...]) -> tuple[tuple[str, ...], ...]:
    """The block devices of each array: drives in the order given, or their partitions."""
    paths = [part_path(drive.path) if layout.share_percent < 100 else drive.path for drive in drives]
    per_array = layout.drives_per_array
    return tuple(tuple(paths[array * per_array : (array + 1) * per_array]) for array in range(layout.arrays))


def array_paths(layout: Layout, drives: tuple[Drive, ...], names: Names) -> tuple[str, ...]:
    """The device of each array after its RAID was created."""
    if layout.maker is Maker.CONTROLLER:
        return tuple(names.virtual_drive(number) for number in range(layout.arrays))
    if layout.raid is Raid.NONE:
        return tuple(array[0] for array in members(layout, drives))
    return tuple(names.md(number) for number in range(layout.arrays))


def top_path(layout: Layout, drives: tuple[Drive, ...], names: Names) -> str:
    """The device for the file system or the engine; for btrfs on several arrays the first one."""
    if layout.stripe is Stripe.LVM:
        return names.volume
    return names.md_stripe if layout.stripe is Stripe.MD else array_paths(layout, drives, names)[0]


def build_steps(
    layout: Layout, drives: tuple[Drive, ...], *, key: str, mount_point: str, made: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    """The steps, in order. The layout sets the number of `drives`. `mount_point` is only used with a file system."""
    if len(drives) != layout.drives:
        raise ValueError(f"the layout has {layout.drives} drives, but {len(drives)} were given")
    names = Names(key, made)
    steps: list[Step] = []
    for layer in (_virtual_drives, _blank, _partitions, _arrays, _stripe, _file_system):
        steps += layer(layout, drives, names)
    if layout.file_system is not FileSystem.NONE:
        steps.append(_mount(layout, top_path(layout, drives, names), mount_point))
    return tuple(steps)


# ---- building, from the drives up


def array_bays(layout: Layout, drives: tuple[Drive, ...]) -> tuple[tuple[virtual_drives.Bay, ...], ...]:
    """The bays of each array's drives."""
    bays = [
        virtual_drives.bay(drive.path) or virtual_drives.Bay("controller-tool", "N", drive.path.rpartition("/")[2])
        for drive in drives
    ]
    per_array = layout.drives_per_array
    return tuple(tuple(bays[array * per_array : (array + 1) * per_array]) for array in range(layout.arrays))


def _virtual_drives(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    if layout.maker is not Maker.CONTROLLER:
        return
    for array, bays in enumerate(array_bays(layout, drives)):
        (tool, controller), name = (bays[0].tool, bays[0].controller), names.drive_name(array)
        made = virtual_drives.create(tool, controller, tuple(bay.slot for bay in bays), layout, name)
        words = f"virtual drive {name}: {layout.raid} of {len(bays)}"
        yield Step(words, (tool, *made), makes=names.virtual_drive(array), by_controller=True)
        for command in virtual_drives.settle(tool, controller, SHOWN_NUMBER, layout, name):
            yield Step(f"set up {name}, whose number N is", (tool, *command), by_controller=True)


def _blank(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    """Wipe old signatures: tools would ask about them, or udev would use them while the layout is built.

    A virtual drive shows the old content of its drives.
    """
    made = layout.maker is Maker.CONTROLLER
    if layout != Layout():
        for path in array_paths(layout, drives, names) if made else [drive.path for drive in drives]:
            yield list_signatures(path)


def list_signatures(path: str) -> Step:
    """The worker erases what this lists, through its own exclusive descriptor (worker.layouts.steps)."""
    argv = ("wipefs", "--json", "--output", "OFFSET,LENGTH,TYPE", path)
    return Step(f"list the signatures of {path}; the worker erases them", argv, wipes=path)


def _partitions(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    if layout.share_percent == 100:
        return
    for drive in drives:
        length = share_bytes(drive.size_bytes, layout.share_percent)
        script = f"label: gpt\nlabel-id: {names.table_id}\nstart={PARTITION_START_BYTES // 512}, size={length // 512}\n"
        yield Step(
            f"partition the first {layout.share_percent} % of {drive.path}",
            ("sfdisk", "--wipe", "always", "--wipe-partitions", "always", drive.path),
            script,
        )
        # Not every kernel reads a GPT by itself; on kernels that do, this changes nothing.
        yield Step(
            f"announce the partition of {drive.path}", ("partx", "--update", drive.path), makes=part_path(drive.path)
        )


def share_bytes(drive_bytes: int, percent: int) -> int:
    """Size of the partition for a share of a drive: whole MiB of the usable space."""
    return (drive_bytes - PARTITION_START_BYTES - GPT_TAIL_BYTES) * percent // 100 // MIB * MIB


def _arrays(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    if layout.raid is Raid.NONE or layout.maker is Maker.CONTROLLER:
        return
    for number, array in enumerate(members(layout, drives)):
        start = md_data_start_bytes(layout)
        yield _md(names.md(number), layout.raid.removeprefix("raid"), array, layout.chunk_bytes, start)


def _stripe(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    arrays, stripe_bytes = array_paths(layout, drives, names), layout.stripe_bytes or 0
    if layout.stripe is Stripe.MD:
        yield _md(names.md_stripe, "0", arrays, stripe_bytes, max(MIB, stripe_bytes))
    if layout.stripe is Stripe.LVM:
        align = f"{lvm_alignment_bytes(layout)}b"
        yield Step("LVM labels", ("pvcreate", *NO_COPIES, "--yes", "--force", "--dataalignment", align, *arrays))
        yield Step(
            "volume group",
            ("vgcreate", *NO_COPIES, "--yes", "--physicalextentsize", f"{layout.extent_bytes}b", names.group, *arrays),
        )
        options = ("--stripes", str(layout.arrays), "--stripesize", f"{stripe_bytes}b") if layout.arrays > 1 else ()
        wipe = ("--wipesignatures", "n", "--zero", "n", "--yes")
        yield Step(
            f"volume striped over {layout.arrays} arrays",
            ("lvcreate", *NO_COPIES, *wipe, *options, "--extents", "100%FREE", "--name", "data", names.group),
            makes=names.volume,
            opens_all=True,
        )


def _md(path: str, level: str, parts: tuple[str, ...], chunk_bytes: int | None, start_bytes: int) -> Step:
    chunk = ("--chunk", f"{chunk_bytes // KIB}K") if chunk_bytes else ()
    clean = ("--assume-clean", "--bitmap=none") if level != "0" else ()
    argv = (
        "mdadm", "--create", path, "--run", "--force", "--metadata=1.2", "--homehost=any", "--level", level,
        "--raid-devices", str(len(parts)), *chunk, *clean, f"--data-offset={start_bytes // KIB}K", *parts,
    )  # fmt: skip
    return Step(f"md raid{level} of {len(parts)}", argv, makes=path)


def _file_system(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Step]:
    if layout.file_system is FileSystem.NONE:
        return
    top = top_path(layout, drives, names)
    parts = array_paths(layout, drives, names) if layout.stripe is Stripe.NONE else (top,)
    argv = {
        FileSystem.XFS: ("mkfs.xfs", "-q", "-f", "-K", "-L", names.label, *_xfs_geometry(layout), top),
        FileSystem.EXT4: ("mkfs.ext4", "-q", "-F", "-L", names.label, "-E", _ext4_options(layout), top),
        FileSystem.BTRFS: (
            "mkfs.btrfs", "--quiet", "--force", "--nodiscard", "--label", names.label,
            "--data", str(layout.btrfs_profile), "--metadata", str(layout.btrfs_profile), *parts,
        ),
        FileSystem.JFS: ("mkfs.jfs", "-q", "-L", names.label, top),
        FileSystem.F2FS: ("mkfs.f2fs", "-q", "-f", "-t", "0", "-l", names.label, top),
    }[layout.file_system]  # fmt: skip
    yield Step(f"{layout.file_system} on {top}", argv)


def _xfs_geometry(layout: Layout) -> tuple[str, ...]:
    unit, width = stripe_unit_bytes(layout), whole_width_bytes(layout)
    if unit is None or width is None:
        return ()
    return ("-d", f"su={unit},sw={width // unit}") if layout.told_geometry else ("-d", "noalign")


def _ext4_options(layout: Layout) -> str:
    unit, width = stripe_unit_bytes(layout), whole_width_bytes(layout)
    always = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    if unit is None or width is None:
        return always
    geometry = (unit, width) if layout.told_geometry else (0, 0)
    return f"stride={geometry[0] // EXT4_BLOCK_BYTES},stripe-width={geometry[1] // EXT4_BLOCK_BYTES},{always}"


def _mount(layout: Layout, top: str, mount_point: str) -> Step:
    options = ",".join(("nodev", "nosuid", "noexec", *layout.mount_options))
    argv = ("mount", "-t", str(layout.file_system), "-o", options, top, mount_point)
    return Step(f"mount on {mount_point}", argv, opens_all=True)


# The steps from a layout back to blank drives, from the top down, each with its command. Pure functions.
#
# `worker.layouts.taking_down` carries out these steps. After a crash any part may be missing; its step is then
# skipped. Signatures are wiped only after the worker has found the layout's key on the device.


class Part(StrEnum):
    """The kind of part that a step removes. It decides how the worker checks that the part exists."""

    MOUNT = "mount"
    SIGNATURES = "signatures"  # of a device: the worker must first verify that they belong to the layout
    GROUP = "volume group"
    ARRAY = "array"
    VIRTUAL_DRIVE = "virtual drive"  # of a controller: name, world-wide name and drives must be the layout's
    PARTITIONS = "partitions"  # that the kernel still has for a drive without a partition table


class Removal(Step, frozen=True, kw_only=True):
    part: Part
    of: str  # mount point, device, volume group, array, name of a virtual drive, or drive


def tear_down_steps(
    layout: Layout, drives: tuple[Drive, ...], *, key: str, mount_point: str, made: tuple[str, ...] = ()
) -> tuple[Removal, ...]:
    """The steps, in order. `drives` are those that the layout was built on."""
    removals: dict[tuple[Part, str], Removal] = {}
    for step in _steps(layout, drives, Names(key, made), mount_point):
        removals.setdefault((step.part, step.of), step)
    return tuple(removals.values())


def _steps(layout: Layout, drives: tuple[Drive, ...], names: Names, mount_point: str) -> Iterator[Removal]:
    if layout.file_system is not FileSystem.NONE:
        yield Removal("unmount", ("umount", mount_point), part=Part.MOUNT, of=mount_point)
    if layout.stripe is not Stripe.NONE:
        yield _wipe(top_path(layout, drives, names))
    if layout.stripe is Stripe.LVM:
        argv = ("vgremove", *NO_COPIES, "--yes", "--force", names.group)
        yield Removal("remove the volume group", argv, part=Part.GROUP, of=names.group)
    if layout.stripe is Stripe.MD:
        yield _stop(names.md_stripe)
    for array in array_paths(layout, drives, names):
        yield _wipe(array)
        if layout.raid is not Raid.NONE and layout.maker is Maker.MD:
            yield _stop(array)
    if layout.maker is Maker.CONTROLLER:
        yield from _deleted(layout, drives, names)
        return
    for parts in members(layout, drives):  # partitions before their drives
        yield from map(_wipe, parts)
    for drive in drives:
        yield _wipe(drive.path)
    yield from map(_forget, drives)


def _wipe(path: str) -> Removal:
    listed = list_signatures(path)
    return Removal(listed.words, listed.argv, part=Part.SIGNATURES, of=path)


def _stop(path: str) -> Removal:
    return Removal(f"stop {path.rpartition('/')[2]}", ("mdadm", "--stop", path), part=Part.ARRAY, of=path)


def _deleted(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Removal]:
    for array, bays in enumerate(array_bays(layout, drives)):
        name, bay = names.drive_name(array), bays[0]
        argv = (bay.tool, *virtual_drives.delete(bay.tool, bay.controller, SHOWN_NUMBER))
        words = f"delete virtual drive {name}, whose number N is"
        yield Removal(words, argv, by_controller=True, part=Part.VIRTUAL_DRIVE, of=name)


def _forget(drive: Drive) -> Removal:
    words = f"remove the partitions of {drive.path} from the kernel"
    return Removal(words, ("partx", "--delete", drive.path), part=Part.PARTITIONS, of=drive.path)
