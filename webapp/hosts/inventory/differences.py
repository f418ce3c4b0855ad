"""Compares two inventories of a host.

The comparison knows no fact by name, so it also covers facts of newer workers. The parts of an inventory are the host
and the items of its lists; an item is recognised by facts that stay the same when kernel names change.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from worker.contract.controllers import Controller
from worker.contract.inventory import Inventory

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
    "file_systems": lambda found: (found.kind, found.devices),
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
    return [found for key in keys for found in _of_part(key, old.get(key), new.get(key))]


def controller_name(controller: Controller) -> str:
    return controller.address or controller.model


def _parts(inventory: Inventory) -> dict[_Key, Struct]:
    """Parts with the same identity are distinguished by their order."""
    found: dict[_Key, Struct] = {}
    alike: Counter[tuple[object, ...]] = Counter()
    for kind, identity, part in _listed(inventory):
        found[kind, identity, alike[kind, identity]] = part
        alike[kind, identity] += 1
    return found


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
            if old.get(fact) != new.get(fact) and not _is_same_memory(fact, old.get(fact), new.get(fact)):
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


def _is_same_memory(fact: str, before: object, after: object) -> bool:
    """Whether two sizes of a host's or NUMA node's memory are within MEMORY_TOLERANCE of the larger one."""
    if fact != "memory_bytes" or not isinstance(before, int) or not isinstance(after, int):
        return False
    return abs(before - after) <= MEMORY_TOLERANCE * max(before, after)
