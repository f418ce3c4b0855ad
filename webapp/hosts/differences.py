"""Everything that differs between two looks at a host, fact by fact: what `changes` says in short, in full.

It knows no fact by name, so that nothing of a newer inventory is left out. Things that come in lists are known again
by what stays theirs: a device by its stable id and serial, not by a kernel name that may move.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from worker.contract.inventory import Inventory

Facts = Mapping[str, object]
# The lists of an inventory: what tells one thing in them from another, and how it is called.
_KINDS: Mapping[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "block_devices": (("stable_id", "serial"), "Block device", ("name", "model", "serial")),
    "pci": (("address",), "PCI function", ("address", "model")),
    "numa_nodes": (("number",), "NUMA node", ("number",)),
    "memory_modules": (("slot", "bank"), "Memory module", ("slot",)),
    "file_systems": (("kind", "devices"), "File system", ("kind", "points")),
}


@dataclass(frozen=True)
class FactChange:
    """`where` is the host or a thing in it; "" in `before` or `after`: it was not there, or was not known."""

    where: str
    what: str
    before: str
    after: str


def fact_changes(before: Inventory, after: Inventory) -> list[FactChange]:
    """The host's own facts first, then things that came, went or changed."""
    old, new = _plain(before), _plain(after)
    own = [name for name in new if name not in _KINDS]
    found = list(_differing("Host", {n: old.get(n) for n in own}, {n: new.get(n) for n in own}))
    for name in _KINDS:
        found += _of_things(name, old.get(name), new.get(name))
    return found


def _plain(inventory: Inventory) -> Facts:
    plain: Facts = msgspec.to_builtins(inventory)
    return plain


def _of_things(name: str, before: object, after: object) -> Iterator[FactChange]:
    keys = _KINDS[name][0]
    old, new = _by_key(before, keys), _by_key(after, keys)
    for key in (*old, *(key for key in new if key not in old)):
        if key not in new:
            yield FactChange(_called(name, old[key]), "", "there", "gone")
        elif key not in old:
            yield FactChange(_called(name, new[key]), "", "not there", "there")
        else:
            yield from _differing(_called(name, new[key]), old[key], new[key])


def _by_key(things: object, keys: tuple[str, ...]) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    for thing in things if isinstance(things, list | tuple) else ():
        key = repr([thing.get(name) for name in keys])
        found[f"{key} {sum(known.startswith(key) for known in found)}"] = thing  # alike: told apart by their order
    return found


def _called(name: str, thing: Facts) -> str:
    _, kind, names = _KINDS[name]
    first, *more = [_written(thing.get(one)) for one in names]
    said = ", ".join(text for text in more if text)
    return f"{kind} {first}{f' ({said})' if said else ''}"


def _differing(where: str, before: Facts, after: Facts, above: str = "") -> Iterator[FactChange]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        path = f"{above}{name}"
        if isinstance(old, dict) or isinstance(new, dict):
            yield from _differing(where, old or {}, new or {}, f"{path}.")  # type: ignore[arg-type]
        else:
            yield FactChange(where, _label(path), _written(old), _written(new))


def _label(path: str) -> str:
    """`kernel.boot_id` -> kernel, boot id."""
    return path.replace(".", ", ").replace("_", " ")


def _written(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return " ".join(text for text in map(_written, value.values()) if text)
    if isinstance(value, list | tuple):
        return ", ".join(map(_written, value))
    return str(value)
