"""What every setting is to the rest of the worker.

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
    """What a setting is of, and so what a change of it may touch beside the target."""

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
    """A trial's settings could not be brought about; `records` says what was done before.

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
    vanishes: bool = False  # may go away with another setting that is put back before it, and takes its value along
    stacked: bool = False  # an array has its own; others are of the drives that it lies on
    taken_by: str = "the kernel"  # who may make another value of what is written
    by_name_only: bool = False  # "*" in the policy does not allow it: it can cost data, or touches other drives

    @abstractmethod
    def describe(self) -> str: ...

    @abstractmethod
    def read(self, subject: str) -> str:
        """The value now, as a person would ask for it; raises SettingError."""

    @abstractmethod
    def apply(self, subject: str, value: str) -> None:
        """Write a value; raises SettingError with the kernel's words. Says nothing about what came of it."""

    def discover(self, subject: str) -> bool:
        """The subject has this setting. A file that is there may still not be readable, so it is read."""
        try:
            self.read(subject)
        except SettingError:
            return False
        return True

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        """`observed` is what one reads back after asking for `asked`."""
        return asked == observed

    def restore(self, subject: str, state: str) -> None:
        """Put back a state that `capture` once gave; raises SettingError."""
        self.apply(subject, state)

    # ---- where there is more to it

    @property
    def key(self) -> str:
        """What the journal keeps the state under."""
        return self.name

    def capture(self, subject: str) -> str:
        """All that is needed to put back what is there now; raises SettingError."""
        return self.read(subject)

    def same(self, one: str, other: str) -> bool:
        """Two captured states are the same as far as this setting goes."""
        return one == other

    def shown(self, state: str) -> str:
        """A captured state in the words of `read`, as far as they can be had from it."""
        return state

    def fact(self, subject: str) -> str:
        """What it is, as part of a configuration; "" where it changes by itself. Raises SettingError."""
        return self.read(subject)

    def choices(self, subject: str) -> tuple[str, ...]:
        """All values there are, () where they cannot be listed."""
        return ()

    def because(self, subject: str) -> str:
        """A sentence that explains another value than the one asked for, with a blank before it; "" mostly."""
        return ""

    def missing(self, subject: str) -> str:
        """Why the subject does not have it, in words."""
        return f"{named(subject)} has no {self.name}."


def named(subject: str) -> str:
    return subject or "this host"
