"""RAID controllers and host bus adapters: output of their tools, matched with PCI functions and disks of the kernel.

A virtual drive is matched with a block device by its world-wide name, or by its SCSI target behind the same controller
if the tool does not print a name. Host bus adapters need no tool, because sysfs shows them and their drives. Not tested
on real hardware: the formats are those in the vendors' documentation.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from worker.contract.base import MAX_LABEL
from worker.contract.inventory import BlockDevice, Controller, PciFunction, PhysicalDrive, VirtualDrive
from worker.controllers.base import Adapter
from worker.controllers.tools import ADAPTERS
from worker.kernel import sysfs
from worker.kernel.sysfs import SYS, text
from worker.process.run import ToolError

TOTAL_LIMIT_S = 15.0  # after this time, the remaining tools are skipped


class ToolAnswers(msgspec.Struct, frozen=True):
    """The output of the tools. `problems` are by kernel driver."""

    controllers: tuple[tuple[str, Controller], ...] = ()  # with the name of the adapter
    problems: dict[str, str] = {}


def read_controllers(drivers: Iterable[str]) -> ToolAnswers:
    """Call every tool that may support controllers of these drivers. Takes seconds; never raises."""
    named_controllers: list[tuple[str, Controller]] = []
    problems: dict[str, list[str]] = {}
    present, give_up_at = frozenset(drivers), time.monotonic() + TOTAL_LIMIT_S
    for adapter in ADAPTERS:
        its_own = sorted(present & set(adapter.drivers))
        try:
            listed = _read(adapter, give_up_at) if its_own else ()
        except ToolError as error:
            for driver in its_own:
                problems.setdefault(driver, []).append(str(error))
        else:
            named_controllers += [(adapter.name, each) for each in listed if not _known(each, named_controllers)]
    return ToolAnswers(tuple(named_controllers), {driver: " ".join(messages) for driver, messages in problems.items()})


def _read(adapter: Adapter, give_up_at: float) -> tuple[Controller, ...]:
    """Skip the remaining tools after a time limit, because several may hang."""
    if time.monotonic() > give_up_at:
        raise ToolError(f"{adapter.name} was not called, because other tools took more than {TOTAL_LIMIT_S:g} s.")
    return adapter.read_controllers()


def _known(controller: Controller, listed: Iterable[tuple[str, Controller]]) -> bool:
    return bool(controller.address) and any(each.address == controller.address for _, each in listed)


def adapter_named(name: str) -> Adapter:
    return next(adapter for adapter in ADAPTERS if adapter.name == name)


_KINDS = ("raid", "sas", "scsi")
_PARAVIRTUAL = ("virtio-pci",)  # of hypervisors, not real adapters
_BIOS = ("version_bios", "bios_version")  # attributes of the SCSI hosts of various drivers
_UNPLACED = "The controller's PCI address is unknown."
WITH_A_TOOL = frozenset(driver for adapter in ADAPTERS for driver in adapter.drivers)


def ask_tools(sys: Path = SYS) -> ToolAnswers:
    """Call every tool that may support a controller of this host. Without such a controller, nothing is started."""
    return read_controllers(drivers_with_a_tool(sys).values())


def drivers_with_a_tool(sys: Path = SYS) -> dict[str, str]:
    """The kernel driver of each PCI function that a tool may support, by address."""
    bound = {at.name: (at / "driver").resolve().name for at in (sys / "bus/pci/devices").glob("*")}
    return {address: driver for address, driver in bound.items() if driver in WITH_A_TOOL}


def by_address(answers: ToolAnswers, drivers: Mapping[str, str]) -> dict[str, tuple[Adapter, Controller]]:
    """Controllers by PCI address. Without an address, a controller is used if only one function matches."""
    matched = {}
    for name, controller in answers.controllers:
        adapter = adapter_named(name)
        its_own = [address for address, driver in drivers.items() if driver in adapter.drivers]
        if controller.address in its_own:
            matched[controller.address] = adapter, controller
        elif not controller.address and len(its_own) == 1:
            matched[its_own[0]] = adapter, controller
    return matched


def take(
    functions: Iterable[PciFunction], devices: Iterable[BlockDevice], answers: ToolAnswers, sys: Path = SYS
) -> tuple[Controller, ...]:
    """A controller for each storage function that is a RAID controller or a SAS or SCSI adapter."""
    ours = [f for f in functions if f.kind in _KINDS and f.driver not in _PARAVIRTUAL]
    disks = [device for device in devices if not device.parents and device.kind == "disk"]
    known = by_address(answers, {function.address: function.driver for function in ours})
    with_function = [_one(function, known.get(function.address), disks, answers, sys) for function in ours]
    lost = [each for _, each in answers.controllers if not any(each is placed for _, placed in known.values())]
    return (*with_function, *(replace(each, problem=_UNPLACED) for each in lost))


def _one(
    function: PciFunction,
    of_tool: tuple[Adapter, Controller] | None,
    disks: list[BlockDevice],
    answers: ToolAnswers,
    sys: Path,
) -> Controller:
    behind = [disk for disk in disks if disk.controller == function.address]
    by_kernel = Controller(
        address=function.address,
        tool="sysfs",
        vendor=function.vendor_id,
        model=function.model,
        subsystem=function.subsystem,
        firmware=function.firmware,
        bios=_bios(function.address, sys),
        driver=function.driver,
        driver_version=function.driver_version,
        problem=answers.problems.get(function.driver, ""),
    )
    if of_tool is None:
        hidden = function.driver in WITH_A_TOOL  # the kernel shows virtual drives, not physical ones
        return replace(by_kernel, physical_drives=() if hidden else tuple(_seen(disk, sys) for disk in behind))
    adapter, controller = of_tool
    known = {key: getattr(controller, key) or getattr(by_kernel, key) for key in _EITHER}
    serials = {disk.serial: disk.name for disk in behind if disk.serial}
    return replace(
        controller,
        **known,
        virtual_drives=tuple(_with_device(drive, adapter, behind, sys) for drive in controller.virtual_drives),
        physical_drives=tuple(replace(d, device=serials.get(d.serial, "")) for d in controller.physical_drives),
    )


_EITHER = ("address", "vendor", "model", "subsystem", "firmware", "bios", "driver", "driver_version")


def _bios(address: str, sys: Path) -> str:
    hosts = (sys / "bus/pci/devices" / address).glob("host*/scsi_host/host*")
    return next((version for host in hosts for name in _BIOS if (version := text(host / name))), "")[:MAX_LABEL]


def _seen(disk: BlockDevice, sys: Path) -> PhysicalDrive:
    """A drive that is visible as a block device."""
    return PhysicalDrive(
        slot=_bay(disk.name, sys),
        model=disk.model,
        serial=disk.serial,
        firmware=disk.firmware,
        state=sysfs.attribute(disk.name, "device/state", sys)[:MAX_LABEL],
        size_bytes=disk.size_bytes,
        medium={True: "HDD", False: "SSD", None: ""}[disk.rotational],
        interface={"sas": "SAS", "sata": "SATA"}.get(disk.transport, ""),
        link_bits_per_s=disk.link_bits_per_s,
        device=disk.name,
    )


def _bay(name: str, sys: Path) -> str:
    """The bay if the enclosure reports it, else the SCSI address."""
    place = sysfs.node(name, sys).resolve()
    end = next((each.name for each in place.parents if each.name.startswith("end_device-")), "")
    bay = text(sys / "class/sas_device" / end / "bay_identifier") if end else ""
    return f"bay {bay}" if bay else ":".join(map(str, address(name, sys) or ())) or name


# ---- match virtual drives with disks


def _with_device(drive: VirtualDrive, adapter: Adapter, disks: list[BlockDevice], sys: Path) -> VirtualDrive:
    names = (disk.name for disk in disks if is_shown_as(drive, adapter, disk.name, disk.wwn, sys))
    return replace(drive, device=next(names, ""))


def is_shown_as(drive: VirtualDrive, adapter: Adapter, name: str, wwn: str, sys: Path = SYS) -> bool:
    """True if a block device behind the same controller is this virtual drive."""
    if drive.wwn and wwn:
        return drive.wwn == wwn
    place = address(name, sys)
    return place is not None and adapter.is_at(drive, place[1:])


def address(name: str, sys: Path = SYS) -> tuple[int, int, int, int] | None:
    """SCSI host, channel, target and unit of a disk."""
    parts = (sysfs.node(sysfs.whole(name, sys), sys) / "device").resolve().name.split(":")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return None
    host, channel, target, unit = map(int, parts)
    return host, channel, target, unit
