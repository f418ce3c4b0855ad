"""Faults of drives: another program opens the drive under test, with or without O_EXCL."""

import os
from collections.abc import Callable

from dev.faults.fault_schedule import ScheduledFault
from dev.faults.installation import Installation


def _opener(flags: int) -> Callable[[Installation, ScheduledFault], None]:
    def open_drive(installation: Installation, fault: ScheduledFault) -> None:
        try:
            fd = os.open(installation.host(fault).device, os.O_RDWR | flags)
        except OSError:  # the worker holds it exclusively
            return
        try:
            installation.pause(fault.duration_s)
        finally:
            os.close(fd)

    return open_drive


FAULTS: dict[str, Callable[[Installation, ScheduledFault], None]] = {
    "open drive": _opener(0),  # as QEMU does
    "hold drive": _opener(os.O_EXCL),  # as LVM does
}
