"""Tunables that the worker can read, apply, verify and put back. An order names one; the worker knows how."""

from collections.abc import Mapping

from worker.settings.base import Setting
from worker.settings.queue_numbers import MAX_SECTORS, NOMERGES, NR_REQUESTS, READ_AHEAD, RQ_AFFINITY
from worker.settings.scheduler import SCHEDULER
from worker.settings.writeback_throttling import WRITEBACK_THROTTLING

_ALL: tuple[Setting, ...] = (
    SCHEDULER,
    READ_AHEAD,
    NR_REQUESTS,
    RQ_AFFINITY,
    NOMERGES,
    WRITEBACK_THROTTLING,
    MAX_SECTORS,
)
REGISTRY: Mapping[str, Setting] = {setting.name: setting for setting in _ALL}
