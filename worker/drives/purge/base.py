"""The interface of a family of purge commands."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from worker.contract.purge import PurgeMethod, PurgeOffer
from worker.guard import Lease
from worker.journal import Journal

__all__ = ["Family", "Lease", "Progress", "PurgeFailed", "PurgeRun", "Sent"]

Progress = Callable[[float | None, float | None], None]  # percent, expected seconds; None if unknown


class PurgeRun(msgspec.Struct, frozen=True):
    """What a family needs besides the drive."""

    journal: Journal  # keeps a password from before it is set until the drive has none
    state: Path  # the state directory: records of running programs
    progress: Progress
    stopped: Callable[[], bool]


class PurgeFailed(Exception):
    """The drive was not purged, or the result could not be verified."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Sent(msgspec.Struct, frozen=True):
    commands: tuple[str, ...]  # command lines
    said: str  # output of the drive or program


class Family(Protocol):
    """A module of this package."""

    def offers(self, name: str) -> tuple[PurgeOffer, ...]:
        """Methods for this kind of drive, each with its problem or ""; () for other kinds."""

    def send(self, drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:
        """Purge the drive and wait until it has finished. Raises PurgeFailed."""

    def promises_zeros(self, name: str, method: PurgeMethod) -> bool | None:
        """Whether the drive reports that it reads as zeros afterwards; None if it does not report that."""
