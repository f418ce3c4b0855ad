"""From a layout back to blank drives: what is removed, from the top, and the command for each. Pure.

`worker.layouts.taking_down` carries out these very steps. After a crash any part may be missing; then its step is
left out. What holds signatures is wiped only once it was seen to bear the layout's key.
"""

from collections.abc import Iterator
from enum import StrEnum

from worker.contract.layouts import FileSystem, Layout, Raid, Stripe
from worker.recipes.layouts.commands import NO_COPIES, Drive, Names, Step, leg_paths, members, top_path


class Part(StrEnum):
    """What a step removes, and so how it is seen that it is there."""

    MOUNT = "mount"
    SIGNATURES = "signatures"  # of a device: it must be proven to be the layout's own first
    GROUP = "volume group"
    ARRAY = "array"
    PARTITIONS = "partitions"  # that the kernel still knows of a drive whose table is gone, also one from before


class Removal(Step, frozen=True, kw_only=True):
    part: Part
    of: str  # mount point, device, volume group, array, or drive


def tear_down_steps(layout: Layout, drives: tuple[Drive, ...], *, key: str, mount_point: str) -> tuple[Removal, ...]:
    """In this order. `drives` as when it was built."""
    found: dict[tuple[Part, str], Removal] = {}
    for step in _steps(layout, drives, Names(key), mount_point):
        found.setdefault((step.part, step.of), step)
    return tuple(found.values())


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
    for leg in leg_paths(layout, drives, names):
        yield _wipe(leg)
        if layout.raid is not Raid.NONE:
            yield _stop(leg)
    for parts in members(layout, drives):  # partitions before their drives
        yield from map(_wipe, parts)
    for drive in drives:
        yield _wipe(drive.path)
    yield from map(_forget, drives)


def _wipe(path: str) -> Removal:
    return Removal(f"wipe {path}", ("wipefs", "--all", "--quiet", path), part=Part.SIGNATURES, of=path)


def _stop(path: str) -> Removal:
    return Removal(f"stop {path.rpartition('/')[2]}", ("mdadm", "--stop", path), part=Part.ARRAY, of=path)


def _forget(drive: Drive) -> Removal:
    words = f"forget the partitions of {drive.path}"
    return Removal(words, ("partx", "--delete", drive.path), part=Part.PARTITIONS, of=drive.path)
