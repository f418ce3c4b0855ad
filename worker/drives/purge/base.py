"""The interface of a family of purge commands."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from worker.contract.purge import PurgeMethod, PurgeOffer
from worker.guard import Lease

__all__ = ["Family", "Lease", "Progress", "PurgeFailed", "Sent", "Stopped"]

Progress = Callable[[float | None, float | None], None]  # percent, expected seconds; None if unknown
Stopped = Callable[[], bool]


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

    def send(self, drive: Lease, method: PurgeMethod, progress: Progress, stopped: Stopped) -> Sent:
        """Purge the drive and wait until it has finished. Raises PurgeFailed."""

    def promises_zeros(self, name: str, method: PurgeMethod) -> bool | None:
        """Whether the drive reports that it reads as zeros afterwards; None if it does not report that."""
