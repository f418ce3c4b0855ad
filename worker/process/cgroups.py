"""Cgroups for child programs, below the worker's own cgroup, so that its limits apply to them.

The worker uses v2 (also as the "unified" mount next to v1) if it can create a child cgroup and
kill it with `cgroup.kill` (kernel 5.14); else the v1 freezer: freeze all members, kill them, thaw.
"""

import contextlib
import os
import time
from pathlib import Path

import msgspec

from worker.process import supervisor

KILL_LIMIT_S = 5.0
PREFIX = "sweetspot."


class Cgroup(msgspec.Struct, frozen=True):
    """One cgroup directory created by the worker."""

    path: Path
    kind: str  # cgroup2 | cgroup1

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    @property
    def kill_file(self) -> Path | None:
        return self.path / "cgroup.kill" if self.kind == "cgroup2" else None

    def kill(self) -> bool:
        """Kill all processes; True if none was left within the time limit."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self.members():
            self._kill_once()
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.002)
        return True

    def remove(self) -> None:
        """Remove the directory. The kernel refuses briefly while the last process exits, so this is repeated."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self.path.is_dir():
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            if time.monotonic() > give_up_at:
                return
            time.sleep(0.001)

    def members(self) -> list[int]:
        return supervisor.members(str(self.procs))

    def _kill_once(self) -> None:
        with contextlib.suppress(OSError):
            if self.kill_file:
                self.kill_file.write_text("1")
                return
            self._freeze("FROZEN")
            for pid in self.members():
                supervisor.kill(pid)
            self._freeze("THAWED")

    def _freeze(self, state: str) -> None:
        (self.path / "freezer.state").write_text(state)


def create(name: str) -> Cgroup | None:
    """Create a cgroup below the worker's own; None if that is impossible."""
    for kind, parent in own_cgroups():
        path = parent / f"{PREFIX}{name}"
        try:
            path.mkdir()
        except OSError:
            continue
        cgroup = Cgroup(path, kind)
        if _usable(parent, cgroup):
            return cgroup
        cgroup.remove()
    return None


def _usable(parent: Path, cgroup: Cgroup) -> bool:
    """Moving a process also requires write permission on cgroup.procs of the common ancestor."""
    needed = [parent / "cgroup.procs", cgroup.procs]
    needed.append(cgroup.kill_file or cgroup.path / "freezer.state")
    return all(os.access(file, os.W_OK) for file in needed)


def own_cgroups() -> list[tuple[str, Path]]:
    """Directories of this process's cgroups: v2 first, then the v1 freezer."""
    mounts = _mounts()
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        kind = "cgroup2" if number == "0" and not controllers else "cgroup1" if controllers == "freezer" else ""
        if kind in mounts:
            root, point = mounts[kind]
            inside = path.removeprefix(root) if root != "/" else path
            found[kind] = point / inside.lstrip("/")
    return [(kind, found[kind]) for kind in ("cgroup2", "cgroup1") if kind in found and found[kind].is_dir()]


def _mounts() -> dict[str, tuple[str, Path]]:
    """kind -> (mounted part of the hierarchy, mount point); see proc_pid_mountinfo(5)."""
    found: dict[str, tuple[str, Path]] = {}
    # Not read_text and splitlines: a mount point may contain any bytes except those that the kernel escapes.
    for line in Path("/proc/self/mountinfo").read_bytes().decode(errors="surrogateescape").split("\n"):
        fields, separator, rest = line.partition(" - ")
        if not separator:
            continue
        root, point = fields.split(" ")[3:5]
        filesystem, _, options = rest.split(" ", 2)
        if filesystem == "cgroup2":
            found.setdefault("cgroup2", (root, Path(point)))
        if filesystem == "cgroup" and "freezer" in options.split(","):
            found.setdefault("cgroup1", (root, Path(point)))
    return found
