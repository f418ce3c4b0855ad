"""Drives of known speed: loop devices over files, limited by the kernel's block throttle.

The limit holds for processes in the throttle's cgroup, so a worker that is to be measured
against it is started through `Throttle.command`. Works with cgroup v1 (blkio) and v2 (io.max).
"""

import os
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
    """A cgroup in which devices have limits, each way."""

    def __init__(self, name: str) -> None:
        self.version = 1 if V1.is_dir() else 2
        self.folder = (V1 if self.version == 1 else CGROUP) / name
        self._origin: Path | None = None  # the cgroup of this process before it joined
        if self.version == 2:
            (CGROUP / "cgroup.subtree_control").write_text("+io")
        self.folder.mkdir(exist_ok=True)

    def limit(
        self, device: str, *, iops: int = 0, bytes_per_s: int = 0, ways: Sequence[str] = ("read", "write")
    ) -> None:
        """Set both limits of these ways; 0 is no limit."""
        number = (Path("/sys/block") / Path(device).name / "dev").read_text().strip()
        for way in ways:
            if self.version == 2:
                limits = f"{way[0]}iops={iops or 'max'} {way[0]}bps={bytes_per_s or 'max'}"
                (self.folder / "io.max").write_text(f"{number} {limits}")
                continue
            (self.folder / f"blkio.throttle.{way}_iops_device").write_text(f"{number} {iops}")
            (self.folder / f"blkio.throttle.{way}_bps_device").write_text(f"{number} {bytes_per_s}")

    def join(self) -> None:
        """Put this process, and those that it starts from now on, inside the limits."""
        self._origin = self._own_cgroup()
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def leave(self) -> None:
        """Undo `join`."""
        if self._origin:
            (self._origin / "cgroup.procs").write_text(str(os.getpid()))
            self._origin = None

    def _own_cgroup(self) -> Path:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        wanted = "blkio" if self.version == 1 else ""
        path = next(path for _, controllers, path in lines if wanted in controllers.split(","))
        return (V1 if self.version == 1 else CGROUP) / path.lstrip("/")

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
