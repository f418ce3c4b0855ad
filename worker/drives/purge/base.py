"""The interface of a family of purging commands."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from worker.contract.purge import PurgeMethod, PurgeOffer
from worker.guard import HeldDrive

__all__ = ["Family", "HeldDrive", "Progress", "PurgeFailed", "Sent", "Stopped"]

Progress = Callable[[float | None, float | None], None]  # percent, expected seconds; None where not known
Stopped = Callable[[], bool]


class PurgeFailed(Exception):
    """The drive was not purged, or the result could not be verified."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Sent(msgspec.Struct, frozen=True):
    commands: tuple[str, ...]  # as they were given
    said: str  # the drive's or program's own words


class Family(Protocol):
    """A module of this package."""

    def offers(self, name: str) -> tuple[PurgeOffer, ...]:
        """Methods for this kind of drive, each with its problem, if any; () for other kinds."""

    def send(self, drive: HeldDrive, method: PurgeMethod, progress: Progress, stopped: Stopped) -> Sent:
        """Purge the drive and wait for the end. Raises PurgeFailed."""

    def promises_zeros(self, name: str, method: PurgeMethod) -> bool | None:
        """Whether the drive says that it reads as zeros afterwards; None where it does not say."""
