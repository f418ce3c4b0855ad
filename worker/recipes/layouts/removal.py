"""The steps from a layout back to blank drives, from the top down, each with its command. Pure functions.

`worker.layouts.taking_down` carries out these steps. After a crash any part may be missing; its step is then skipped.
Signatures are wiped only after the worker has found the layout's key on the device.
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
    list_signatures,
    members,
    top_path,
)


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
