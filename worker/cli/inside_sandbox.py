"""Run `doctor` with the permissions and limits of the service: in a transient unit with the unit's properties."""

import os
import subprocess
import sys
from collections.abc import Sequence

from worker.cli import service_unit

INSIDE = "SWEETSPOT_WORKER_INSIDE_SANDBOX"
LIMIT_S = 300
# Properties that say how the service starts, restarts and stops; all others limit what it may do.
_OTHER = ("Exec", "Restart", "Kill", "Timeout", "Type")


def is_outside() -> bool:
    """Whether the service has a sandbox here and this process is not in one like it."""
    return os.geteuid() == 0 and service_unit.is_service() and INSIDE not in os.environ


def run_inside(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Status, output and problem of this program with these arguments. A problem: it could not be run so."""
    try:
        unit = subprocess.run(
            ["systemctl", "cat", service_unit.NAME], check=True, capture_output=True, text=True, timeout=LIMIT_S
        ).stdout
        command = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--setenv={INSIDE}=1"]
        command += [f"--property={line}" for line in properties(unit)]
        done = subprocess.run(
            [*command, sys.argv[0], *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return 1, "", str(error)
    return done.returncode, done.stdout, "" if done.stdout else done.stderr.strip() or f"status {done.returncode}"


def properties(unit: str) -> list[str]:
    """`Name=value` of the section [Service] in the output of `systemctl cat`, drop-ins included, in their order."""
    found, section = [], ""
    for line in unit.splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith(("#", ";", *_OTHER)):
            found.append(line)
    return found
