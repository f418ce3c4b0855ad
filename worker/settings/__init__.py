"""The registry of settings: tunables that the worker can read, apply, verify and restore."""

from collections.abc import Mapping

from worker.policy import SettingNames
from worker.settings.base import Setting
from worker.settings.controller_policies import CONTROLLER_POLICIES
from worker.settings.cpu_files import CPU_ENERGY_PREFERENCE, CPU_GOVERNOR, DEEPEST_IDLE_STATE
from worker.settings.drive_cache import DRIVE_WRITE_CACHE
from worker.settings.interrupts import IRQ_AFFINITY
from worker.settings.irqbalance import IRQBALANCE
from worker.settings.md import STRIPE_CACHE_SIZE, SYNC_SPEED_MAX, SYNC_SPEED_MIN
from worker.settings.nvme import NVME_POWER_STATE, NVME_WRITE_CACHE
from worker.settings.queue_numbers import (
    ADD_RANDOM,
    IO_POLL,
    IOSTATS,
    MAX_SECTORS,
    NOMERGES,
    NR_REQUESTS,
    QUEUE_DEPTH,
    ROTATIONAL,
    RQ_AFFINITY,
    WRITE_CACHE,
)
from worker.settings.read_ahead import READ_AHEAD, READ_AHEAD_SECTORS
from worker.settings.scheduler import SCHEDULER
from worker.settings.scheduler_tunables import SCHEDULER_TUNABLES
from worker.settings.vm import TRANSPARENT_HUGEPAGE, VM_SETTINGS
from worker.settings.writeback_throttling import WRITEBACK_THROTTLING

_DEVICE: tuple[Setting, ...] = (
    SCHEDULER,
    READ_AHEAD,
    READ_AHEAD_SECTORS,
    NR_REQUESTS,
    RQ_AFFINITY,
    NOMERGES,
    WRITEBACK_THROTTLING,
    MAX_SECTORS,
    IO_POLL,
    ROTATIONAL,
    ADD_RANDOM,
    IOSTATS,
    WRITE_CACHE,
    QUEUE_DEPTH,
    DRIVE_WRITE_CACHE,
    *SCHEDULER_TUNABLES,
    STRIPE_CACHE_SIZE,
    SYNC_SPEED_MIN,
    SYNC_SPEED_MAX,
    *CONTROLLER_POLICIES,
)
_CONTROLLER: tuple[Setting, ...] = (IRQ_AFFINITY, NVME_WRITE_CACHE, NVME_POWER_STATE)
_HOST: tuple[Setting, ...] = (
    IRQBALANCE,
    CPU_GOVERNOR,
    CPU_ENERGY_PREFERENCE,
    DEEPEST_IDLE_STATE,
    *VM_SETTINGS,
    TRANSPARENT_HUGEPAGE,
)
REGISTRY: Mapping[str, Setting] = {setting.name: setting for setting in (*_DEVICE, *_CONTROLLER, *_HOST)}
# Settings by their key in the journal; of several settings with the same key, the first.
BY_KEY: Mapping[str, Setting] = {setting.key: setting for setting in reversed(tuple(REGISTRY.values()))}
SETTING_NAMES = SettingNames(
    host=tuple(setting.name for setting in _HOST),
    target=tuple(setting.name for setting in (*_DEVICE, *_CONTROLLER)),
    covered=tuple(setting.name for setting in (*_DEVICE, *_CONTROLLER) if not setting.by_name_only),
)
