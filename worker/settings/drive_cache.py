"""The write cache inside a SCSI or SATA drive; the kernel sends MODE SELECT (scsi_disk's cache_type)."""

from pathlib import Path

from worker.kernel import sysfs
from worker.settings.base import QueueFile, refused


class DriveWriteCache(QueueFile):
    """Drives may keep this setting over a power cycle, so it is also restored after a restart."""

    survives_reboot = True

    def path(self, subject: str) -> Path:
        disk = sysfs.node(sysfs.whole(subject, self._sys), self._sys)
        found = next((disk / "device/scsi_disk").glob("*:*:*:*/cache_type"), None)
        if found is None:
            raise refused(self.missing(subject))
        return found

    def missing(self, subject: str) -> str:
        return f"{subject} is not a SCSI or SATA drive whose write cache the kernel can switch."


DRIVE_WRITE_CACHE = DriveWriteCache(
    "drive_write_cache",
    "the write cache inside a SCSI or SATA drive",
    choices=("write back", "write through"),
    by_name_only=True,
)
