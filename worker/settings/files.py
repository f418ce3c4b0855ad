"""Reading and writing the kernel's files, with the kernel's own reason where it refuses."""

import os
from pathlib import Path

from worker.settings.base import SettingError, refused


def read_file(path: Path, what: str) -> str:
    """The file's text without blanks around it. `what` names the setting in the error. Raises SettingError."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise _refusal(f"{what} cannot be read", error) from error


def write_file(path: Path, value: str, what: str) -> None:
    """One write call, so that the kernel's answer is about the whole value. Raises SettingError."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise _refusal(f"{what} was not set to {value!r}", error) from error


def _refusal(what: str, error: OSError) -> SettingError:
    hint = " The worker is not root." if isinstance(error, PermissionError) and os.geteuid() else ""
    return refused(f"{what}: {error.strerror}.{hint}")
