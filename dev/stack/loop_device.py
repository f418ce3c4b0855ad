"""Loop devices over files of random data: block devices that may be overwritten."""

import os
import shutil
from pathlib import Path

from dev.console import ToolError
from dev.stack import processes

MIB = 1024**2
RESERVE_BYTES = 2048 * MIB  # stays free on the file system of the image


def attach(image: Path, size_bytes: int, *, direct_io: bool = True) -> str:
    """The device over the image; creates both as needed. Raises ToolError if loop devices are not available.

    Without direct I/O a benchmark measures the page cache below the device.
    """
    if present := attached(image):
        return present
    if not image.exists():
        _create_image(image, size_bytes)
    options = ["--direct-io=on"] if direct_io else []
    return _losetup(*options, "--find", "--show", str(image)).strip()


def attached(image: Path) -> str:
    """The kernel's device over the image, "" if there is none."""
    if not image.exists() or not _available():
        return ""
    listed = _losetup("--associated", str(image), "--noheadings", "--output", "NAME").split()
    return listed[0] if listed else ""


def _create_image(image: Path, size_bytes: int) -> None:
    """Write data that does not compress: reads of a sparse file would not reach the disk."""
    free = shutil.disk_usage(image.parent).free
    if free < size_bytes + RESERVE_BYTES:
        raise ToolError(f"only {free // MIB} MiB free on {image.parent}")
    new = image.with_suffix(".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        for _ in range(size_bytes // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    new.rename(image)


def stable_id(device: str) -> str:
    """The device's id in the worker's inventory: the path of its image."""
    backing = Path("/sys/block") / Path(device).name / "loop" / "backing_file"
    return f"loop:{backing.read_text().strip()}"


def detach_below(folder: Path) -> list[str]:
    """Detach every device over a file below `folder`; their names. Raises ToolError."""
    if os.getuid() != 0 or not _available():
        return []
    listed = _losetup("--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines()
    devices = [line.split()[0] for line in listed if f" {folder}/" in line]
    for device in devices:
        _losetup("--detach", device)
    return devices


def _available() -> bool:
    return shutil.which("losetup", path=_path()) is not None


def _losetup(*arguments: str) -> str:
    return processes.run(["losetup", *arguments], environment={"PATH": _path(), "LC_ALL": "C"})


def _path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
