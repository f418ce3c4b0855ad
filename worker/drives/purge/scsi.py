"""SCSI FORMAT UNIT, through sg_format of sg3_utils (SBC-4, 5.3; sg_format(8)). Takes hours on hard disks."""

import re

from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.drives.purge.base import PurgeRun, Sent, to_the_end
from worker.guard.lease import Lease
from worker.kernel import sysfs
from worker.process.run import ToolError, ask

LIMIT_S = 72 * 3600.0
_PROGRESS = re.compile(r"([0-9]+(?:\.[0-9]+)?)% done")


def offers(name: str) -> tuple[PurgeOffer, ...]:
    """Only for real SCSI drives: virtual drives of a RAID controller do not support it."""
    if sysfs.transport(name) != "sas" or sysfs.kind(name) != "disk":
        return ()
    try:
        ask("sg_format", "--version")
    except ToolError as error:
        return (PurgeOffer(method=PurgeMethod.SCSI_FORMAT, problem=str(error)),)
    return (PurgeOffer(method=PurgeMethod.SCSI_FORMAT),)


def send(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:  # noqa: ARG001 - one method
    command = ("sg_format", "--format", "--quick", drive.path)

    def tick(so_far: str) -> None:
        run.progress(read_percent(so_far), None)

    printed = to_the_end(drive, run, *command, tick=tick, limit_s=LIMIT_S)
    return Sent((" ".join(command),), printed)


def read_percent(printed: str) -> float | None:
    """Percent in the last line `Format unit in progress, 12.34% done`."""
    percents = _PROGRESS.findall(printed)
    return float(percents[-1]) if percents else None


def promises_zeros(name: str, method: PurgeMethod) -> bool | None:  # noqa: ARG001 - the pattern is the maker's
    return None
