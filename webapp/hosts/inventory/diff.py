"""Compares two inventories of a host: a summary for its history, and a table of all facts."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec
from msgspec import Struct

from worker.contract.inventory import BlockDevice, Controller, Inventory

# Compares two inventories of a host.
#
# The comparison knows no fact by name, so it also covers facts of newer workers. The parts of an inventory are the
# host and the items of its lists; an item is recognised by facts that stay the same when kernel names change.

HOST = "host"
# A balloon driver and the kernel's own reservations change the size of the memory that the kernel sees. Adding or
# removing one of eight modules changes it by 12 %, and modules are compared on their own.
MEMORY_TOLERANCE = 0.1
VIRTUAL_DRIVES = "virtual_drives"
PHYSICAL_DRIVES = "physical_drives"
# list of an inventory -> facts that identify its items
_IDENTITIES: Mapping[str, Callable[[Any], tuple[object, ...]]] = {
    "block_devices": lambda device: (device.stable_id, device.serial),
    "pci": lambda function: (function.address,),
    "numa_nodes": lambda node: (node.number,),
    "memory_modules": lambda module: (module.slot, module.bank),
    "file_systems": lambda file_system: (file_system.kind, file_system.devices),
    "controllers": lambda controller: (controller_name(controller),),
}
KINDS = (HOST, *_IDENTITIES, VIRTUAL_DRIVES, PHYSICAL_DRIVES)
_Key = tuple[str, tuple[object, ...], int]


class Change(Enum):
    ADDED = auto()
    REMOVED = auto()
    CHANGED = auto()


@dataclass(frozen=True)
class Difference:
    """`part` is the newer state, or the old one of a removed part. `fact` is a path such as kernel.release."""

    change: Change
    kind: str  # of the part, one of KINDS
    identity: tuple[object, ...]
    part: Struct
    fact: str = ""  # only if CHANGED, as `before` and `after`
    before: object = None
    after: object = None


def differences(before: Inventory, after: Inventory) -> list[Difference]:
    """Differences in the order of KINDS; within a kind changed and removed parts first, then added ones."""
    old, new = _parts(before), _parts(after)
    keys = sorted(dict.fromkeys((*old, *new)), key=lambda key: KINDS.index(key[0]))
    return [difference for key in keys for difference in _of_part(key, old.get(key), new.get(key))]


def controller_name(controller: Controller) -> str:
    return controller.address or controller.model


def _parts(inventory: Inventory) -> dict[_Key, Struct]:
    """Parts with the same identity are distinguished by their order."""
    parts: dict[_Key, Struct] = {}
    alike: Counter[tuple[object, ...]] = Counter()
    for kind, identity, part in _listed(inventory):
        parts[kind, identity, alike[kind, identity]] = part
        alike[kind, identity] += 1
    return parts


def _listed(inventory: Inventory) -> Iterator[tuple[str, tuple[object, ...], Struct]]:
    yield HOST, (), inventory
    for kind, identity in _IDENTITIES.items():
        for part in getattr(inventory, kind):
            yield kind, identity(part), part
    for controller in inventory.controllers:
        name = controller_name(controller)
        for virtual in controller.virtual_drives:
            yield VIRTUAL_DRIVES, (name, virtual.number), virtual
        for physical in controller.physical_drives:
            yield PHYSICAL_DRIVES, (name, physical.slot, physical.serial), physical


def _of_part(key: _Key, before: Struct | None, after: Struct | None) -> Iterator[Difference]:
    kind, identity, _ = key
    if before is None and after is not None:
        yield Difference(Change.ADDED, kind, identity, after)
    elif after is None and before is not None:
        yield Difference(Change.REMOVED, kind, identity, before)
    elif after is not None:
        old, new = _facts(before), _facts(after)
        for fact in dict.fromkeys((*old, *new)):
            if old.get(fact) != new.get(fact) and not _is_same_memory(kind, fact, old.get(fact), new.get(fact)):
                yield Difference(Change.CHANGED, kind, identity, after, fact, old.get(fact), new.get(fact))


def _facts(value: object, path: str = "") -> dict[str, object]:
    """Path -> value, without the lists whose items are separate parts."""
    if isinstance(value, Struct):
        named = {name: getattr(value, name) for name in value.__struct_fields__ if name not in KINDS}
    elif isinstance(value, dict):
        named = value
    else:
        return {path: value}
    above = f"{path}." if path else ""
    return {path: fact for name, each in named.items() for path, fact in _facts(each, f"{above}{name}").items()}


def _is_same_memory(kind: str, fact: str, before: object, after: object) -> bool:
    """Whether two sizes of a host's memory are within MEMORY_TOLERANCE of the larger one. Those of its NUMA nodes are
    the same: a virtual machine moves memory between them, and the host's total says what was added."""
    if fact != "memory_bytes" or not isinstance(before, int) or not isinstance(after, int):
        return False
    if kind == "numa_nodes":
        return True
    return abs(before - after) <= MEMORY_TOLERANCE * max(before, after)


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
# Facts of a block device whose empty value means none. Of other facts it means unknown.
_MAY_BE_NONE = frozenset({"parents", "signature", "holders"})
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


