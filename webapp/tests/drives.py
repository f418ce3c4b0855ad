"""Drives of known speed: loop devices over files, limited by the kernel's block throttle.

The limit holds for processes in the throttle's cgroup, so a worker that is to be measured
against it is started through `Throttle.command`. Works with cgroup v1 (blkio) and v2 (io.max).
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
V1 = CGROUP / "blkio"
MIB = 1024 * 1024


@contextmanager
def loop_device(folder: Path, name: str, *, size_bytes: int = 256 * MIB) -> Iterator[str]:
    """The path of a loop device over a new, written-out file in `folder`."""
    image = folder / f"{name}.img"
    subprocess.run(["fallocate", "-l", str(size_bytes), str(image)], check=True)
    found = subprocess.run(
        ["losetup", "--direct-io=on", "--find", "--show", str(image)], check=True, capture_output=True, text=True
    )
    device = found.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink()


class Throttle:
    """A cgroup in which devices have limits in IOPS, each way."""

    def __init__(self, name: str) -> None:
        self.version = 1 if V1.is_dir() else 2
        self.folder = (V1 if self.version == 1 else CGROUP) / name
        self.folder.mkdir()
        if self.version == 2:
            (CGROUP / "cgroup.subtree_control").write_text("+io")

    def limit(self, device: str, *, iops: int) -> None:
        number = (Path("/sys/block") / Path(device).name / "dev").read_text().strip()
        if self.version == 2:
            (self.folder / "io.max").write_text(f"{number} riops={iops} wiops={iops}")
            return
        for way in ("read", "write"):
            (self.folder / f"blkio.throttle.{way}_iops_device").write_text(f"{number} {iops}")

    def command(self, command: Sequence[str]) -> list[str]:
        """The same command, run inside the limits."""
        return ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(self.folder), *command]

    def remove(self) -> None:
        self.folder.rmdir()


@contextmanager
def throttle(name: str) -> Iterator[Throttle]:
    group = Throttle(name)
    try:
        yield group
    finally:
        group.remove()
