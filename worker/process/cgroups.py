"""Cgroups for fio: children of the worker's own, so that its limits hold for fio too.

v2 (also the v2 "unified" mount beside v1) is taken where a child can be made and killed whole
with `cgroup.kill` (kernel 5.14); else the v1 freezer, whose members are frozen, killed, thawed.
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
    """One cgroup directory made by us."""

    path: Path
    kind: str  # cgroup2 | cgroup1

    @property
    def procs(self) -> Path:
        return self.path / "cgroup.procs"

    @property
    def kill_file(self) -> Path | None:
        return self.path / "cgroup.kill" if self.kind == "cgroup2" else None

    def kill(self) -> bool:
        """Kill everything in it; whether nothing was left within the limit."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self._members():
            self._kill_once()
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.002)
        return True

    def remove(self) -> None:
        """Take the directory away; the kernel refuses for a moment while the last member is still leaving."""
        give_up_at = time.monotonic() + KILL_LIMIT_S
        while self.path.is_dir():
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            if time.monotonic() > give_up_at:
                return
            time.sleep(0.001)

    def _members(self) -> list[int]:
        return supervisor.members(str(self.procs))

    def _kill_once(self) -> None:
        with contextlib.suppress(OSError):
            if self.kill_file:
                self.kill_file.write_text("1")
                return
            self._freeze("FROZEN")
            for pid in self._members():
                supervisor.kill(pid)
            self._freeze("THAWED")

    def _freeze(self, state: str) -> None:
        (self.path / "freezer.state").write_text(state)


def create(name: str) -> Cgroup | None:
    """A new cgroup under the worker's own; None where this is not possible."""
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
    """Moving a process asks for write permission on the common ancestor's cgroup.procs as well."""
    needed = [parent / "cgroup.procs", cgroup.procs]
    needed.append(cgroup.kill_file or cgroup.path / "freezer.state")
    return all(os.access(file, os.W_OK) for file in needed)


def own_cgroups() -> list[tuple[str, Path]]:
    """The directories of the cgroups this process is in: v2 first, then the v1 freezer."""
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
    """kind -> (what part of the hierarchy is mounted, where); see proc_pid_mountinfo(5)."""
    found: dict[str, tuple[str, Path]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        root, point = fields.split()[3:5]
        filesystem, _, options = rest.split(" ", 2)
        if filesystem == "cgroup2":
            found.setdefault("cgroup2", (root, Path(point)))
        if filesystem == "cgroup" and "freezer" in options.split(","):
            found.setdefault("cgroup1", (root, Path(point)))
    return found
