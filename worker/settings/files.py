"""Read and write files of the kernel; errors carry the kernel's reason."""

import os
from pathlib import Path

from worker.settings.base import SettingError, refused


def read_file(path: Path, what: str) -> str:
    """The file's text without surrounding whitespace. `what` names the setting in the error. Raises SettingError."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise _refusal(f"{what} cannot be read", error) from error


def write_file(path: Path, value: str, what: str) -> None:
    """Write the value in one system call, so that the kernel accepts or rejects it as a whole. Raises SettingError."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise _refusal(f"{what} was not set to {value!r}", error) from error


def _refusal(what: str, error: OSError) -> SettingError:
    hint = " The worker does not run as root." if isinstance(error, PermissionError) and os.geteuid() else ""
    return refused(f"{what}: {error.strerror}.{hint}")
