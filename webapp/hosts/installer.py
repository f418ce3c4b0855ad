"""Installs the worker on a storage server: the wheels, the installation script, and the shell command that fetches it.

The command contains the script's checksum. The script contains the checksums of the worker's wheel and of every
package, so root installs only what this server lists.
"""

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from webapp.hosts.wheel import Wheel, worker_wheel
from webapp.hosts.wheelhouse import COMMAND, REQUIREMENTS, built_wheelhouse

SCRIPT = "install.sh"
WRONG = "echo 'The checksum of the installer is wrong, so it was not run. Create a new command on the server.' >&2"


@dataclass(frozen=True)
class Script:
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def install_script(wheel: Wheel | None = None) -> Script:
    """The script for this server and its version of the worker."""
    wheel, wheelhouse = wheel or worker_wheel(), built_wheelhouse()
    text = (Path(settings.BASE_DIR) / "worker/deploy" / SCRIPT).read_text()
    names = {
        "SERVER": settings.PUBLIC_URL.rstrip("/"),
        "VERSION": wheel.version,
        "WHEEL": wheel.filename,
        "SHA256": wheel.sha256,
        "WHEELS": wheelhouse.filename if wheelhouse else "",
        "WHEELS_SHA256": wheelhouse.sha256 if wheelhouse else "",
        "BUILD": COMMAND,
        "REQUIREMENTS": REQUIREMENTS.read_text().strip(),
    }
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return Script(text)


def install_line(*, token: str, key: str, again: bool) -> str:
    """The command for a root shell. The token is in the environment, where `ps` does not show it to other users."""
    return f'{_fetched()} && SWEETSPOT_TOKEN={token} sh "$f" --key {key}{" --again" if again else ""}'


def upgrade_line() -> str:
    """The command that updates an enrolled host's worker to this server's version."""
    return f'{_fetched()} && sh "$f"'


def _fetched() -> str:
    """Fetches the script as $f and checks its checksum."""
    url = shlex.quote(f"{settings.PUBLIC_URL.rstrip('/')}/worker/{worker_wheel().version}/{SCRIPT}")
    fetch = f'f=$(mktemp) && {{ curl -fsSo "$f" {url} || wget -qO "$f" {url}; }}'
    check = f'{{ echo "{install_script().sha256}  $f" | sha256sum -c --status || {{ {WRONG}; false; }}; }}'
    return f"{fetch} && {check}"
