"""Check drives that only their RAID controller can access.

The guard relies on the controller's answer, and requests it again right before building. It refuses a drive whose
serial differs, and a drive that is not unconfigured and good (part of a virtual drive, hot spare, foreign, failed, or
passed through to the host).
"""

from collections.abc import Collection, Iterable

import msgspec

from worker import controllers
from worker.contract.inventory import Controller, PhysicalDrive
from worker.controllers import by_address, drivers_with_a_tool
from worker.controllers.base import Adapter
from worker.guard.lease import Lease
from worker.guard.refusal import GuardRefused, Survey
from worker.kernel import sysfs
from worker.policy import PolicyEntry
from worker.recipes.layouts.virtual_drives import Bay

SYS = sysfs.SYS
BY_KERNEL = "sysfs"  # `tool` of a controller that no tool lists


class Slot(msgspec.Struct, frozen=True):
    adapter: Adapter
    controller: Controller
    drive: PhysicalDrive

    @property
    def bay(self) -> Bay:
        return Bay(self.adapter.name, self.controller.number, self.drive.slot)

    @property
    def in_use(self) -> str:
        """Why the drive may not be used; "" if it may."""
        volume = next((v for v in self.controller.virtual_drives if self.drive.slot in v.drives), None)
        if volume is not None:
            return f"belongs to virtual drive {volume.number} ({volume.name or 'unnamed'})"
        if not self.adapter.is_unconfigured(self.drive):
            return f"is {self.drive.state or 'in an unknown state'}, not unconfigured and good"
        return ""


def controllers_now() -> tuple[Controller, ...]:
    """Query every RAID controller of this host; `problem` is set if no tool lists it."""
    drivers = drivers_with_a_tool(SYS)
    answers = controllers.read_controllers(drivers.values())
    by_pci_address = by_address(answers, drivers)
    return tuple(
        msgspec.structs.replace(by_pci_address[address][1], address=address)
        if address in by_pci_address
        else Controller(address=address, tool=BY_KERNEL, problem=answers.problems.get(driver, ""))
        for address, driver in drivers.items()
    )


def at(path: str, known: Iterable[Controller]) -> Slot:
    """The drive at `/<PCI address>/<slot>`. Raises GuardRefused."""
    address, _, slot = path.removeprefix("/").partition("/")
    controller = next((each for each in known if each.address == address), None)
    if controller is None:
        raise GuardRefused("guard_path", f"{path}: there is no supported RAID controller at {address}.")
    tool = controller.tool.partition(" ")[0]
    if tool == BY_KERNEL:
        raise GuardRefused("guard_path", f"{path}: {controller.problem or 'no tool lists this controller.'}")
    drive = next((each for each in controller.physical_drives if each.slot == slot), None)
    if drive is None:
        there = ", ".join(each.slot for each in controller.physical_drives) or "none"
        raise GuardRefused("guard_path", f"{path}: the slot is empty; there are drives in {there}.")
    return Slot(controllers.adapter_named(tool), controller, drive)


def find(entry: PolicyEntry, known: Iterable[Controller]) -> Slot:
    """The drive that the policy lists. Raises GuardRefused if another drive is in its slot."""
    slot = at(entry.path, known)
    if slot.drive.serial != entry.serial:
        raise GuardRefused(
            "guard_serial_changed",
            f"The drive in {entry.path} has the serial {slot.drive.serial or 'none'}, but the policy lists "
            f"{entry.serial}. Check the label on the drive, then correct the policy.",
        )
    if not slot.adapter.makes_virtual_drives:
        raise GuardRefused(
            "guard_path",
            f"{entry.path}: cannot create virtual drives with {slot.adapter.name}, only with storcli, perccli "
            "and MegaCli.",
        )
    return slot


def lease(entry: PolicyEntry, known: Iterable[Controller], armed_serials: tuple[str, ...]) -> Lease:
    """Check that a virtual drive may use a drive. Raises GuardRefused."""
    slot = recheck(entry, known, armed_serials)
    if slot.in_use:
        raise GuardRefused(
            "guard_held", f"The drive in {entry.path} ({entry.serial}) {slot.in_use}: it cannot be used for a layout."
        )
    return Lease(str(slot.bay), size_bytes=slot.drive.size_bytes or 0)


def recheck(entry: PolicyEntry, known: Iterable[Controller], armed_serials: tuple[str, ...]) -> Slot:
    """Check that a drive has the right serial and is destroyable and armed. Raises GuardRefused."""
    slot = find(entry, known)
    if not entry.destroy:
        raise GuardRefused("guard_not_destroyable", f"The policy has no destroy = true for {entry.id!r}.")
    if not entry.experimental:
        raise GuardRefused("guard_experimental", _not_experimental(entry))
    if entry.arming_serial not in armed_serials:
        raise GuardRefused(
            "guard_not_armed",
            f"The drive in {entry.path} would be overwritten; this run is not armed for {entry.arming_serial}.",
        )
    return slot


def survey(entry: PolicyEntry, known: Collection[Controller], *, own_layout: bool) -> Survey:
    try:
        slot = find(entry, known)
    except GuardRefused as refused:
        return Survey(problem=refused.message)
    in_use = "" if own_layout else slot.in_use
    problem = f"The drive in {entry.path} ({entry.serial}) {in_use}." if in_use else ""
    return Survey(
        size_bytes=slot.drive.size_bytes or 0,
        opens=str(slot.bay),
        model=slot.drive.model,
        firmware=slot.drive.firmware,
        problem=problem or ("" if entry.experimental else _not_experimental(entry)),
    )


def _not_experimental(entry: PolicyEntry) -> str:
    return (
        f"Virtual drives of RAID controllers were not tested on real hardware. If you want to try them, set "
        f"experimental = true for {entry.id!r} in the policy."
    )
