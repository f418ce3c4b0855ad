"""What every setting is to the rest of the worker."""

from typing import Protocol

from worker.contract.reports import SettingRecord


class SettingError(Exception):
    """One setting could not be read or written. Codes: setting_refused."""

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


class Setting(Protocol):
    """A tunable of a block device, which is given by its kernel name."""

    @property
    def name(self) -> str: ...

    @property
    def survives_reboot(self) -> bool: ...

    @property
    def rank(self) -> int:
        """Lower ones are written first, when applying and when restoring."""
        ...

    @property
    def disturbs(self) -> tuple[str, ...]:
        """Names of settings of higher rank that the kernel changes when this one is written."""
        ...

    def describe(self) -> str: ...

    def discover(self, device: str) -> bool:
        """The device has this setting."""
        ...

    def read(self, device: str) -> str:
        """The value now; raises SettingError."""
        ...

    def choices(self, device: str) -> tuple[str, ...]:
        """All values there are, () where they cannot be listed."""
        ...

    def apply(self, device: str, value: str) -> None:
        """Write a value; raises SettingError with the kernel's words. Says nothing about what came of it."""
        ...

    def verify(self, asked: str, observed: str) -> bool:
        """`observed` is what one reads back after asking for `asked`."""
        ...

    def restore(self, device: str, value: str) -> None:
        """Put back a value that `read` once gave; raises SettingError."""
        ...
