"""The interface of a family of purge commands."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from worker.contract.base import Failed
from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.guard.lease import Lease
from worker.journal import Journal
from worker.process.run import ToolError, ToolMissing, ToolOutput, ask

Progress = Callable[[float | None, float | None], None]  # percent, expected seconds; None if unknown


class PurgeRun(msgspec.Struct, frozen=True):
    """What a family needs besides the drive."""

    journal: Journal  # keeps a password from before it is set until the drive has none
    state: Path  # the state directory: records of running programs
    progress: Progress
    stopped: Callable[[], bool]


class PurgeFailed(Failed):
    """The drive was not purged, or the result could not be verified."""


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


# Run purge programs in recorded scopes: short ones that must succeed, and long ones that report progress.


def answer(drive: Lease, run: PurgeRun, *command: str, limit_s: float = 30.0) -> ToolOutput:
    """Run a short command that must succeed. Raises PurgeFailed with the command's output."""
    try:
        output = ask(*command, limit_s=limit_s, state=run.state, drives=(drive.stable_id,))
    except ToolError as error:
        raise PurgeFailed("purge_tool_missing", str(error)) from error
    return _succeeded(command, output)


def to_the_end(drive: Lease, run: PurgeRun, *command: str, tick: Callable[[str], None], limit_s: float) -> str:
    """Run a long command; return its output. `tick` gets the output so far, several times a second.

    Raises PurgeFailed.
    """
    try:
        output = ask(
            *command, limit_s=limit_s, merge_stderr=True, on_poll=tick, state=run.state, drives=(drive.stable_id,)
        )
    except ToolMissing as error:
        raise PurgeFailed("purge_tool_missing", str(error)) from error
    except ToolError as error:
        raise PurgeFailed("purge_timeout", f"{error} The drive may still be erasing itself.") from error
    return _succeeded(command, output).out


def _succeeded(command: tuple[str, ...], output: ToolOutput) -> ToolOutput:
    """Raises PurgeFailed for an exit status other than 0."""
    if output.exit_code == 0:
        return output
    words = output.err.strip() or output.out.strip()
    raise PurgeFailed(
        "purge_refused", f"{shlex.join(command)} ended with status {output.exit_code}: {words[-1500:] or 'no message'}"
    )
