"""One drive purged, from the guard to what is known of it afterwards: as an order of its own, or before a trial."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from worker import guard, policy
from worker.contract.items import Finished, Item, Outcome, Phase
from worker.contract.orders import PurgeOrder
from worker.contract.purge import PurgeMethod
from worker.contract.workload import TargetRef
from worker.control import Control
from worker.drives import purge
from worker.drives.records import Drives
from worker.orders.outcomes import finished
from worker.settings import SETTING_NAMES

log = logging.getLogger(__name__)

SAYS_EVERY_S = 1.0


def purge_target(
    target: TargetRef, method: PurgeMethod, allowed: policy.Policy, armed: tuple[str, ...], *,
    drives: Drives, emit: Callable[[Item], None], control: Control,
) -> None:  # fmt: skip
    """Raises GuardRefused or PurgeFailed; the drive's state is unknown then."""
    with guard.hold_drive(target, allowed, armed) as drive:
        drives.begin_writing(drive.name)
        log.warning("Purging %s (%s) by %s.", drive.path, target.serial, method)
        emit(purge.purge(drive, method, _sayer(emit), control.stopped.is_set))
    drives.purged(drive.name)


def _sayer(emit: Callable[[Item], None]) -> purge.Say:
    said_at = -SAYS_EVERY_S

    def say(words: str, percent: float | None) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= SAYS_EVERY_S:
            said_at = time.monotonic()
            emit(Phase(at=time.time(), name="purge", detail=words, percent=percent))

    return say


def carry_out(
    order: PurgeOrder, *, drives: Drives, policy_path: Path, emit: Callable[[Item], None], control: Control,
    now: Callable[[], float],
) -> Finished:  # fmt: skip
    """Never raises for what can be expected to go wrong. `now` is Unix time by the server's clock."""
    try:
        armed = guard.serials_in_time(order.arming, now=now(), destroys=True)
        allowed = policy.load(policy_path, SETTING_NAMES)
        emit(Phase(at=time.time(), name="guard"))
        purge_target(order.target, order.method, allowed, armed, drives=drives, emit=emit, control=control)
    except (guard.GuardRefused, policy.PolicyError, purge.PurgeFailed) as error:
        reason = control.reason
        if reason is not None:
            return finished(reason.outcome, reason.code, f"{reason.message} {error}")
        return finished(Outcome.FAILED, error.code, str(error))
    return finished(Outcome.DONE)
