"""Drives of known speed, which can be changed during I/O: two loop devices, of which the lower one is throttled.

    fio ─► upper loop device ─► lower loop device, throttled for the cgroup of this process ─► file in memory

The throttle delays an I/O before the lower device counts it. For the upper device, the I/O is in flight, as on a real
drive that does not answer. Needs root, loop devices, and cgroup v1 (blkio) or v2 (io).
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dev.bench.figures import Figure
from dev.console import ToolError
from dev.stack import loop_device, processes
from dev.stack.state import State, default_state
from webapp.tests.drives import CGROUP, MIB, V1, Throttle
from worker.kernel.mounts import remove_path

SIZE_BYTES = 64 * MIB
MEMORY, MEMORY_BYTES = Path("/dev/shm"), 3072 * MIB  # noqa: S108 - a private directory is created in it
REMOVE_S = 20.0
FROZEN_BYTES_PER_S = 1
WAYS = ("read", "write")


class NotPossible(Exception):
    """This machine cannot make drives of known speed. The message says why."""


class Disturbed(Exception):
    """Other load on this machine disturbed these trials at each try. `figures`: of the others."""

    def __init__(self, trials: Sequence[str], figures: Sequence[Figure]) -> None:
        super().__init__(", ".join(trials))
        self.trials, self.figures = trials, figures


@dataclass(frozen=True)
class Limit:
    """0 is no limit."""

    iops: int = 0
    bytes_per_s: int = 0
    ways: tuple[str, ...] = WAYS


@dataclass(frozen=True)
class Drive:
    path: str  # of the upper device
    lower: str
    throttle: Throttle

    @property
    def name(self) -> str:
        return Path(self.path).name

    def limit(self, limit: Limit) -> None:
        """Replace all limits, including a freeze."""
        self.throttle.limit(self.lower, ways=[way for way in WAYS if way not in limit.ways])
        self.throttle.limit(self.lower, iops=limit.iops, bytes_per_s=limit.bytes_per_s, ways=limit.ways)

    def freeze(self) -> None:
        """Complete no more I/Os: each would take longer than any trial."""
        self.throttle.limit(self.lower, bytes_per_s=FROZEN_BYTES_PER_S)


@contextmanager
def drives(count: int) -> Iterator[list[Drive]]:
    """New drives without limits. Meanwhile this process is in their cgroup. Everything is removed at the end.

    What an earlier, killed call left is removed first. Raises NotPossible.
    """
    if os.getuid() != 0:
        raise NotPossible("loop devices and cgroups need root")
    state = default_state("truth-drives")
    state.prepare()
    with state.locked():
        folder = _images(state)
        _remove(folder)
        try:
            throttle = Throttle(folder.name)
        except OSError as error:
            raise NotPossible(f"devices cannot be throttled by a cgroup: {error}") from error
        try:
            yield _made(folder, count, throttle)
        finally:
            throttle.leave()
            _remove(folder)
            folder.rmdir()
            with suppress(OSError):
                remove_path(state.root)


def _images(state: State) -> Path:
    """In memory if there is room, so that other programs that use the disk do not make a drive slower."""
    has_room = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    folder = (MEMORY if has_room else state.root) / f"{state.root.name}-images"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _made(folder: Path, count: int, throttle: Throttle) -> list[Drive]:
    try:
        made = [_drive(folder / f"{number}.img", throttle) for number in range(count)]
        for drive in made:
            drive.limit(Limit())
        throttle.join()
    except (OSError, ToolError) as error:
        raise NotPossible(f"a throttled loop device cannot be made: {error}") from error
    return made


def _drive(image: Path, throttle: Throttle) -> Drive:
    lower = loop_device.attach(image, SIZE_BYTES, direct_io=not image.is_relative_to(MEMORY))
    upper = processes.run(["losetup", "--direct-io=on", "--find", "--show", lower]).strip()
    for device in (lower, upper):
        queue = Path("/sys/block") / Path(device).name / "queue"
        (queue / "nomerges").write_text("2")  # a merged I/O would count once against the limit
        with suppress(OSError):
            (queue / "scheduler").write_text("none")
    return Drive(upper, lower, throttle)


def _remove(folder: Path) -> None:
    """Remove devices, images and the cgroup. A frozen I/O holds its device open, so limits are removed first."""
    group = (V1 if V1.is_dir() else CGROUP) / folder.name
    throttle = Throttle(folder.name) if group.is_dir() else None
    for image in folder.glob("*.img"):
        if lower := loop_device.attached(image):
            if throttle:
                throttle.limit(lower)
            for upper in processes.run(["losetup", "--associated", lower, "-n", "-O", "NAME"]).split():
                processes.run(["losetup", "--detach", upper])
            processes.run(["losetup", "--detach", lower])
        image.unlink()
    _remove_cgroup(group)


def _remove_cgroup(group: Path) -> None:
    """Wait for the end of killed processes inside, whose I/O was frozen until now."""
    until = time.monotonic() + REMOVE_S
    while group.is_dir():
        try:
            for inner in (*group.glob("sweetspot.*"), group):
                inner.rmdir()
        except OSError as error:
            if time.monotonic() > until:
                raise ToolError(f"{group} cannot be removed: {error.strerror}") from error
            time.sleep(0.1)
