"""Subjects of settings: find the subject of a block device, and check that it is still the same."""

from pathlib import Path

from worker.inventory import sysfs
from worker.open_target import OpenTarget
from worker.settings.base import Setting, SettingScope, no_controller, refused

HOST = ""  # the subject of settings of the whole kernel
HOST_ID = "host"
# Settings of the host are written first and restored last: irqbalance must be off while interrupts are moved.
_ORDER = {SettingScope.HOST: 0, SettingScope.CONTROLLER: 1, SettingScope.DEVICE: 2}


def subject_of(setting: Setting, device: str, sys: Path = sysfs.SYS) -> str:
    """The subject of a setting for this block device. Raises SettingError."""
    if setting.scope is SettingScope.HOST:
        return HOST
    if not device:
        raise refused(f"{setting.name}: the target is not on a single block device.")
    if setting.scope is SettingScope.DEVICE:
        return device
    address = sysfs.controller(device, sys)
    if not address:
        raise no_controller(f"{setting.name}: {device} is not behind a PCI controller.")
    return address


def subjects_of(setting: Setting, open_target: OpenTarget, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Every subject of a requested setting: under a layout, most settings apply to each of its drives.

    Raises SettingError.
    """
    whole_layout = setting.scope is SettingScope.HOST or (setting.stacked and open_target.device)
    devices = (open_target.device,) if whole_layout or not open_target.members else open_target.members
    return tuple(dict.fromkeys(subject_of(setting, device, sys) for device in devices))


def identity(subject: str, sys: Path = sysfs.SYS) -> str:
    """A stable identity, because another device may get the name later; "" if the subject does not exist."""
    if subject == HOST:
        return HOST_ID
    if is_controller(subject):
        at = sys / "bus/pci/devices" / subject
        return f"pci-{subject}-{sysfs.text(at / 'vendor')}-{sysfs.text(at / 'device')}" if at.exists() else ""
    return sysfs.stable_id(subject, sys) if sysfs.exists(subject, sys) else ""


def find(stable_id: str, subject: str, sys: Path = sysfs.SYS) -> str | None:
    """The subject's current name, which a restart may change. None if the subject is absent."""
    if identity(subject, sys) == stable_id:
        return subject
    if is_controller(subject) or subject == HOST:
        return None
    return next((name for name in sysfs.names(sys) if sysfs.stable_id(name, sys) == stable_id), None)


def is_controller(subject: str) -> bool:
    return bool(sysfs.PCI_ADDRESS.match(subject))


def in_order(subject: str) -> tuple[int, str]:
    """The sort key for applying; restoring uses the reverse order."""
    scope = (
        SettingScope.HOST
        if subject == HOST
        else SettingScope.CONTROLLER
        if is_controller(subject)
        else SettingScope.DEVICE
    )
    return _ORDER[scope], subject
