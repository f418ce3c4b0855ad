"""A program that takes minutes or hours: its words as they come, a tick a second, and a limit."""

import os
import selectors
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable

from worker.drives.purge.base import PurgeFailed
from worker.process.tools import LONGEST_BYTES, Said, ToolError, ask

_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def answer(*command: str, limit_s: float = 30.0) -> Said:
    """A short command that must succeed. Raises PurgeFailed with its own words."""
    try:
        said = ask(command[0], *command[1:], limit_s=limit_s)
    except ToolError as error:
        raise PurgeFailed("purge_tool_missing", str(error)) from error
    if said.exit_code:
        raise _refused(command, said.exit_code, said.err.strip() or said.out.strip())
    return said


def to_the_end(*command: str, tick: Callable[[str], None], limit_s: float) -> str:
    """Everything that it printed. `tick` gets what came so far, about once a second. Raises PurgeFailed."""
    path = shutil.which(command[0], path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise PurgeFailed("purge_tool_missing", f"{command[0]} is not installed on this host.")
    with subprocess.Popen(
        (path, *command[1:]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=_ENVIRONMENT,
    ) as child:  # fmt: skip
        printed = _listen(child, command, tick, time.monotonic() + limit_s)
        code = child.wait()
    if code:
        raise _refused(command, code, printed.strip())
    return printed


def _listen(child: "subprocess.Popen[bytes]", command: tuple[str, ...], tick: Callable[[str], None], end: float) -> str:
    assert child.stdout is not None
    printed = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(1.0):
                came = os.read(child.stdout.fileno(), 65536)
                if not came:
                    return printed.decode(errors="replace")
                printed = (printed + came)[-LONGEST_BYTES:]
            if time.monotonic() > end:
                child.kill()
                raise PurgeFailed("purge_timeout", f"{command[0]} did not end in time; the drive may still be at it.")
            tick(printed.decode(errors="replace"))


def _refused(command: tuple[str, ...], code: int, words: str) -> PurgeFailed:
    return PurgeFailed("purge_refused", f"{shlex.join(command)} ended with {code}: {words[-1500:] or 'no words'}")
