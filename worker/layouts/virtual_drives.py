"""Virtual drives of RAID controllers as arrays of layouts: create, find, read back, delete.

    slots (guard) ─► create ─► read name, drives and world-wide name from the controller ─► journal ─► kernel's disk
    journal ─► same name, drives and world-wide name? ─► delete ─► slots unconfigured and good again

A virtual drive belongs to the layout if it has the layout's name for it, uses exactly the array's drives (slots and
serials), and has the recorded world-wide name, if the tool shows one. No other virtual drive is changed.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from worker.contract.inventory import Controller, VirtualDrive
from worker.contract.layouts import DrivePolicy, Layout, Maker, Raid
from worker.controllers import adapter_named, is_shown_as
from worker.controllers.base import Adapter
from worker.guard import slots
from worker.guard.refusal import GuardRefused
from worker.journal import Journal, LayoutRecord, MadeDrive
from worker.kernel import sysfs
from worker.layouts.steps import LayoutFailed
from worker.process.run import ToolError
from worker.recipes.layouts.commands import Drive, Names, array_bays

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
    """The current state of an array. `drive`: None if there is none; `disk`: "" if the kernel does not show it."""

    adapter: Adapter
    controller: Controller
    slots: tuple[str, ...]
    drive: VirtualDrive | None
    disk: str  # kernel name


# ---- create


def make(
    layout: Layout, drives: tuple[Drive, ...], record: LayoutRecord, *, journal: Journal, go_on: Callable[[], None]
) -> tuple[LayoutRecord, tuple[str, ...]]:
    """Create a virtual drive for each array, and record it before waiting for its disk. Returns record and disk names.

    Raises LayoutFailed.
    """
    disks = []
    for number, bays in enumerate(array_bays(layout, drives)):
        go_on()
        if len({(bay.tool, bay.controller) for bay in bays}) > 1:
            raise LayoutFailed("layout_refused", f"Array {number + 1} has drives on different controllers.")
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
    present = next((each for each in adapter.read_controllers() if each.number == controller), None)
    drives = [each for each in present.virtual_drives if set(each.drives) == set(places)] if present else []
    if len(drives) != 1:
        raise LayoutFailed(
            "layout_refused", f"{adapter.name} made {len(drives)} virtual drives on {', '.join(places)}."
        )
    return drives[0]


def _noted(record: LayoutRecord, made: tuple[MadeDrive, ...], journal: Journal) -> LayoutRecord:
    record = msgspec.structs.replace(record, virtual_drives=made)
    journal.save_layout(record)
    return record


def _await_disk(made: VirtualDrive, adapter: Adapter, slot: str, name: str) -> str:
    """Kernel name of the virtual drive's disk, behind the controller of the slots."""
    until, address = time.monotonic() + DISK_LIMIT_S, slot.split("/")[1]
    while not (disk := _disk(made, adapter, address)):
        if time.monotonic() > until:
            raise LayoutFailed("layout_refused", f"{name} was created, but the kernel shows no disk for it.")
        time.sleep(_LOOK_EVERY_S)
    return disk


# ---- find


def arrays(layout: Layout, record: LayoutRecord) -> tuple[Array, ...]:
    """The arrays according to the controllers now. Raises LayoutFailed layout_gone, layout_foreign."""
    known = slots.controllers_now()
    places = [_place(drive.path, drive.serial, known) for drive in record.drives]
    per_array = layout.drives_per_array
    return tuple(
        _array(record, number, places[number * per_array : (number + 1) * per_array]) for number in range(layout.arrays)
    )


def _place(path: str, serial: str, known: Sequence[Controller]) -> slots.Slot:
    try:
        slot = slots.at(path, known)
    except GuardRefused as error:
        raise LayoutFailed("layout_gone", error.message) from error
    if slot.drive.serial != serial:
        raise LayoutFailed("layout_gone", f"{path} now contains {slot.drive.serial or 'no drive'}, not {serial}.")
    return slot


