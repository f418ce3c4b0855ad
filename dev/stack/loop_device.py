"""One loop device over a file in the state directory: a block device that may be destroyed."""

import os
import shutil
from pathlib import Path

from dev.console import Trouble
from dev.stack import processes
from dev.stack.state import State

IMAGE = "loop0.img"
MIB = 1024**2
SIZE_BYTES = 512 * MIB
ROOM_BYTES = 2048 * MIB  # left for everything else


def image(state: State) -> Path:
    return state.root / IMAGE


def attached(state: State) -> str:
    """The device over our file now, "" if there is none. Asked of the kernel, never remembered."""
    if not image(state).exists() or shutil.which("losetup", path=_path()) is None:
        return ""
    listed = _losetup("--associated", str(image(state)), "--noheadings", "--output", "NAME")
    return listed.split()[0] if listed.split() else ""


def attach(state: State) -> str:
    """The device, attached now if it was not. Raises Trouble where loop devices cannot be had."""
    present = attached(state)
    if present:
        return present
    if not image(state).exists():
        _make_image(state)
    # Without direct I/O the page cache below the device would be measured.
    return _losetup("--direct-io=on", "--find", "--show", str(image(state))).strip()


def _make_image(state: State) -> None:
    free = shutil.disk_usage(state.root).free
    if free < SIZE_BYTES + ROOM_BYTES:
        raise Trouble(f"only {free // MIB} MiB free on {state.root}")
    new = image(state).with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        # Really written, and with data that does not compress: holes would be read without touching the disk.
        for _ in range(SIZE_BYTES // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    new.rename(image(state))


def stable_id(device: str) -> str:
    """The name under which the worker's inventory knows it: the file below."""
    backing = Path("/sys/block") / Path(device).name / "loop" / "backing_file"
    return f"loop:{backing.read_text().strip()}"


def detach(state: State) -> str:
    """Give the device back; its name, or "" if there was none. Raises Trouble."""
    device = attached(state) if os.getuid() == 0 else ""
    if device:
        _losetup("--detach", device)
    return device


def _losetup(*arguments: str) -> str:
    return processes.run(["losetup", *arguments], environment={"PATH": _path(), "LC_ALL": "C"})


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
