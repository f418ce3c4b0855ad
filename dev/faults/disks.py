"""Small disks that can be filled, and the queue settings of drives."""

import contextlib
import os
from pathlib import Path

from dev.stack import loop_device, processes

FILLER = "filler"
BLOCK_BYTES = 256 * 1024
# The settings that the plan changes, and others that such a change may affect.
CHECKED_SETTINGS = (
    "scheduler", "read_ahead_kb", "nr_requests", "nomerges", "rq_affinity", "max_sectors_kb", "wbt_lat_usec",
    "add_random", "iostats", "rotational", "write_cache",
)  # fmt: skip


class SmallDisk:
    """A small mounted file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, *, leave_bytes: int) -> None:
        with contextlib.suppress(OSError), (self.folder / FILLER).open("wb") as file:
            while self._free_bytes() > leave_bytes:
                file.write(b"\0" * min(BLOCK_BYTES, self._free_bytes() - leave_bytes))
                file.flush()
                os.fsync(file.fileno())

    def free(self) -> None:
        (self.folder / FILLER).unlink(missing_ok=True)

    def _free_bytes(self) -> int:
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize


def memory_disk(folder: Path, size_bytes: int, *, owner: str = "") -> SmallDisk:
    folder.mkdir(mode=0o700, exist_ok=True)
    options = f"size={size_bytes},mode=0700" + (f",uid={owner},gid={owner}" if owner else "")
    processes.run(["mount", "-t", "tmpfs", "-o", options, "sweetspot-faults", str(folder)])
    return SmallDisk(folder)


def file_disk(folder: Path, image: Path, size_bytes: int) -> SmallDisk:
    """ext4 on a loop device: it supports O_DIRECT on every kernel."""
    device = loop_device.attach(image, size_bytes, direct_io=False)
    processes.run(["mkfs.ext4", "-q", "-m", "0", device])
    folder.mkdir(mode=0o755, exist_ok=True)
    processes.run(["mount", device, str(folder)])
    return SmallDisk(folder)


def queue_settings(device: str) -> dict[str, str]:
    """The device's settings in sysfs; the active value if sysfs lists several with brackets."""
    folder = Path("/sys/block") / Path(device).name / "queue"
    found = {}
    for name in CHECKED_SETTINGS:
        with contextlib.suppress(OSError):
            text = (folder / name).read_text().strip()
            found[name] = text.partition("[")[2].partition("]")[0] if "[" in text else text
    return found
