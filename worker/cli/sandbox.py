"""`sandbox`: let the service write to the directories and files of the policy."""

import argparse
import subprocess
import sys

from worker import policy
from worker.cli import service_unit
from worker.link.enrolment import ConfigError, Paths
from worker.policy import PolicyError
from worker.settings import SETTING_NAMES


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "sandbox", help="let the service write to the directories of the policy, and restart it if that changes"
    )
    parser.add_argument("--no-restart", action="store_true", help="only write the file for systemd")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    """Write the unit's drop-in. A restart stops a running trial."""
    try:
        wanted = service_unit.drop_in_text(policy.load(paths.policy, SETTING_NAMES))
    except PolicyError as error:
        raise ConfigError(error.code, str(error)) from error
    if wanted == service_unit.drop_in_now():
        print("The sandbox of the service already allows the directories of the policy.")
        return 0
    try:
        _write(wanted)
        if not options.no_restart and service_unit.is_service():
            service_unit.systemctl("daemon-reload")
            service_unit.systemctl("try-restart", service_unit.NAME)
    except OSError as error:
        raise ConfigError("sandbox", f"{service_unit.DROP_IN} cannot be written: {error.strerror}.") from error
    except subprocess.SubprocessError as error:
        print(f"sweetspot-worker: systemd could not restart the service: {error}", file=sys.stderr)
        return 1
    print(wanted, end="")
    return 0


def _write(text: str) -> None:
    if not text:
        service_unit.DROP_IN.unlink(missing_ok=True)
        return
    service_unit.DROP_INS.mkdir(mode=0o755, parents=True, exist_ok=True)
    part = service_unit.DROP_IN.with_suffix(".new")
    part.write_text(text)
    part.chmod(0o644)
    part.replace(service_unit.DROP_IN)
