"""The lab's drives, and a policy that allows them to be destroyed."""

from collections.abc import Mapping
from pathlib import Path

from worker import policy
from worker.guard.tests import rig
from worker.kernel import sysfs
from worker.settings import REGISTRY
from worker.settings.base import SettingScope

RAID = ("LABINT0000", "LABINT0001", "LABSAM0002", "LABSAM0003")  # behind the MegaRAID controller, by bay


def by_serial() -> dict[str, str]:
    """Kernel names of the whole drives; empty on any other host."""
    found = {sysfs.serial(name): name for name in sysfs.names() if not sysfs.is_partition(name)}
    return {serial: name for serial, name in found.items() if serial.startswith("LAB") and serial != "LABROOT"}


def allow(directory: Path, *serials: str, **others: Mapping[str, object]) -> policy.Policy:
    """A policy with each of the drives under its serial as id, and further entries."""
    names = by_serial()
    settings = [name for name, setting in REGISTRY.items() if setting.scope is not SettingScope.HOST]
    drives = [
        {
            "id": serial,
            "kind": "block",
            "path": f"/dev/{names[serial]}",
            "stable_id": sysfs.stable_id(names[serial]),
            "serial": serial,
            "destroy": True,
            "settings": settings,
        }
        for serial in serials
    ]
    return rig.load(directory, *drives, *({"id": name, **entry} for name, entry in others.items()))
