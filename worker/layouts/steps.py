"""Run one command of a layout. The command does not outlive the worker."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from worker.process import ToolError, ToolMissing, ask, find
from worker.recipes.layouts import Step

LIMIT_S = 12 * 3600.0  # mkfs on a large array of slow drives can take hours
UDEV_LIMIT_S = 10.0
_END = 500  # characters kept of the start and of the end of a program's output


class LayoutFailed(Exception):
    """A layout could not be built or taken down. The message has the command and its output."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def run(
    step: Step, *, state: Path, drives: tuple[str, ...] = (), stop_if_asked: Callable[[], None] = lambda: None
) -> str:
    """The command's output. `drives`: stable ids, quarantined if it cannot be killed.

    `stop_if_asked` is called several times per second; if it raises, the command is killed.

    Raises LayoutFailed layout_tool_missing or layout_refused, and what `stop_if_asked` raises.
    """
    try:
        said = ask(
            *step.argv, limit_s=LIMIT_S, state=state, stdin_text=step.stdin, drives=drives,
            on_poll=lambda _output: stop_if_asked(),
        )  # fmt: skip
    except ToolMissing as error:
        raise LayoutFailed("layout_tool_missing", f"{error} It is needed to {step.words}.") from error
    except ToolError as error:
        raise LayoutFailed("layout_refused", f"{step.words}: `{step.line}`: {error}") from error
    if said.exit_code != 0:
        words = _shortened(said.err.strip() or said.out.strip())
        raise LayoutFailed("layout_refused", f"{step.words}: `{step.line}` ended with status {said.exit_code}: {words}")
    return said.out


def _shortened(words: str) -> str:
    """Keep both ends: mkfs.xfs prints the error first and then all its options, other programs print it last."""
    return words if len(words) <= 2 * _END else f"{words[:_END]}\n…\n{words[-_END:]}"


def wait_for_udev(*, state: Path) -> None:
    """Wait until udev has processed the change. Does nothing without udev."""
    if find(("udevadm",)) and Path("/run/udev/control").exists():
        run(Step("wait for udev", ("udevadm", "settle", f"--timeout={UDEV_LIMIT_S:.0f}")), state=state)


def await_node(path: str) -> str:
    """Wait for the node of a new device; return its real path. Raises LayoutFailed if it does not appear."""
    until = time.monotonic() + UDEV_LIMIT_S
    while not Path(path).exists():
        if time.monotonic() > until:
            raise LayoutFailed("layout_refused", f"{path} was created, but its device node did not appear.")
        time.sleep(0.05)
    return os.path.realpath(path)
