"""Installs the worker on a storage server: the wheels, the installation script, and the shell command that fetches it.

The command contains the script's checksum. The script contains the checksums of the worker's wheel and of every
package, so root installs only what this server lists.
"""

import base64
import hashlib
import io
import shlex
import tomllib
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from webapp.hosts.wheelhouse import COMMAND, MADE_AT, REQUIREMENTS, built_wheelhouse

# Builds the wheels of the worker and of the command `sweetspot` from the server's own sources, so that they have the
# server's version.
#
# A wheel is a zip file with metadata (PyPA, binary distribution format 1.0). Its timestamps are fixed, so every
# process builds the same bytes and the checksum in an enrolment command stays valid after a restart.

_TAG = "py3-none-any"


@dataclass(frozen=True)
class Wheel:
    version: str
    filename: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@cache
def worker_wheel() -> Wheel:
    """The worker's wheel, built once per process. Raises OSError if its sources are missing."""
    return _wheel(Path(settings.BASE_DIR) / "worker")


@cache
def client_wheel() -> Wheel:
    """The wheel of the command `sweetspot`, built once per process. Raises OSError if its sources are missing."""
    return _wheel(Path(settings.BASE_DIR) / "worker" / "client")


def _wheel(source: Path) -> Wheel:
    project = tomllib.loads((source / "pyproject.toml").read_text())
    version = _version(source)
    name = str(project["project"]["name"]).replace("-", "_")
    package = str(project["tool"]["setuptools"]["packages"][0])
    files = {f"{package}/{path}": (source / path).read_bytes() for path in _paths(source, project)}
    files |= _about(project, package, f"{name}-{version}.dist-info", version)
    return Wheel(version, f"{name}-{version}-{_TAG}.whl", _zipped(files, f"{name}-{version}.dist-info/RECORD"))


def _version(source: Path) -> str:
    for line in (source / "__init__.py").read_text().splitlines():
        name, _, value = line.partition(" = ")
        if name == "__version__":
            return value.strip('"')
    raise OSError(f"{source}/__init__.py names no __version__.")


def _paths(source: Path, project: dict[str, Any]) -> list[str]:
    """The modules of the listed packages, and the data files."""
    tool = project["tool"]["setuptools"]
    folders = [source.joinpath(*str(package).split(".")[1:]) for package in tool["packages"]]
    modules = [path for folder in folders for path in folder.glob("*.py")]
    patterns = [pattern for each in tool.get("package-data", {}).values() for pattern in each]
    data = [path for pattern in patterns for path in source.glob(pattern) if path.is_file()]
    return sorted(str(path.relative_to(source)) for path in [*modules, *data])


def _about(project: dict[str, Any], package: str, folder: str, version: str) -> dict[str, bytes]:
    facts = project["project"]
    needs = [f"Requires-Dist: {need}" for need in facts["dependencies"]]
    for extra, more in facts.get("optional-dependencies", {}).items():
        needs += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in more)]
    head = [
        "Metadata-Version: 2.1",
        f"Name: {facts['name']}",
        f"Version: {version}",
        f"Summary: {facts['description']}",
    ]
    scripts = [f"{name} = {target}" for name, target in facts["scripts"].items()]
    texts = {
        "METADATA": [*head, f"Requires-Python: {facts['requires-python']}", *needs],
        "WHEEL": ["Wheel-Version: 1.0", "Generator: sweetspot", "Root-Is-Purelib: true", f"Tag: {_TAG}"],
        "entry_points.txt": ["[console_scripts]", *scripts],
        "top_level.txt": [package],
    }
    return {f"{folder}/{name}": ("\n".join(lines) + "\n").encode() for name, lines in texts.items()}


def _zipped(files: dict[str, bytes], record: str) -> bytes:
    lines = [f"{name},{_digest(content)},{len(content)}" for name, content in files.items()] + [f"{record},,"]
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, record: ("\n".join(lines) + "\n").encode()}.items():
            entry = zipfile.ZipInfo(name, MADE_AT)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return whole.getvalue()


def _digest(content: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


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
        "AUTHORITY": authority().strip(),
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


def authority() -> str:
    """The certificate of the server's private authority, PEM; "" if the server's certificate needs none."""
    return Path(settings.AUTHORITY).read_text() if settings.AUTHORITY else ""


def _fetched() -> str:
    """Fetches the script as $f and checks its checksum, which proves it also where the authority is not yet trusted.
    The script contains the authority's certificate."""
    url = shlex.quote(f"{settings.PUBLIC_URL.rstrip('/')}/worker/{worker_wheel().version}/{SCRIPT}")
    curl, wget = ("curl -k", "wget --no-check-certificate") if settings.AUTHORITY else ("curl", "wget")
    fetch = f'f=$(mktemp) && {{ {curl} -fsSo "$f" {url} || {wget} -qO "$f" {url}; }}'
    check = f'{{ echo "{install_script().sha256}  $f" | sha256sum -c --status || {{ {WRONG}; false; }}; }}'
    return f"{fetch} && {check}"
