"""Programs of the host that settings and the inventory ask: never through a shell, never without a limit."""

import os
import shutil
import subprocess

import msgspec

LIMIT_S = 10.0
LONGEST_BYTES = 4 * 1024 * 1024


class Said(msgspec.Struct, frozen=True):
    exit_code: int
    out: str
    err: str


class ToolError(Exception):
    """The program is missing, hung, or said too much; the text says which."""


def ask(program: str, *arguments: str, limit_s: float = LIMIT_S) -> Said:
    """Run a program to its end. Raises ToolError; an exit status is the caller's to judge."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise ToolError(f"{program} is not installed on this host.")
    try:
        done = subprocess.run(
            (path, *arguments),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=limit_s,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{program} gave no answer within {limit_s:g} s and was ended.") from error
    except OSError as error:
        raise ToolError(f"{program} could not be started: {error.strerror}.") from error
    if len(done.stdout) > LONGEST_BYTES:
        raise ToolError(f"{program} printed {len(done.stdout)} bytes, more than is read.")
    return Said(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
