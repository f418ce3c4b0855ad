"""Virtual drives of RAID controllers as arrays of layouts: make, find, read back, delete.

    slots (guard) ─► create ─► the controller's word: name, drives, world-wide name ─► journal ─► the kernel's disk
    journal ─► same name, drives and world-wide name? ─► delete ─► slots unconfigured and good again

A virtual drive belongs to the layout if it has the layout's name for it, uses exactly the array's drives (slots and
serials), and has the recorded world-wide name, if the tool shows one. Any other virtual drive is left alone.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from worker.contract.controllers import Controller, VirtualDrive
from worker.contract.layouts import DrivePolicy, Layout, Maker, Raid
from worker.controllers import Adapter, ToolError, adapter_named
from worker.guard import GuardRefused, slots
from worker.inventory import sysfs
from worker.inventory.controllers import is_shown_as
from worker.journal import Journal, LayoutRecord, MadeDrive
from worker.layouts.steps import LayoutFailed
from worker.recipes.layouts import Drive, Names, array_bays

DISK_LIMIT_S = 60.0  # for the kernel's disk to appear or disappear
_LOOK_EVERY_S = 0.5

_SHOWN: dict[DrivePolicy, tuple[str, str]] = {
    DrivePolicy.WRITE_BACK: ("write_cache_now", "write back"),
    DrivePolicy.WRITE_THROUGH: ("write_cache_now", "write through"),
    DrivePolicy.ALWAYS_WRITE_BACK: ("write_cache_now", "always write back"),
    DrivePolicy.READ_AHEAD: ("read_ahead", "read ahead"),
    DrivePolicy.NO_READ_AHEAD: ("read_ahead", "none"),
    DrivePolicy.DIRECT: ("io_policy", "direct"),
    DrivePolicy.CACHED: ("io_policy", "cached"),
    DrivePolicy.DISK_CACHE_ON: ("disk_cache", "enabled"),
    DrivePolicy.DISK_CACHE_OFF: ("disk_cache", "disabled"),
}


class Array(msgspec.Struct, frozen=True):
    """One array as it is now; `drive` None: its virtual drive is not there, `disk` "": the kernel does not show it."""

    adapter: Adapter
    controller: Controller
    slots: tuple[str, ...]
    drive: VirtualDrive | None
    disk: str  # kernel name


# ---- made


def make(
    layout: Layout, drives: tuple[Drive, ...], record: LayoutRecord, *, journal: Journal, go_on: Callable[[], None]
) -> tuple[LayoutRecord, tuple[str, ...]]:
    """One for each array, each written down before its disk is waited for. The whole record, and the disks' names.

    Raises LayoutFailed.
    """
    disks = []
    for number, bays in enumerate(array_bays(layout, drives)):
        go_on()
        if len({(bay.tool, bay.controller) for bay in bays}) > 1:
            raise LayoutFailed("layout_refused", f"Array {number + 1} has drives of different controllers.")
        name, adapter = Names(record.key).drive_name(number), adapter_named(bays[0].tool)
        places = tuple(bay.slot for bay in bays)
        with _tools_words():
            adapter.create(bays[0].controller, places, layout, name)
            made = _over(adapter, bays[0].controller, places)
            adapter.finish_creation(bays[0].controller, made.number, layout, name)
        before = record.virtual_drives
        record = _noted(record, (*before, MadeDrive(name, made.wwn)), journal)
        disk = _await_disk(made, adapter, record.drives[number * layout.drives_per_array].path, name)
        record = _noted(record, (*before, MadeDrive(name, made.wwn, sysfs.stable_id(disk))), journal)
        disks.append(disk)
    return record, tuple(disks)


def _over(adapter: Adapter, controller: str, places: tuple[str, ...]) -> VirtualDrive:
    """The virtual drive that uses exactly these drives."""
    told = next((each for each in adapter.read_controllers() if each.number == controller), None)
    found = [each for each in told.virtual_drives if set(each.drives) == set(places)] if told else []
    if len(found) != 1:
        raise LayoutFailed("layout_refused", f"{adapter.name} made {len(found)} virtual drives of {', '.join(places)}.")
    return found[0]


def _noted(record: LayoutRecord, made: tuple[MadeDrive, ...], journal: Journal) -> LayoutRecord:
    record = msgspec.structs.replace(record, virtual_drives=made)
    journal.save_layout(record)
    return record


def _await_disk(made: VirtualDrive, adapter: Adapter, slot: str, name: str) -> str:
    """Kernel name of its disk, behind the controller in whose slot the drive is."""
    until, address = time.monotonic() + DISK_LIMIT_S, slot.split("/")[1]
    while not (disk := _disk(made, adapter, address)):
        if time.monotonic() > until:
            raise LayoutFailed("layout_refused", f"{name} was made, but the kernel shows no disk of it.")
        time.sleep(_LOOK_EVERY_S)
    return disk


# ---- found again


def arrays(layout: Layout, record: LayoutRecord) -> tuple[Array, ...]:
    """As the controllers tell now. Raises LayoutFailed layout_gone, layout_foreign."""
    known = slots.controllers_now()
    places = [_place(drive.path, drive.serial, known) for drive in record.drives]
    per_array = layout.drives_per_array
    return tuple(
        _array(record, number, places[number * per_array : (number + 1) * per_array]) for number in range(layout.arrays)
    )


def _place(path: str, serial: str, known: Sequence[Controller]) -> slots.Slot:
    try:
        found = slots.at(path, known)
    except GuardRefused as error:
        raise LayoutFailed("layout_gone", error.message) from error
    if found.drive.serial != serial:
        raise LayoutFailed("layout_gone", f"{path} holds {found.drive.serial or 'no drive'} now, not {serial}.")
    return found


def _array(record: LayoutRecord, number: int, places: Sequence[slots.Slot]) -> Array:
    adapter, controller = places[0].adapter, places[0].controller
    own = tuple(place.drive.slot for place in places)
    drive = next((each for each in controller.virtual_drives if set(each.drives) & set(own)), None)
    if drive is not None and not _belongs_to_layout(drive, own, record, number):
        raise LayoutFailed(
            "layout_foreign",
            f"Virtual drive {drive.number} ({drive.name or 'without a name'}) lies on {', '.join(drive.drives)} of "
            f"{controller.model}, and layout {record.key} did not make it so. It is left as it is.",
        )
    disk = _disk(drive, adapter, controller.address) if drive else ""
    noted = record.virtual_drives[number].stable_id if number < len(record.virtual_drives) else ""
    if disk and noted and sysfs.stable_id(disk) != noted:
        raise LayoutFailed("layout_foreign", f"{disk} is {sysfs.stable_id(disk)} now, not {noted}. It is left alone.")
    return Array(adapter, controller, own, drive, disk)


def _belongs_to_layout(drive: VirtualDrive, own: tuple[str, ...], record: LayoutRecord, number: int) -> bool:
    noted = record.virtual_drives[number].wwn if number < len(record.virtual_drives) else ""
    same_name = drive.name == Names(record.key).drive_name(number)
    return same_name and set(drive.drives) == set(own) and (not noted or drive.wwn == noted)


def _disk(drive: VirtualDrive, adapter: Adapter, address: str) -> str:
    behind = (name for name in sysfs.names(slots.SYS) if sysfs.controller(name, slots.SYS) == address)
    shown = (
        name
        for name in behind
        if is_shown_as(drive, adapter, name, sysfs.world_wide_name(name, slots.SYS), slots.SYS)
        and not sysfs.is_partition(name, slots.SYS)
    )
    return next(shown, "")


def nodes(disks: Iterable[str], key: str) -> tuple[str, ...]:
    """Of each array's disk; one that is not there has the name that is shown before it is made."""
    names = Names(key)
    return tuple(sysfs.device_path(disk) if disk else names.virtual_drive(number) for number, disk in enumerate(disks))


