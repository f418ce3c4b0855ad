"""Facts of the configuration: all settings that the host has, also those that the plan does not change."""

from collections.abc import Iterable, Iterator

from worker.contract.base import MAX_TEXT
from worker.inventory import QUEUE_FACTS
from worker.settings import REGISTRY
from worker.settings.base import HOST, Setting, SettingError, SettingScope, subject_of
from worker.settings.controller_policies import DRIVES

_TOLD_ALREADY = {*QUEUE_FACTS, "scheduler", "read_ahead_sectors"}


def settings_facts(devices: Iterable[str]) -> dict[str, str]:
    """`host.vm.dirty_ratio`, `device.sda.queue_depth`; settings of a controller appear under the device behind it."""
    names = sorted(devices)
    return dict(_facts(names)) | {key: words for name in names for key, words in _virtual_drive(name)}


def _facts(devices: list[str]) -> Iterator[tuple[str, str]]:
    for setting in REGISTRY.values():
        if setting.scope is SettingScope.HOST:
            yield from _fact("host", setting, "")
        elif setting.name not in _TOLD_ALREADY:
            for device in devices:
                yield from _fact(f"device.{device}", setting, device)


def _virtual_drive(device: str) -> Iterator[tuple[str, str]]:
    """Facts about a RAID controller's virtual drive."""
    try:
        drive = DRIVES.read(device)
    except SettingError:
        return
    told = {"level": drive.level, "strip_bytes": drive.strip_bytes, "drives": len(drive.drives), "state": drive.state}
    for key, value in told.items():
        if value:
            yield f"device.{device}.controller.{key}", str(value)


def _fact(prefix: str, setting: Setting, device: str) -> Iterator[tuple[str, str]]:
    """Nothing for a setting that is missing or changes by itself."""
    try:
        subject = HOST if setting.scope is SettingScope.HOST else subject_of(setting, device)
        words = setting.fact(subject)
    except SettingError:
        return
    if words:
        yield f"{prefix}.{setting.name}", words[:MAX_TEXT]
