"""The interface of a setting, the setting that is one file of the kernel, and the subjects of settings.

A setting belongs to a *subject*: a block device (its kernel name), a controller (its PCI
address) or the host (the empty name). `read` returns the value that people use (`128`,
`spread`). `capture` returns everything that is needed to restore it, such as the affinity of
each interrupt, or a scheduler with its tunables. Settings with the same `key` are two ways to
write one state of the kernel, such as read-ahead in KiB and in sectors; a trial can request
only one of them.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from worker.contract.base import Failed
from worker.contract.items import SettingRecord
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget


class SettingScope(StrEnum):
    """What a setting belongs to, and therefore what else a change may affect."""

    DEVICE = "device"
    CONTROLLER = "controller"  # affects everything behind it
    HOST = "host"


class SettingError(Failed):
    """One setting could not be read or written. Codes: setting_refused, setting_clamped, setting_no_controller."""


class SettingFailed(Failed):
    """A trial's settings could not be applied; `records` lists the changes before the failure.

    Codes: setting_unknown, setting_not_allowed, setting_refused, setting_clamped, setting_conflict,
    setting_no_controller.
    """

    def __init__(self, code: str, message: str, records: tuple[SettingRecord, ...] = ()) -> None:
        super().__init__(code, message)
        self.records = records


def refused(message: str) -> SettingError:
    return SettingError("setting_refused", message)


def no_controller(message: str) -> SettingError:
    """The device has no controller with this setting."""
    return SettingError("setting_no_controller", message)


class Setting(ABC):
    """A tunable. Each setting implements the abstract methods; the other defaults fit most settings."""

    name: str
    description: str
    scope: SettingScope = SettingScope.DEVICE
    survives_reboot: bool = False
    rank: int = 2  # lower ones are written first, when applying and when restoring
    disturbs: tuple[str, ...] = ()  # keys of higher rank that the kernel changes when this one is written
    may_lag: bool = False  # a write that failed or exceeded its time limit may take effect later
    stacked: bool = False  # an array has a value of its own; without this flag, its drives get the value
    taken_by: str = "the kernel"  # what may change a written value
    by_name_only: bool = False  # "*" in the policy does not allow it, because it can lose data or affect other drives

    @abstractmethod
    def read(self, subject: str) -> str:
        """The current value, as a person writes it; raises SettingError."""

    @abstractmethod
    def apply(self, subject: str, value: str) -> None:
        """Write a value; raises SettingError with the kernel's message. Read the value back afterwards."""

    def discover(self, subject: str) -> bool:
        """True if the subject has this setting. Reads the value, because an existing file may be unreadable."""
        try:
            self.read(subject)
        except SettingError:
            return False
        return True

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        """True if `observed` is the value expected after writing `asked`."""
        return asked == observed

    def restore(self, subject: str, state: str) -> None:
        """Restore a state that `capture` returned; raises SettingError."""
        self.apply(subject, state)

    # ---- further methods, with a default for most settings

    @property
    def key(self) -> str:
        """The name of the state in the journal."""
        return self.name

    def capture(self, subject: str) -> str:
        """The current state, complete enough for `restore`; raises SettingError."""
        return self.read(subject)

    def same(self, one: str, other: str) -> bool:
        """True if two captured states are equal for this setting."""
        return one == other

    def shown(self, state: str) -> str:
        """A captured state, formatted as `read` returns it."""
        return state

    def fact(self, subject: str) -> str:
        """The value for the configuration; "" if the value changes by itself. Raises SettingError."""
        return self.read(subject)

    def choices(self, subject: str) -> tuple[str, ...]:
        """All possible values; () if they cannot be listed."""
        return ()

    def because(self, subject: str) -> str:
        """A sentence that explains an unexpected value, with a leading space; usually ""."""
        return ""

    def vanished(self, subject: str) -> bool:
        """True if the setting no longer exists, because another one was restored before it; raises SettingError.

        A setting that cannot be read has not vanished.
        """
        return False

    def missing(self, subject: str) -> str:
        """Why the subject does not have this setting. May raise a SettingError that says it with a code of its own."""
        return f"{named(subject)} has no {self.name}."


def named(subject: str) -> str:
    return subject or "this host"


# Read and write files of the kernel; errors carry the kernel's reason.


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


NUMBER = re.compile(r"[0-9]{1,18}")


