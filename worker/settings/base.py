"""The interface of a setting.

A setting belongs to a *subject*: a block device (its kernel name), a controller (its PCI
address) or the host (the empty name). `read` returns the value that people use (`128`,
`spread`). `capture` returns everything that is needed to restore it, such as the affinity of
each interrupt, or a scheduler with its tunables. Settings with the same `key` are two ways to
write one state of the kernel, such as read-ahead in KiB and in sectors; a trial can request
only one of them.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from worker.contract.items import SettingRecord


class SettingScope(StrEnum):
    """What a setting belongs to, and therefore what else a change may affect."""

    DEVICE = "device"
    CONTROLLER = "controller"  # affects everything behind it
    HOST = "host"


class SettingError(Exception):
    """One setting could not be read or written. Codes: setting_refused, setting_clamped, setting_no_controller."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SettingFailed(Exception):
    """A trial's settings could not be applied; `records` lists the changes before the failure.

    Codes: setting_unknown, setting_not_allowed, setting_refused, setting_clamped, setting_conflict,
    setting_no_controller.
    """

    def __init__(self, code: str, message: str, records: tuple[SettingRecord, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.records = records


def refused(message: str) -> SettingError:
    return SettingError("setting_refused", message)


def no_controller(message: str) -> SettingError:
    """The device has no controller with this setting."""
    return SettingError("setting_no_controller", message)


class Setting(ABC):
    """A tunable. Each setting implements the abstract methods; the other defaults fit most settings."""

    name: str
    scope: SettingScope = SettingScope.DEVICE
    survives_reboot: bool = False
    rank: int = 2  # lower ones are written first, when applying and when restoring
    disturbs: tuple[str, ...] = ()  # keys of higher rank that the kernel changes when this one is written
    may_lag: bool = False  # a write that failed or exceeded its time limit may take effect later
    stacked: bool = False  # an array has a value of its own; without this flag, its drives get the value
    taken_by: str = "the kernel"  # what may change a written value
    by_name_only: bool = False  # "*" in the policy does not allow it, because it can lose data or affect other drives

    @abstractmethod
    def describe(self) -> str: ...

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
