"""The interface of a setting.

A setting belongs to a *subject*: a block device (its kernel name), a controller (its PCI
address) or the host (the empty name). What a person asks for and reads (`read`, `128`,
`spread`) may be less than what must be kept to put everything back (`capture`): the affinity
of each interrupt, a scheduler with its tunables. Settings with the same `key` are faces of one
state of the kernel, such as read-ahead in KiB and in sectors; only one of them can be wished for.
"""

from abc import ABC, abstractmethod
from enum import StrEnum

from worker.contract.items import SettingRecord


class SettingScope(StrEnum):
    """What a setting belongs to, and so what else a change may affect."""

    DEVICE = "device"
    CONTROLLER = "controller"  # with everything else that is behind it
    HOST = "host"


class SettingError(Exception):
    """One setting could not be read or written. Codes: setting_refused, setting_clamped."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SettingFailed(Exception):
    """A trial's settings could not be applied; `records` lists the changes before the failure.

    Codes: setting_unknown, setting_not_allowed, setting_refused, setting_clamped, setting_conflict.
    """

    def __init__(self, code: str, message: str, records: tuple[SettingRecord, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.records = records


def refused(message: str) -> SettingError:
    return SettingError("setting_refused", message)


class Setting(ABC):
    """A tunable. The first six are the interface; the rest has an answer that fits most settings."""

    name: str
    scope: SettingScope = SettingScope.DEVICE
    survives_reboot: bool = False
    rank: int = 2  # lower ones are written first, when applying and when restoring
    disturbs: tuple[str, ...] = ()  # keys of higher rank that the kernel changes when this one is written
    vanishes: bool = False  # may disappear when another setting is restored before it
    stacked: bool = False  # an array has its own; others are of the drives that it lies on
    taken_by: str = "the kernel"  # who may change a value that is written
    by_name_only: bool = False  # "*" in the policy does not allow it: it can cost data, or touches other drives

    @abstractmethod
    def describe(self) -> str: ...

    @abstractmethod
    def read(self, subject: str) -> str:
        """The value now, as a person would ask for it; raises SettingError."""

    @abstractmethod
    def apply(self, subject: str, value: str) -> None:
        """Write a value; raises SettingError with the kernel's words. Read the result afterwards."""

    def discover(self, subject: str) -> bool:
        """True if the subject has this setting. It is read, because an existing file may be unreadable."""
        try:
            self.read(subject)
        except SettingError:
            return False
        return True

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        """True if `observed` is the value to expect after writing `asked`."""
        return asked == observed

    def restore(self, subject: str, state: str) -> None:
        """Restore a state that `capture` returned; raises SettingError."""
        self.apply(subject, state)

    # ---- further methods, with a default for most settings

    @property
    def key(self) -> str:
        """The name under which the journal keeps the state."""
        return self.name

    def capture(self, subject: str) -> str:
        """The state now, complete enough for `restore`; raises SettingError."""
        return self.read(subject)

    def same(self, one: str, other: str) -> bool:
        """True if two captured states are equal for this setting."""
        return one == other

    def shown(self, state: str) -> str:
        """A captured state as `read` would show it."""
        return state

    def fact(self, subject: str) -> str:
        """The value as part of a configuration; "" if it changes by itself. Raises SettingError."""
        return self.read(subject)

    def choices(self, subject: str) -> tuple[str, ...]:
        """All possible values; () if they cannot be listed."""
        return ()

    def because(self, subject: str) -> str:
        """A sentence that explains an unexpected value, with a leading blank; usually ""."""
        return ""

    def missing(self, subject: str) -> str:
        """Why the subject does not have this setting."""
        return f"{named(subject)} has no {self.name}."


def named(subject: str) -> str:
    return subject or "this host"
