"""The worker's systemd unit, and the drop-in that lets it write to the directories and files of the policy."""

import subprocess
from pathlib import Path

from worker.contract.workload import TargetKind
from worker.policy import Policy

NAME = "sweetspot-worker.service"
UNIT = Path("/etc/systemd/system") / NAME
DROP_INS = UNIT.with_name(f"{NAME}.d")
DROP_IN = DROP_INS / "policy.conf"
_RUNNING = Path("/run/systemd/system")  # sd_booted(3)
LIMIT_S = 90  # the worker stops within 45 s


def is_booted() -> bool:
    """Whether systemd is running here."""
    return _RUNNING.is_dir()


def is_service() -> bool:
    """Whether systemd is running here and has the worker's unit."""
    return is_booted() and UNIT.exists()


def systemctl(*arguments: str) -> None:
    """Raises CalledProcessError and TimeoutExpired."""
    subprocess.run(["systemctl", *arguments], check=True, capture_output=True, text=True, timeout=LIMIT_S)


def written_paths(allowed: Policy) -> list[str]:
    """Directories, and files with destroy = true. Devices need no entry: /dev is not protected."""
    kinds = {TargetKind.DIRECTORY, TargetKind.FILE}
    entries = [e for e in allowed.targets if e.kind in kinds and (e.kind is TargetKind.DIRECTORY or e.destroy)]
    return sorted({entry.path for entry in entries})


def drop_in_text(allowed: Policy) -> str:
    """Empty if the policy has no directory or file that is written."""
    paths = written_paths(allowed)
    head = f"# Written by “sweetspot-worker sandbox” from {allowed.path}.\n[Service]\n"
    return head + "".join(f"ReadWritePaths={_quoted(path)}\n" for path in paths) if paths else ""


def _quoted(path: str) -> str:
    """In systemd.syntax(7); the service also starts if the path does not exist."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"-{escaped}"'


def drop_in_now() -> str:
    try:
        return DROP_IN.read_text()
    except FileNotFoundError:
        return ""
