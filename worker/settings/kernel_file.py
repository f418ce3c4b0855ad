"""Settings that consist of one file of the kernel: a whole number, or one of a few words."""

import re
from abc import abstractmethod
from pathlib import Path

from worker.settings.base import Setting, named, refused
from worker.settings.files import read_file, write_file


class KernelFile(Setting):
    """A file that holds one value. The value does not survive a reboot unless the class says so."""

    _form = re.compile(r"[0-9]{1,18}")

    def __init__(
        self,
        name: str,
        description: str,
        *,
        choices: tuple[str, ...] = (),
        rank: int = 2,
        disturbs: tuple[str, ...] = (),
        by_name_only: bool = False,
    ) -> None:
        self.name = name
        self.rank = rank
        self.disturbs = disturbs
        self.by_name_only = by_name_only
        self._description = description
        self._choices = choices

    @abstractmethod
    def path(self, subject: str) -> Path:
        """The file; raises SettingError if the subject cannot have one."""

    def describe(self) -> str:
        return self._description

    def read(self, subject: str) -> str:
        return read_file(self.path(subject), self._what(subject))

    def choices(self, subject: str) -> tuple[str, ...]:
        return self._choices if self.discover(subject) else ()

    def apply(self, subject: str, value: str) -> None:
        self._refuse_malformed(value)
        self._write(subject, value)

    def verify(self, subject: str, asked: str, observed: str) -> bool:
        if asked.isdecimal() and observed.isdecimal():
            return int(asked) == int(observed)
        return bool(self._worded) and asked == observed

    def restore(self, subject: str, state: str) -> None:
        self._write(subject, state)

    @property
    def _worded(self) -> tuple[str, ...]:
        """The possible values if they are words, else ()."""
        return () if all(choice.isdecimal() for choice in self._choices) else self._choices

    def _refuse_malformed(self, value: str) -> None:
        if self._worded and value not in self._worded:
            raise refused(f"{self.name} cannot be {value!r}; possible values: {', '.join(self._worded)}.")
        if not self._worded and not self._form.fullmatch(value):
            raise refused(f"{self.name} cannot be {value!r}: use a whole number.")

    def _write(self, subject: str, value: str) -> None:
        write_file(self.path(subject), value, self._what(subject))

    def _what(self, subject: str) -> str:
        return f"{self.name} of {named(subject)}"