def _row(difference: Difference) -> TableRow:
    where = _part(difference)
    if difference.change is Change.ADDED:
        return TableRow(where, "", "", "added")
    if difference.change is Change.REMOVED:
        return TableRow(where, "", "", "removed")
    what = difference.fact.replace(".", ", ").replace("_", " ")
    return TableRow(where, what, _written(difference.before), _written(difference.after))


def _part(difference: Difference) -> str:
    if difference.kind == HOST:
        return "Host"
    if difference.kind in _BEHIND_CONTROLLERS:
        return _behind_controller(difference)
    kind, facts = _NAMES[difference.kind]
    first, *others = [_written(getattr(difference.part, fact)) for fact in facts]
    more = ", ".join(filter(None, others))
    return f"{kind} {first}{f' ({more})' if more else ''}"


def _behind_controller(difference: Difference) -> str:
    name = f"Controller {difference.identity[0]}"
    if difference.kind == VIRTUAL_DRIVES:
        return f"{name}, virtual drive {difference.identity[1]}"
    if difference.kind == PHYSICAL_DRIVES:
        return f"{name}, drive {difference.identity[1]} {difference.identity[2]}".rstrip()
    return name


def summary(before: Inventory, after: Inventory, targets: Collection[str] = ()) -> list[str]:
    """A sentence for each important difference of the host, its block devices and its controllers. A loop device that
    comes or goes is no hardware, unless its path is one of `targets`.

    A value that was unknown before is no change, because a newer worker reports more. Nor is the first inventory with
    controllers, which older workers did not report.
    """
    everything = differences(before, after)
    important = (difference for difference in everything if not _is_loop(difference, targets))
    all_differences = [difference for difference in important if not _became_known(difference)]
    if any(map(_became_known, everything)) and not all_differences:
        return ["The worker reports more details."]
    kinds = [(HOST,), ("block_devices",), _BEHIND_CONTROLLERS if before.controllers and after.controllers else ()]
    return [
        sentence
        for kinds_in_order in kinds
        for sentence in _sentences([difference for difference in all_differences if difference.kind in kinds_in_order])
    ]


def _is_loop(difference: Difference, targets: Collection[str]) -> bool:
    part = difference.part
    is_change = difference.change is Change.CHANGED
    return isinstance(part, BlockDevice) and not is_change and part.kind == "loop" and part.path not in targets


def _became_known(difference: Difference) -> bool:
    return (
        difference.change is Change.CHANGED
        and not _written(difference.before)
        and not (difference.kind == "block_devices" and difference.fact in _MAY_BE_NONE)
    )


def _sentences(differences_of_kind: list[Difference]) -> Iterator[str]:
    """Added parts first, then removed, then changed ones; a reboot before other changes."""
    for difference in sorted(
        differences_of_kind, key=lambda difference: (difference.change.value, difference.fact != _BOOT)
    ):
        if difference.kind == HOST:
            yield from _host_sentence(difference)
        elif difference.kind == "block_devices":
            yield from _device_sentence(difference)
        else:
            yield from _controller_sentence(difference)


def _host_sentence(difference: Difference) -> Iterator[str]:
    if difference.fact == _BOOT:
        yield "The host was rebooted."
    elif difference.fact in _HOST_FACTS:
        yield f"The {_HOST_FACTS[difference.fact]} was {_from_to(difference, 'not known')}."


def _device_sentence(difference: Difference) -> Iterator[str]:
    assert isinstance(difference.part, BlockDevice)
    device = difference.part
    if difference.change is not Change.CHANGED:
        yield f"{_device(device)} was {difference.change.name.lower()}."
    elif difference.fact == "name":
        yield f"{_device(msgspec.structs.replace(device, name=str(difference.before)))} is now called {device.name}."
    elif difference.fact in _DEVICE_FACTS:
        yield f"{device.name}: {_DEVICE_FACTS[difference.fact]} was {_from_to(difference, 'nothing')}."


def _controller_sentence(difference: Difference) -> Iterator[str]:
    if difference.change is not Change.CHANGED:
        yield f"{_behind_controller(difference)} was {difference.change.name.lower()}."
    elif difference.fact not in _CONTROLLER_FACTS_LEFT_OUT:
        fact = difference.fact.replace(".", " ").replace("_", " ")
        yield f"{_behind_controller(difference)}: {fact} was {_from_to(difference, 'not known')}."


def _from_to(difference: Difference, empty: str) -> str:
    return f"{_written(difference.before) or empty}, is {_written(difference.after) or empty}"


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
