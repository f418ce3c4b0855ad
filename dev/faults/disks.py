"""Small disks that can be filled up, and loop devices to be measured."""

import contextlib
import os
import subprocess
from pathlib import Path

from dev.console import ToolError
from dev.stack import processes

MIB = 1024 * 1024
BALLAST = "ballast"
BLOCK_BYTES = 256 * 1024
# Whatever the campaign looks at afterwards: all that the plan changes, and what changing it may disturb.
WATCHED = (
    "scheduler", "read_ahead_kb", "nr_requests", "nomerges", "rq_affinity", "max_sectors_kb", "wbt_lat_usec",
    "add_random", "iostats", "rotational", "write_cache",
)  # fmt: skip


class SmallDisk:
    """A mounted file system with little room."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, *, leave_bytes: int) -> None:
        """Take what is free, but for so much."""
        with contextlib.suppress(OSError), (self.folder / BALLAST).open("wb") as file:
            while self.free_bytes() > leave_bytes:
                file.write(b"\0" * min(BLOCK_BYTES, self.free_bytes() - leave_bytes))
                file.flush()
                os.fsync(file.fileno())

    def relieve(self) -> None:
        (self.folder / BALLAST).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        facts = os.statvfs(self.folder)
        return facts.f_bavail * facts.f_frsize


def memory_disk(folder: Path, size_bytes: int, *, owner: str = "", mode: str = "0700") -> SmallDisk:
    folder.mkdir(mode=0o700, exist_ok=True)
    options = f"size={size_bytes},mode={mode}" + (f",uid={owner},gid={owner}" if owner else "")
    processes.run(["mount", "-t", "tmpfs", "-o", options, "sweetspot-torture", str(folder)])
    return SmallDisk(folder)


def file_disk(folder: Path, image: Path, size_bytes: int) -> SmallDisk:
    """ext4 on a loop device: here O_DIRECT works on every kernel."""
    device = loop_device(image, size_bytes)
    processes.run(["mkfs.ext4", "-q", "-m", "0", device])
    folder.mkdir(mode=0o755, exist_ok=True)
    processes.run(["mount", device, str(folder)])
    return SmallDisk(folder)


def loop_device(image: Path, size_bytes: int) -> str:
    """A new loop device over a file that is really written."""
    with image.open("wb") as file:
        for _ in range(size_bytes // MIB):
            file.write(os.urandom(MIB))
    for options in (["--direct-io=on"], []):
        with contextlib.suppress(ToolError):
            return processes.run(["losetup", *options, "--find", "--show", str(image)]).strip()
    raise ToolError("No loop device can be had.")


def detach_all(root: Path) -> list[str]:
    """Give back every loop device over a file below `root`."""
    listed = subprocess.run(
        ["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"], capture_output=True, text=True, check=False
    )
    mine = [line.split()[0] for line in listed.stdout.splitlines() if f" {root}/" in line]
    for device in mine:
        subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)
    return mine


def queue_settings(device: str) -> dict[str, str]:
    """What sysfs says of the device now; the active one where it lists several in brackets."""
    folder = Path("/sys/block") / Path(device).name / "queue"
    found = {}
    for name in WATCHED:
        with contextlib.suppress(OSError):
            text = (folder / name).read_text().strip()
            found[name] = text.partition("[")[2].partition("]")[0] if "[" in text else text
    return found
