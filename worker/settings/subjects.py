"""Subjects of settings: which one lies behind a block device, and whether it is still the same."""

from pathlib import Path

from worker.inventory import sysfs
from worker.open_target import OpenTarget
from worker.settings.base import Setting, SettingScope, refused

HOST = ""  # the subject of settings of the whole kernel
HOST_ID = "host"
# The host's own come first and go back last: irqbalance must be off while interrupts are moved.
_ORDER = {SettingScope.HOST: 0, SettingScope.CONTROLLER: 1, SettingScope.DEVICE: 2}


def subject_of(setting: Setting, device: str, sys: Path = sysfs.SYS) -> str:
    """The subject of a setting for this block device. Raises SettingError."""
    if setting.scope is SettingScope.HOST:
        return HOST
    if not device:
        raise refused(f"{setting.name}: no single block device lies under the target.")
    if setting.scope is SettingScope.DEVICE:
        return device
    address = sysfs.controller(device, sys)
    if not address:
        raise refused(f"{setting.name}: no PCI controller lies under {device}.")
    return address


def subjects_of(setting: Setting, open_target: OpenTarget, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Every subject that a wish concerns: under a layout most settings are of each of its drives.

    Raises SettingError.
    """
    whole_layout = setting.scope is SettingScope.HOST or (setting.stacked and open_target.device)
    devices = (open_target.device,) if whole_layout or not open_target.members else open_target.members
    return tuple(dict.fromkeys(subject_of(setting, device, sys) for device in devices))


def identity(subject: str, sys: Path = sysfs.SYS) -> str:
    """A stable identity, because names may be given to other devices later; "" if there is no such subject."""
    if subject == HOST:
        return HOST_ID
    if is_controller(subject):
        at = sys / "bus/pci/devices" / subject
        return f"pci-{subject}-{sysfs.text(at / 'vendor')}-{sysfs.text(at / 'device')}" if at.exists() else ""
    return sysfs.stable_id(subject, sys) if sysfs.exists(subject, sys) else ""


def find(stable_id: str, subject: str, sys: Path = sysfs.SYS) -> str | None:
    """The subject's name now, because a restart may change it. None if it is absent."""
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
