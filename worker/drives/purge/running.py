"""Run purge programs in recorded scopes: short ones that must succeed, and long ones that report progress."""

import shlex
from collections.abc import Callable

from worker.drives.purge.base import Lease, PurgeFailed, PurgeRun
from worker.process import ToolError, ToolMissing, ToolOutput, ask


def answer(drive: Lease, run: PurgeRun, *command: str, limit_s: float = 30.0) -> ToolOutput:
    """Run a short command that must succeed. Raises PurgeFailed with the command's output."""
    try:
        said = ask(*command, limit_s=limit_s, state=run.state, drives=(drive.stable_id,))
    except ToolError as error:
        raise PurgeFailed("purge_tool_missing", str(error)) from error
    return _succeeded(command, said)


def to_the_end(drive: Lease, run: PurgeRun, *command: str, tick: Callable[[str], None], limit_s: float) -> str:
    """Run a long command; return its output. `tick` gets the output so far, several times a second.

    Raises PurgeFailed.
    """
    try:
        said = ask(
            *command, limit_s=limit_s, merge_stderr=True, on_poll=tick, state=run.state, drives=(drive.stable_id,)
        )
    except ToolMissing as error:
        raise PurgeFailed("purge_tool_missing", str(error)) from error
    except ToolError as error:
        raise PurgeFailed("purge_timeout", f"{error} The drive may still be erasing itself.") from error
    return _succeeded(command, said).out


def _succeeded(command: tuple[str, ...], said: ToolOutput) -> ToolOutput:
    """Raises PurgeFailed for an exit status other than 0."""
    if said.exit_code == 0:
        return said
    words = said.err.strip() or said.out.strip()
    raise PurgeFailed(
        "purge_refused", f"{shlex.join(command)} ended with status {said.exit_code}: {words[-1500:] or 'no message'}"
    )
