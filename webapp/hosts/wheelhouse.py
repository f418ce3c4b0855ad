"""`python -m webapp.hosts.wheelhouse`: download the packages that workers install, so that hosts need no package index.

They are the wheels of worker/deploy/requirements.txt, for each Python and machine below, in one zip file. pip compares
each wheel with its sha256 there; a host does so again. The name of the zip file contains a digest of that list, so
that after an upgrade of the server an older zip file counts as not built. Works without the server's settings.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

BASE = Path(__file__).resolve().parents[2]
REQUIREMENTS = BASE / "worker/deploy/requirements.txt"
FOLDER = BASE / ".build/wheelhouse"
COMMAND = "python -m webapp.hosts.wheelhouse"
PLATFORMS = tuple(product(("3.11", "3.12", "3.13", "3.14"), ("x86_64", "aarch64")))
LIBRARIES = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")  # glibc 2.28: RHEL 8, Debian 10, Ubuntu 20.04
LIMIT_S = 300
MADE_AT = (2020, 1, 1, 0, 0, 0)  # of all entries of archives, so that every server builds the same bytes


class NotBuilt(Exception):
    """pip could not download the packages; the message has the end of its output."""


@dataclass(frozen=True)
class Wheelhouse:
    path: Path
    sha256: str

    @property
    def filename(self) -> str:
        return self.path.name


def built_wheelhouse() -> Wheelhouse | None:
    """The zip file of this server's version, if it was built."""
    path = _path()
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return Wheelhouse(path, _digest(path, facts.st_mtime_ns, facts.st_size))


def build() -> Wheelhouse:
    """Download all wheels and write the zip file. Raises NotBuilt."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for platform in PLATFORMS:
            download(["--require-hashes", "--requirement", str(REQUIREMENTS)], Path(folder), platform)
        _zip(Path(folder), _path())
    _delete_others(_path())
    wheelhouse = built_wheelhouse()
    if wheelhouse is None:
        raise NotBuilt(f"{_path()} was deleted while it was built.")
    return wheelhouse


def download(arguments: list[str], folder: Path, platform: tuple[str, str]) -> None:
    """Let pip download wheels for a Python and a machine. Raises NotBuilt."""
    python, machine = platform
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
        "--timeout=15", "--retries=2", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
        *(f"--platform={library}_{machine}" for library in LIBRARIES), "--dest", str(folder), *arguments,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotBuilt(f"pip did not answer within {LIMIT_S} s.") from error
    if done.returncode:
        raise NotBuilt(f"pip, for Python {python} on {machine}: {done.stderr.strip()[-1500:]}")


def _path() -> Path:
    return FOLDER / f"wheels-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]}.zip"


def _zip(wheels: Path, path: Path) -> None:
    """Write the same bytes on every server, in one step."""
    part = path.with_suffix(f".{os.getpid()}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        for wheel in sorted(wheels.iterdir()):
            archive.writestr(zipfile.ZipInfo(wheel.name, MADE_AT), wheel.read_bytes())
    part.chmod(0o644)
    part.replace(path)


def _delete_others(newest: Path) -> None:
    for path in FOLDER.glob("wheels-*.zip"):
        if path != newest:
            path.unlink()


@lru_cache(maxsize=4)
def _digest(path: Path, _changed_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> int:
    """Exit status: 0 if the wheelhouse exists, 1 if pip could not download the packages."""
    try:
        wheelhouse = built_wheelhouse() or build()
    except NotBuilt as error:
        print(f"The wheelhouse was not built. {error}", file=sys.stderr)
        return 1
    print(f"{wheelhouse.path}: {wheelhouse.path.stat().st_size / 1e6:.1f} MB, sha256 {wheelhouse.sha256}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
