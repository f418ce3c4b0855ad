"""Purge one drive under the guard, and record its new state."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from worker import guard
from worker.contract.items import Phase, PhaseName, Purged
from worker.contract.purge import PurgeMethod
from worker.contract.workload import TargetRef
from worker.drives.purge import Progress, PurgeRun, purge
from worker.drives.records import Drives
from worker.journal import Journal
from worker.policy import Policy

log = logging.getLogger(__name__)

PROGRESS_EVERY_S = 1.0


def purge_target(
    target: TargetRef, method: PurgeMethod, allowed: Policy, armed: tuple[str, ...], *,
    drives: Drives, journal: Journal, state: Path, emit: Callable[[Phase | Purged], None], stopped: threading.Event,
) -> None:  # fmt: skip
    """Raises GuardRefused or PurgeFailed; the drive's state is then unknown."""
    with guard.lease_drive(target, allowed, armed, method) as drive:
        guard.refuse_quarantined([drive.stable_id], state)
        drives.begin_writing(drive.name)
        log.warning("Purging %s (%s) by %s.", drive.path, target.serial, method)
        run = PurgeRun(journal, state, _progress(target, method, emit), stopped.is_set)
        emit(purge(drive, method, run))
    drives.purged(drive.name)


def _progress(target: TargetRef, method: PurgeMethod, emit: Callable[[Phase | Purged], None]) -> Progress:
    emitted_at = -PROGRESS_EVERY_S
    phase = Phase(at=0.0, name=PhaseName.PURGE, target=target.path, method=method)

    def progress(percent: float | None, expected_s: float | None) -> None:
        nonlocal emitted_at
        if time.monotonic() - emitted_at >= PROGRESS_EVERY_S:
            emitted_at = time.monotonic()
            emit(msgspec.structs.replace(phase, at=time.time(), percent=percent, expected_s=expected_s))

    return progress
