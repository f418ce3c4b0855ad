"""`sandbox`: let the service write to the directories and files of the policy; the unit of the service."""

import argparse
import subprocess
import sys
from pathlib import Path

from worker import policy
from worker.contract.workload import TargetKind
from worker.link.enrolment import ConfigError, Paths
from worker.policy import Policy, PolicyError
from worker.settings import SETTING_NAMES

# The worker's systemd unit, and the drop-in that lets it write to the directories and files of the policy.

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


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "sandbox", help="let the service write to the directories of the policy, and restart it if that changes"
    )
    parser.add_argument("--no-restart", action="store_true", help="only write the file for systemd")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    """Write the unit's drop-in. A restart stops a running trial."""
    try:
        wanted = drop_in_text(policy.load(paths.policy, SETTING_NAMES))
    except PolicyError as error:
        raise ConfigError(error.code, str(error)) from error
    if wanted == drop_in_now():
        print("The sandbox of the service already allows the directories of the policy.")
        return 0
    try:
        _write(wanted)
        if not options.no_restart and is_service():
            systemctl("daemon-reload")
            systemctl("try-restart", NAME)
    except OSError as error:
        raise ConfigError("sandbox", f"{DROP_IN} cannot be written: {error.strerror}.") from error
    except subprocess.SubprocessError as error:
        print(f"sweetspot-worker: systemd could not restart the service: {error}", file=sys.stderr)
        return 1
    print(wanted, end="")
    return 0


def _write(text: str) -> None:
    if not text:
        DROP_IN.unlink(missing_ok=True)
        return
    DROP_INS.mkdir(mode=0o755, parents=True, exist_ok=True)
    part = DROP_IN.with_suffix(".new")
    part.write_text(text)
    part.chmod(0o644)
    part.replace(DROP_IN)
