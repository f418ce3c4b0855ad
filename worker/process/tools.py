"""Programs of the host that settings and the inventory ask: never through a shell, never without a limit."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

LIMIT_S = 10.0
LONGEST_BYTES = 4 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
# Beside PATH: where vendors' packages of controller tools put them.
_PLACES = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin", "/opt/MegaRAID/storcli", "/opt/MegaRAID/perccli",
    "/opt/MegaRAID/MegaCli", "/opt/smartstorageadmin/ssacli/bin", "/opt/hp/hpssacli/bld",
)  # fmt: skip


class Said(msgspec.Struct, frozen=True):
    exit_code: int
    out: str
    err: str


class ToolError(Exception):
    """The program is missing, hung, or said too much; the text says which."""


def find(names: Iterable[str]) -> str:
    """The first of the programs that this host has, by its path; "" if it has none."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *_PLACES))
    return next((found for name in names if (found := shutil.which(name, path=path))), "")


def ask(program: str, *arguments: str, limit_s: float = LIMIT_S) -> Said:
    """Run a program to its end. Raises ToolError; an exit status is the caller's to judge.

    What hangs or says too much is ended with everything that it started.
    """
    path = find((program,))
    name = Path(program).name
    if not path:
        raise ToolError(f"{name} is not installed on this host.")
    try:
        child = subprocess.Popen(
            (path, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
        )
    except OSError as error:
        raise ToolError(f"{name} could not be started: {error.strerror}.") from error
    with child:
        try:
            out, err = _read(child, time.monotonic() + limit_s)
        except _TooLong as error:
            raise ToolError(
                f"{name} printed more than {LONGEST_BYTES} bytes, which is not read; it was ended."
            ) from error
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise ToolError(f"{name} gave no answer within {limit_s:g} s and was ended.") from error
        finally:
            _end(child)
    return Said(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


class _TooLong(Exception):
    pass


def _read(child: "subprocess.Popen[bytes]", until: float) -> tuple[bytes, bytes]:
    """All of both outputs, once the program has ended. Raises _TooLong, TimeoutError, TimeoutExpired."""
    assert child.stdout is not None
    assert child.stderr is not None
    out, err = bytearray(), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(child.stdout, selectors.EVENT_READ, out)
        ready.register(child.stderr, selectors.EVENT_READ, err)
        while ready.get_map():
            events = ready.select(max(0.0, until - time.monotonic()))
            if not events:
                raise TimeoutError
            for key, _ in events:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                key.data.extend(chunk)
                if not chunk:
                    ready.unregister(key.fileobj)
                if len(key.data) > LONGEST_BYTES:
                    raise _TooLong
    child.wait(max(0.0, until - time.monotonic()))
    return bytes(out), bytes(err)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Whatever is left of it. One that was waited for has given its number back: nothing is sent to that."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
