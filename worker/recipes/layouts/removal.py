"""From a layout back to blank drives: what is removed, from the top, and the command for each. Pure.

`worker.layouts.taking_down` carries out these very steps. After a crash any part may be missing; then its step is
left out. What holds signatures is wiped only once it was seen to bear the layout's key.
"""

from collections.abc import Iterator
from enum import StrEnum

from worker.contract.layouts import FileSystem, Layout, Maker, Raid, Stripe
from worker.recipes.layouts import virtual_drives
from worker.recipes.layouts.commands import (
    NO_COPIES,
    SHOWN_NUMBER,
    Drive,
    Names,
    Step,
    array_bays,
    array_paths,
    members,
    top_path,
)


class Part(StrEnum):
    """What a step removes, and so how it is seen that it is there."""

    MOUNT = "mount"
    SIGNATURES = "signatures"  # of a device: it must be proven to be the layout's own first
    GROUP = "volume group"
    ARRAY = "array"
    VIRTUAL_DRIVE = "virtual drive"  # of a controller: its name, world-wide name and drives must be the layout's own
    PARTITIONS = "partitions"  # that the kernel still knows of a drive whose table is gone, also one from before


class Removal(Step, frozen=True, kw_only=True):
    part: Part
    of: str  # mount point, device, volume group, array, name of a virtual drive, or drive


def tear_down_steps(
    layout: Layout, drives: tuple[Drive, ...], *, key: str, mount_point: str, made: tuple[str, ...] = ()
) -> tuple[Removal, ...]:
    """In this order. `drives` as when it was built."""
    found: dict[tuple[Part, str], Removal] = {}
    for step in _steps(layout, drives, Names(key, made), mount_point):
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
    return Removal(f"wipe {path}", ("wipefs", "--all", "--quiet", path), part=Part.SIGNATURES, of=path)


def _stop(path: str) -> Removal:
    return Removal(f"stop {path.rpartition('/')[2]}", ("mdadm", "--stop", path), part=Part.ARRAY, of=path)


def _deleted(layout: Layout, drives: tuple[Drive, ...], names: Names) -> Iterator[Removal]:
    for array, bays in enumerate(array_bays(layout, drives)):
        name, bay = names.drive_name(array), bays[0]
        argv = (bay.tool, *virtual_drives.delete(bay.tool, bay.controller, SHOWN_NUMBER))
        words = f"delete virtual drive {name}, whose number N is"
        yield Removal(words, argv, by_controller=True, part=Part.VIRTUAL_DRIVE, of=name)


def _forget(drive: Drive) -> Removal:
    words = f"forget the partitions of {drive.path}"
    return Removal(words, ("partx", "--delete", drive.path), part=Part.PARTITIONS, of=drive.path)
