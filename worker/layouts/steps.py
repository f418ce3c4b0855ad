"""Runs one command of a layout in a scope of its own, which ends with the worker."""

import os
import shutil
import time
from pathlib import Path

from worker.process import open_scope
from worker.recipes.layouts import Step

LIMIT_S = 1800.0  # mkfs of a large array of slow drives
SETTLE_LIMIT_S = 10.0
_END = 500  # characters of each end of a program's words
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class LayoutFailed(Exception):
    """A layout could not be built or taken down. The message says which command failed, and its words."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def run(step: Step, *, state: Path, key: str) -> str:
    """The command's output. Raises LayoutFailed layout_tool_missing or layout_refused."""
    program = shutil.which(step.argv[0], path=_PATH)
    if program is None:
        raise LayoutFailed("layout_tool_missing", f"{step.argv[0]} is not installed on this host: {step.words}.")
    with open_scope(state, f"layout.{key}.{time.monotonic_ns()}") as scope:
        child = scope.spawn((program, *step.argv[1:]), stdin_text=step.stdin)
        output, until = b"", time.monotonic() + LIMIT_S
        while piece := child.read(max(0.0, until - time.monotonic())):
            output += piece
        status = child.wait()
        words = _shortened(child.stderr().strip() or output.decode(errors="replace").strip())
    if status is None:
        raise LayoutFailed("layout_refused", f"{step.line} did not end within {LIMIT_S:.0f} s: {step.words}.")
    if status != 0:
        raise LayoutFailed("layout_refused", f"{step.words}: `{step.line}` ended with {status}: {words}")
    return output.decode(errors="replace")


def _shortened(words: str) -> str:
    """Both ends: mkfs.xfs says first what is wrong and then all its options, others say it last."""
    return words if len(words) <= 2 * _END else f"{words[:_END]}\n…\n{words[-_END:]}"


def settle(*, state: Path, key: str) -> None:
    """Let udev finish with what was made or removed; without udev there is nothing to wait for."""
    if shutil.which("udevadm", path=_PATH) and Path("/run/udev/control").exists():
        run(Step("wait for udev", ("udevadm", "settle", f"--timeout={SETTLE_LIMIT_S:.0f}")), state=state, key=key)


def await_node(path: str) -> str:
    """The node behind a path that was just made, without links. Raises LayoutFailed if it does not come."""
    until = time.monotonic() + SETTLE_LIMIT_S
    while not Path(path).exists():
        if time.monotonic() > until:
            raise LayoutFailed("layout_refused", f"{path} was made, but its node did not appear.")
        time.sleep(0.05)
    return os.path.realpath(path)
