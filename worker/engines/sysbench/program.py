"""The program of engines that run sysbench: its preparation, then the measured command.

It reads the job (worker.recipes.sysbench.SysbenchJob) as JSON on standard input, and prints JSON lines: one for each
second of the preparation, one for each line of the measured sysbench, and one at the end.

    {"event": "loading"}
    {"event": "line", "text": "[ 1s ] 6840.66 MiB/sec"}
    {"event": "end", "load_ms": 2345, "usr_ms": …, "sys_ms": …}

Imports only the standard library, to start quickly.
"""

import json
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

SAMPLE_S = 1.0


class Failed(Exception):
    """A command failed; the text says which."""


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def prepare(command: list[str]) -> None:
    """Run a command to its end, with a line for each second."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr) as process:
        while process.poll() is None:
            say("loading")
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLE_S)
    _check(process.returncode, command)


def measure(command: list[str]) -> dict[str, int]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode(errors="replace").rstrip("\n")
            if text.startswith("FATAL"):  # sysbench prints its errors to standard output
                sys.stderr.write(f"{text}\n")
            say("line", text=text)
    _check(process.returncode, command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "usr_ms": round(1000 * (after.ru_utime - before.ru_utime)),
        "sys_ms": round(1000 * (after.ru_stime - before.ru_stime)),
    }


def _check(code: int, command: list[str]) -> None:
    if code:
        raise Failed(f"{' '.join(command[:2])} ended with status {code}.")


def main() -> int:
    job = json.load(sys.stdin)
    try:
        if job["folder"]:
            os.chdir(job["folder"])
        began = time.monotonic()
        for command in job["prepare"]:
            prepare(command)
        load_ms = round(1000 * (time.monotonic() - began))
        say("end", load_ms=load_ms, **measure(job["run"]))
    except (Failed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
