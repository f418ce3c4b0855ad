"""Read the layout back from the kernel and LVM after building."""

import time
from pathlib import Path

import msgspec

from worker.contract.layouts import BtrfsProfile, FileSystem, Layout, Maker, Raid, Stripe
from worker.contract.workload import MIB
from worker.inventory import sysfs, usage
from worker.inventory.file_systems import btrfs_profiles
from worker.inventory.geometry import geometry
from worker.journal import LayoutRecord
from worker.layouts import mount_options, virtual_drives
from worker.layouts.building import Built
from worker.layouts.steps import UDEV_LIMIT_S, LayoutFailed
from worker.process import ToolError, ask
from worker.recipes import layouts
from worker.recipes.layouts import Names
from worker.recipes.layouts.commands import EXT4_BLOCK_BYTES, share_bytes
from worker.recipes.layouts.geometry import stripe_unit_bytes, whole_width_bytes


class Observed(msgspec.Struct, frozen=True):
    """`layout` has the observed values, and the requested values of properties that cannot be read."""

    layout: Layout
    wrong: tuple[str, ...]  # options that were accepted but not applied

    @property
    def words(self) -> str:
        return layouts.write(self.layout)


def read_back(asked: Layout, built: Built) -> Observed:
    """Raises LayoutFailed if a property cannot be read."""
    names = Names(built.record.key)
    found = _drives(asked, built)
    found = _arrays(found, built.record, names)
    found = _stripe(found, names)
    mount = _mount(built) if built.mount_point else None
    if mount is not None:
        found = _file_system(found, built, mount)
    shown, kind = (mount.options, mount.kind) if mount else ("", "")
    wrong = [
        f"{option} was accepted but is not in effect"
        for option in mount_options.contradicted(asked.mount_options, shown, kind)
    ]
    # Options that the kernel hides (see mount_options) stay as requested.
    plain = msgspec.structs.replace(found, mount_options=asked.mount_options)
    if plain != asked:
        wrong.append(f"the result is {layouts.write(plain)}")
    denied = mount_options.contradicted(asked.mount_options, shown, kind)
    kept = tuple(option for option in asked.mount_options if option not in denied)
    return Observed(msgspec.structs.replace(found, mount_options=kept), tuple(wrong))


def _drives(layout: Layout, built: Built) -> Layout:
    """The share of each drive that its partition covers."""
    if layout.share_percent == 100:
        return layout
    shares = set()
    for name in built.members:
        there, whole = _partition_bytes(name), sysfs.size_bytes(name)
        asked = share_bytes(whole, layout.share_percent)
        shares.add(layout.share_percent if there == asked else round(100 * there / max(whole - 2 * MIB, 1)))
    return msgspec.structs.replace(layout, share_percent=max(1, min(shares)))


def _partition_bytes(drive: str) -> int:
    """Size of its only partition. While the kernel reads the table again, which udev may ask for, there is none.

    Raises LayoutFailed.
    """
    until = time.monotonic() + UDEV_LIMIT_S
    while True:
        there = [size for part in sysfs.partitions(drive) if (size := sysfs.size_bytes(part))]
        if len(there) == 1:
            return there[0]
        if time.monotonic() > until:
            raise LayoutFailed("layout_clamped", f"{drive} has {len(there)} partitions instead of 1.")
        time.sleep(0.05)


def _arrays(layout: Layout, record: LayoutRecord, names: Names) -> Layout:
    if layout.raid is Raid.NONE:
        return layout
    if layout.maker is Maker.CONTROLLER:
        return virtual_drives.read_back(layout, record)
    found = {_array(names.md(number)) for number in range(layout.arrays)}
    if len(found) != 1:
        raise LayoutFailed("layout_clamped", f"The arrays of {layouts.write(layout)} differ from each other.")
    level, members, chunk_bytes = found.pop()
    chunk = chunk_bytes if layout.chunk_bytes else None
    return msgspec.structs.replace(layout, raid=Raid(level), drives_per_array=members, chunk_bytes=chunk)


def _array(path: str) -> tuple[str, int, int | None]:
    found = geometry(Path(path).resolve().name, {})
    if found is None or found.level not in set(Raid):
        raise LayoutFailed("layout_clamped", f"{path} is not an md array, or has an unknown level.")
    return found.level, found.members, found.chunk_bytes


def _stripe(layout: Layout, names: Names) -> Layout:
    if layout.stripe is Stripe.MD:
        _level, arrays, chunk_bytes = _array(names.md_stripe)
        return msgspec.structs.replace(layout, arrays=arrays, stripe_bytes=chunk_bytes)
    if layout.stripe is Stripe.LVM:
        stripes, stripe_bytes = _numbers("lvs", "stripes,stripe_size", f"{names.group}/data")
        (extent_bytes,) = _numbers("vgs", "vg_extent_size", names.group)
        given = {"arrays": stripes, "extent_bytes": extent_bytes} | (
            {"stripe_bytes": stripe_bytes} if stripes > 1 else {}
        )
        return msgspec.structs.replace(layout, **given)
    return layout


def _numbers(program: str, fields: str, of: str) -> list[int]:
    try:
        said = ask(program, "--noheadings", "--nosuffix", "--units", "b", "--options", fields, of)
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    found = said.out.split()
    if said.exit_code != 0 or len(found) != len(fields.split(",")) or not all(word.isdigit() for word in found):
        raise LayoutFailed("layout_refused", f"{program} did not report {fields} of {of}: {said.err.strip()}")
    return [int(word) for word in found]


def _mount(built: Built) -> usage.Mount:
    mounts = usage.read_mounts(usage.table(Path("/proc/self/mountinfo")))
    found = [mount for mount in mounts if mount.point == built.mount_point]
    if not found:
        raise LayoutFailed("layout_gone", f"{built.mount_point} is no longer mounted.")
    return found[-1]


def _file_system(layout: Layout, built: Built, mount: usage.Mount) -> Layout:
    known = FileSystem(mount.kind) if mount.kind in set(FileSystem) else FileSystem.NONE
    found = msgspec.structs.replace(layout, file_system=known, told_geometry=_told(layout, mount))
    return _btrfs(found, built) if known is FileSystem.BTRFS else found


def _told(layout: Layout, mount: usage.Mount) -> bool:
    """XFS shows sunit and swidth in sectors of 512 bytes, ext4 shows stripe in blocks; others have no geometry."""
    unit, width = stripe_unit_bytes(layout), whole_width_bytes(layout)
    if unit is None or width is None or mount.kind not in (FileSystem.XFS, FileSystem.EXT4):
        return layout.told_geometry
    shown = dict(option.partition("=")[::2] for option in mount.options.split(","))
    if mount.kind == FileSystem.EXT4:
        return shown.get("stripe") == str(width // EXT4_BLOCK_BYTES)
    return (shown.get("sunit"), shown.get("swidth")) == (str(unit // 512), str(width // 512))


def _btrfs(layout: Layout, built: Built) -> Layout:
    profiles = btrfs_profiles(built.members)
    data = profiles.get("data", "")
    if data not in set(BtrfsProfile) or len(set(profiles.values())) != 1:
        told = ", ".join(f"{kind} {profile}" for kind, profile in profiles.items()) or "nothing"
        raise LayoutFailed("layout_clamped", f"btrfs {layout.btrfs_profile} was requested; the kernel shows {told}.")
    return msgspec.structs.replace(layout, btrfs_profile=BtrfsProfile(data))