class KernelFile(Setting):
    """A file of the kernel that holds one value: a whole number, or one of a few words.

    `file`: below the block device's folder in sysfs, by default `queue/<name>`; an absolute path is of the host.
    `choices`: the possible values. `form`: of a value, unless the choices are words. `meaning`: the value in the text
    of the file, if the file shows more than the value.
    """

    def __init__(
        self,
        name: str,
        description: str,
        *,
        file: str = "",
        choices: tuple[str, ...] = (),
        form: re.Pattern[str] = NUMBER,
        meaning: Callable[[str], str] = str,
        rank: int = 2,
        disturbs: tuple[str, ...] = (),
        by_name_only: bool = False,
        stacked: bool = False,
        sys: Path = sysfs.SYS,
    ) -> None:
        self.name = name
        self.scope = SettingScope.HOST if file.startswith("/") else SettingScope.DEVICE
        self.rank = rank
        self.disturbs = disturbs
        self.by_name_only = by_name_only
        self.stacked = stacked
        self.description = description
        self._file = file or f"queue/{name}"
        self._choices = choices
        self._form = form
        self._meaning = meaning
        self._sys = sys

    def path(self, subject: str) -> Path:
        """The file; raises SettingError if the subject cannot have one."""
        return Path(self._file) if self.scope is SettingScope.HOST else sysfs.node(subject, self._sys) / self._file

    def text(self, subject: str) -> str:
        """The whole text of the file. Raises SettingError."""
        return read_file(self.path(subject), self._what(subject))

    def read(self, subject: str) -> str:
        return self._meaning(self.text(subject))

    def choices(self, subject: str) -> tuple[str, ...]:
        return self._choices if self.discover(subject) else ()

    def apply(self, subject: str, value: str) -> None:
        self._refuse_malformed(value)
        self._write(subject, value)

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        return asked == observed or (asked.isdecimal() and observed.isdecimal() and int(asked) == int(observed))

    def restore(self, subject: str, state: str) -> None:
        self._write(subject, state)

    def _refuse_malformed(self, value: str) -> None:
        words = () if all(choice.isdecimal() for choice in self._choices) else self._choices
        if words and value not in words:
            raise refused(f"{self.name} cannot be {value!r}; possible values: {', '.join(words)}.")
        if not words and not self._form.fullmatch(value):
            raise refused(f"{self.name} cannot be {value!r}: use a whole number.")

    def _write(self, subject: str, value: str) -> None:
        write_file(self.path(subject), value, self._what(subject))

    def _what(self, subject: str) -> str:
        return f"{self.name} of {named(subject)}"


# Subjects of settings: find the subject of a block device, and check that it is still the same.

HOST = ""  # the subject of settings of the whole kernel
HOST_ID = "host"
# Settings of the host are written first and restored last: irqbalance must be off while interrupts are moved.
_ORDER = {SettingScope.HOST: 0, SettingScope.CONTROLLER: 1, SettingScope.DEVICE: 2}


def subject_of(setting: Setting, device: str, sys: Path = sysfs.SYS) -> str:
    """The subject of a setting for this block device. Raises SettingError."""
    if setting.scope is SettingScope.HOST:
        return HOST
    if not device:
        raise refused(f"{setting.name}: the target is not on a single block device.")
    if setting.scope is SettingScope.DEVICE:
        return device
    address = sysfs.controller(device, sys)
    if not address:
        raise no_controller(f"{setting.name}: {device} is not behind a PCI controller.")
    return address


def subjects_of(setting: Setting, open_target: OpenTarget, sys: Path = sysfs.SYS) -> tuple[str, ...]:
    """Every subject of a requested setting: under a layout, most settings apply to each of its drives.

    Raises SettingError.
    """
    whole_layout = setting.scope is SettingScope.HOST or (setting.stacked and open_target.device)
    devices = (open_target.device,) if whole_layout or not open_target.members else open_target.members
    return tuple(dict.fromkeys(subject_of(setting, device, sys) for device in devices))


def identity(subject: str, sys: Path = sysfs.SYS) -> str:
    """A stable identity, because another device may get the name later; "" if the subject does not exist."""
    if subject == HOST:
        return HOST_ID
    if is_controller(subject):
        at = sys / "bus/pci/devices" / subject
        return f"pci-{subject}-{sysfs.text(at / 'vendor')}-{sysfs.text(at / 'device')}" if at.exists() else ""
    return sysfs.stable_id(subject, sys) if sysfs.exists(subject, sys) else ""


def find(stable_id: str, subject: str, sys: Path = sysfs.SYS) -> str | None:
    """The subject's current name, which a restart may change. None if the subject is absent."""
    if is_controller(subject) or subject == HOST:
        return subject if identity(subject, sys) == stable_id else None
    return sysfs.find(stable_id, subject, sys)


def is_controller(subject: str) -> bool:
    return bool(sysfs.PCI_ADDRESS.match(subject))


def in_order(subject: str) -> tuple[int, str]:
    """The sort key for applying; restoring uses the reverse order."""
    scope = (
        SettingScope.HOST
        if subject == HOST
        else SettingScope.CONTROLLER
        if is_controller(subject)
        else SettingScope.DEVICE
    )
    return _ORDER[scope], subject
