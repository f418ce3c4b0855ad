"""Everything about this host that a run must leave as it was: `python -m worker.tests.lab.snapshot` prints it.

The inventory, every setting of every drive and controller, and what lies on the drives. Not what a restart of the
host gives anew: its boot id, kernel names of drives, numbers of interrupts.
"""

import json
import re
import sys

import msgspec

from worker import inventory
from worker.contract.inventory import Inventory
from worker.layouts import steps
from worker.settings import REGISTRY
from worker.settings.base import HOST, SettingError, SettingScope, subject_of
from worker.tests.lab.drives import by_serial


def take() -> dict[str, str]:
    """Flat: what it is, and its value."""
    facts: dict[str, str] = {}
    _flatten("inventory", _lasting(inventory.take()), facts)
    for serial, device in sorted(by_serial().items()):
        content = steps.read_content(f"/dev/{device}")
        facts[f"content.{serial}"] = "blank" if content.blank else str(content)
        for name, setting in REGISTRY.items():
            if setting.scope is not SettingScope.HOST:
                facts[f"setting.{serial}.{name}"] = _read(name, device)
    facts |= {
        f"setting.host.{name}": _read(name, "") for name, each in REGISTRY.items() if each.scope is SettingScope.HOST
    }
    return facts


def _lasting(found: Inventory) -> object:
    names = {device.name: device.stable_id for device in found.block_devices}
    devices = [
        msgspec.structs.replace(each, name=each.stable_id, path="/", major_minor="") for each in found.block_devices
    ]
    systems = [
        msgspec.structs.replace(each, devices=tuple(names.get(name, name) for name in each.devices))
        for each in found.file_systems
    ]
    functions = [msgspec.structs.replace(each, interrupts=()) for each in found.pci]
    kernel = msgspec.structs.replace(found.kernel, boot_id="")
    return msgspec.to_builtins(
        msgspec.structs.replace(
            found,
            block_devices=tuple(sorted(devices, key=lambda device: device.name)),
            file_systems=tuple(systems),
            pci=tuple(functions),
            kernel=kernel,
            controllers=(),  # names the same drives by their kernel names
        )
    )


def _read(name: str, device: str) -> str:
    try:
        subject = subject_of(REGISTRY[name], device) if device else HOST
        return REGISTRY[name].fact(subject)
    except SettingError as error:
        return f"({_without(device, error.message)})"


def _without(device: str, words: str) -> str:
    return re.sub(rf"\b{re.escape(device)}\b", "it", words) if device else words


def _flatten(name: str, value: object, into: dict[str, str]) -> None:
    if isinstance(value, dict):
        for key, part in value.items():
            _flatten(f"{name}.{key}", part, into)
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        for place, part in enumerate(value):
            _flatten(f"{name}.{part.get('name') or part.get('address') or place}", part, into)
    else:
        into[name] = json.dumps(value)


if __name__ == "__main__":
    json.dump(take(), sys.stdout, indent=0, sort_keys=True)