# ---- read back


def read_back(layout: Layout, record: LayoutRecord) -> Layout:
    """Level, drives, spans, strip and policies as the controllers tell; policies as they work now."""
    found = {_observed(layout, array) for array in arrays(layout, record)}
    if len(found) != 1:
        raise LayoutFailed("layout_clamped", "The arrays' virtual drives came out unlike each other.")
    return found.pop()


def _observed(layout: Layout, array: Array) -> Layout:
    drive = array.drive
    if drive is None or drive.level.lower() not in set(Raid):
        raise LayoutFailed(
            "layout_gone", f"{array.adapter.name} tells of no virtual drive on {', '.join(array.slots)}."
        )
    return msgspec.structs.replace(
        layout,
        raid=Raid(drive.level.lower()),
        drives_per_array=len(drive.drives),
        spans=layout.spans if drive.spans is None else max(1, drive.spans),
        chunk_bytes=drive.strip_bytes,
        policies=tuple(_policy_now(policy, drive) for policy in layout.policies),
    )


def _policy_now(asked: DrivePolicy, drive: VirtualDrive) -> DrivePolicy:
    """The policy now. A policy that the tool does not show stays as it was requested."""
    field, _ = _SHOWN[asked]
    value = getattr(drive, field)
    return next((each for each, shown in _SHOWN.items() if shown == (field, value)), asked)


# ---- deleted


def delete(layout: Layout, record: LayoutRecord, name: str) -> None:
    """Delete the layout's own virtual drive; one that is absent already is no error. Raises LayoutFailed."""
    number = [Names(record.key).drive_name(array) for array in range(layout.arrays)].index(name)
    array = arrays(layout, record)[number]
    if array.drive is None:
        return
    with _tools_words():
        array.adapter.delete(array.controller.number, array.drive.number)
    until = time.monotonic() + DISK_LIMIT_S
    while array.disk and sysfs.exists(array.disk, slots.SYS):
        if time.monotonic() > until:
            raise LayoutFailed("layout_held", f"{name} was deleted, and the kernel still shows {array.disk}.")
        time.sleep(_LOOK_EVERY_S)


def verify_free(record: LayoutRecord) -> None:
    """Check that the drives are unconfigured, good, and in no virtual drive."""
    known = slots.controllers_now()
    for drive in record.drives:
        if in_use := _place(drive.path, drive.serial, known).in_use:
            raise LayoutFailed("layout_held", f"The drive in {drive.path} ({drive.serial}) still {in_use}.")


def is_made(layout: Layout) -> bool:
    return layout.maker is Maker.CONTROLLER


@contextmanager
def _tools_words() -> Iterator[None]:
    try:
        yield
    except ToolError as error:
        raise LayoutFailed("layout_refused", str(error)) from error
