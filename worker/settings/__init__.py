"""The registry of settings: tunables that the worker can read, apply, verify and restore."""

from collections.abc import Iterable, Iterator, Mapping

from worker.contract.base import MAX_TEXT
from worker.kernel.sysfs import QUEUE_FACTS
from worker.policy import SettingNames
from worker.settings.base import HOST, Setting, SettingError, SettingScope, subject_of
from worker.settings.controller_policies import CONTROLLER_POLICIES, DRIVES
from worker.settings.devices import DEVICE_SETTINGS, NVME_POWER_STATE, NVME_WRITE_CACHE
from worker.settings.memory import MEMORY_SETTINGS
from worker.settings.processors import CPU_ENERGY_PREFERENCE, CPU_GOVERNOR, DEEPEST_IDLE_STATE, IRQ_AFFINITY, IRQBALANCE

_DEVICE: tuple[Setting, ...] = (*DEVICE_SETTINGS, *CONTROLLER_POLICIES)
_CONTROLLER: tuple[Setting, ...] = (IRQ_AFFINITY, NVME_WRITE_CACHE, NVME_POWER_STATE)
_HOST: tuple[Setting, ...] = (IRQBALANCE, CPU_GOVERNOR, CPU_ENERGY_PREFERENCE, DEEPEST_IDLE_STATE, *MEMORY_SETTINGS)
REGISTRY: Mapping[str, Setting] = {setting.name: setting for setting in (*_DEVICE, *_CONTROLLER, *_HOST)}
# Settings by their key in the journal; of several settings with the same key, the first.
BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in reversed(tuple(REGISTRY.values()))}
SETTING_NAMES = SettingNames(
    host=tuple(setting.name for setting in _HOST),
    target=tuple(setting.name for setting in (*_DEVICE, *_CONTROLLER)),
    covered=tuple(setting.name for setting in (*_DEVICE, *_CONTROLLER) if not setting.by_name_only),
)


# Facts of the configuration: all settings that the host has, also those that the plan does not change.

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
    values = {"level": drive.level, "strip_bytes": drive.strip_bytes, "drives": len(drive.drives), "state": drive.state}
    for key, value in values.items():
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
