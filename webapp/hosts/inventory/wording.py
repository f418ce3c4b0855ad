"""Differences between two inventories in words: a summary for the host's history, and a table of all facts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from webapp.hosts.inventory.differences import (
    HOST,
    PHYSICAL_DRIVES,
    VIRTUAL_DRIVES,
    Change,
    Difference,
    differences,
)
from worker.contract.inventory import BlockDevice, Inventory

_BOOT = "kernel.boot_id"
_BEHIND_CONTROLLERS = ("controllers", VIRTUAL_DRIVES, PHYSICAL_DRIVES)
# Facts in the summary: path -> label.
_HOST_FACTS: Mapping[str, str] = {
    "hostname": "host name",
    "distribution": "distribution",
    "kernel.release": "kernel",
    "kernel.command_line": "kernel command line",
    "cpu.model": "CPU",
    "cpu.threads": "CPU threads",
    "cpu.governor": "CPU governor",
    "memory_bytes": "memory in bytes",
}
_DEVICE_FACTS: Mapping[str, str] = {
    "serial": "serial",
    "model": "model",
    "firmware": "firmware",
    "size_bytes": "size in bytes",
    "scheduler": "scheduler",
    "parents": "lies on",
    "signature": "holds",
    "holders": "in use by",
}
_CONTROLLER_FACTS_LEFT_OUT = ("drives", "device", "address", "number", "slot")
# kind of part -> its name, and the facts that identify one part
_NAMES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "block_devices": ("Block device", ("name", "model", "serial")),
    "pci": ("PCI function", ("address", "model")),
    "numa_nodes": ("NUMA node", ("number",)),
    "memory_modules": ("Memory module", ("slot",)),
    "file_systems": ("File system", ("kind", "points")),
}


@dataclass(frozen=True)
class TableRow:
    """`where` is the host or a part of it; "" in `before` or `after` means none or unknown."""

    where: str
    what: str
    before: str
    after: str


def table(before: Inventory, after: Inventory) -> list[TableRow]:
    """Every difference."""
    return [_row(each) for each in differences(before, after)]


def _row(found: Difference) -> TableRow:
    where = _part(found)
    if found.change is Change.ADDED:
        return TableRow(where, "", "", "added")
    if found.change is Change.REMOVED:
        return TableRow(where, "", "", "removed")
    what = found.fact.replace(".", ", ").replace("_", " ")
    return TableRow(where, what, _written(found.before), _written(found.after))


def _part(found: Difference) -> str:
    if found.kind == HOST:
        return "Host"
    if found.kind in _BEHIND_CONTROLLERS:
        return _behind_controller(found)
    kind, facts = _NAMES[found.kind]
    first, *others = [_written(getattr(found.part, fact)) for fact in facts]
    more = ", ".join(filter(None, others))
    return f"{kind} {first}{f' ({more})' if more else ''}"


def _behind_controller(found: Difference) -> str:
    name = f"Controller {found.identity[0]}"
    if found.kind == VIRTUAL_DRIVES:
        return f"{name}, virtual drive {found.identity[1]}"
    if found.kind == PHYSICAL_DRIVES:
        return f"{name}, drive {found.identity[1]} {found.identity[2]}".rstrip()
    return name


def summary(before: Inventory, after: Inventory) -> list[str]:
    """A sentence for each important difference of the host, its block devices and its controllers.

    Older workers did not report controllers, so the first inventory with controllers does not count as a change.
    """
    found = differences(before, after)
    kinds = [(HOST,), ("block_devices",), _BEHIND_CONTROLLERS if before.controllers and after.controllers else ()]
    return [sentence for each in kinds for sentence in _sentences([one for one in found if one.kind in each])]


def _sentences(found: list[Difference]) -> Iterator[str]:
    """Added parts first, then removed, then changed ones; a reboot before other changes."""
    for each in sorted(found, key=lambda one: (one.change.value, one.fact != _BOOT)):
        if each.kind == HOST:
            yield from _host_sentence(each)
        elif each.kind == "block_devices":
            yield from _device_sentence(each)
        else:
            yield from _controller_sentence(each)


def _host_sentence(found: Difference) -> Iterator[str]:
    if found.fact == _BOOT:
        yield "The host was rebooted."
    elif found.fact in _HOST_FACTS:
        yield f"The {_HOST_FACTS[found.fact]} was {_from_to(found, 'not known')}."


def _device_sentence(found: Difference) -> Iterator[str]:
    assert isinstance(found.part, BlockDevice)
    device = found.part
    if found.change is not Change.CHANGED:
        yield f"{_device(device)} was {found.change.name.lower()}."
    elif found.fact == "name":
        yield f"{_device(msgspec.structs.replace(device, name=str(found.before)))} is now called {device.name}."
    elif found.fact in _DEVICE_FACTS:
        yield f"{device.name}: {_DEVICE_FACTS[found.fact]} was {_from_to(found, 'nothing')}."


def _controller_sentence(found: Difference) -> Iterator[str]:
    if found.change is not Change.CHANGED:
        yield f"{_behind_controller(found)} was {found.change.name.lower()}."
    elif found.fact not in _CONTROLLER_FACTS_LEFT_OUT:
        fact = found.fact.replace(".", " ").replace("_", " ")
        yield f"{_behind_controller(found)}: {fact} was {_from_to(found, 'not known')}."


def _from_to(found: Difference, empty: str) -> str:
    return f"{_written(found.before) or empty}, is {_written(found.after) or empty}"


def _device(device: BlockDevice) -> str:
    more = ", ".join(text for text in (device.model, device.serial and f"serial {device.serial}") if text)
    return f"{device.kind.capitalize()} {device.name}{f' ({more})' if more else ''}"


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, msgspec.Struct):
        return " ".join(filter(None, (_written(getattr(value, name)) for name in value.__struct_fields__)))
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return str(value)