def _array(record: LayoutRecord, number: int, places: Sequence[slots.Slot]) -> Array:
    adapter, controller = places[0].adapter, places[0].controller
    slots_of_array = tuple(place.drive.slot for place in places)
    drive = next((each for each in controller.virtual_drives if set(each.drives) & set(slots_of_array)), None)
    if drive is not None and not _belongs_to_layout(drive, slots_of_array, record, number):
        raise LayoutFailed(
            "layout_foreign",
            f"Virtual drive {drive.number} ({drive.name or 'unnamed'}) uses {', '.join(drive.drives)} of "
            f"{controller.model} and does not belong to layout {record.key}. The worker did not change it.",
        )
    disk = _disk(drive, adapter, controller.address) if drive else ""
    noted = record.virtual_drives[number].stable_id if number < len(record.virtual_drives) else ""
    if disk and noted and sysfs.stable_id(disk) != noted:
        raise LayoutFailed("layout_foreign", f"{disk} is now {sysfs.stable_id(disk)}, not {noted}. It was not changed.")
    return Array(adapter, controller, slots_of_array, drive, disk)


def _belongs_to_layout(drive: VirtualDrive, slots_of_array: tuple[str, ...], record: LayoutRecord, number: int) -> bool:
    noted = record.virtual_drives[number].wwn if number < len(record.virtual_drives) else ""
    same_name = drive.name == Names(record.key).drive_name(number)
    return same_name and set(drive.drives) == set(slots_of_array) and (not noted or drive.wwn == noted)


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
    """Device nodes of the arrays' disks; a missing disk gets the name shown in previews."""
    names = Names(key)
    return tuple(sysfs.device_path(disk) if disk else names.virtual_drive(number) for number, disk in enumerate(disks))


# ---- read back


def read_back(layout: Layout, record: LayoutRecord) -> Layout:
    """Level, drives, spans, strip and active policies according to the controllers."""
    observed = {_observed(layout, array) for array in arrays(layout, record)}
    if len(observed) != 1:
        raise LayoutFailed("layout_clamped", "The arrays' virtual drives differ from each other.")
    return observed.pop()


def _observed(layout: Layout, array: Array) -> Layout:
    drive = array.drive
    if drive is None or drive.level.lower() not in set(Raid):
        raise LayoutFailed("layout_gone", f"{array.adapter.name} lists no virtual drive on {', '.join(array.slots)}.")
    return msgspec.structs.replace(
        layout,
        raid=Raid(drive.level.lower()),
        drives_per_array=len(drive.drives),
        spans=layout.spans if drive.spans is None else max(1, drive.spans),
        chunk_bytes=drive.strip_bytes,
        policies=tuple(_policy_now(policy, drive) for policy in layout.policies),
    )


def _policy_now(policy: DrivePolicy, drive: VirtualDrive) -> DrivePolicy:
    """The active policy; as requested if the tool does not show it."""
    field, _ = _SHOWN[policy]
    value = getattr(drive, field)
    return next((each for each, shown in _SHOWN.items() if shown == (field, value)), policy)


# ---- delete


def delete(layout: Layout, record: LayoutRecord, name: str) -> None:
    """Delete the layout's virtual drive if it exists. Raises LayoutFailed."""
    number = [Names(record.key).drive_name(array) for array in range(layout.arrays)].index(name)
    array = arrays(layout, record)[number]
    if array.drive is None:
        return
    with _tools_words():
        array.adapter.delete(array.controller.number, array.drive.number)
    until = time.monotonic() + DISK_LIMIT_S
    while array.disk and sysfs.exists(array.disk, slots.SYS):
        if time.monotonic() > until:
            raise LayoutFailed("layout_held", f"{name} was deleted, but the kernel still shows {array.disk}.")
        time.sleep(_LOOK_EVERY_S)


def verify_free(record: LayoutRecord) -> None:
    """Check that the drives are unconfigured and good, and in no virtual drive."""
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
