"""The installation script in a directory of its own: versions side by side, hints, checksums. pip is the real one."""

import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pip
import pytest
from pytest_django import Settings

from webapp.hosts import installer, wheelhouse
from webapp.hosts.installer import Wheel, _wheel
from worker.guard.tests import rig

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="the script needs root")]
PROJECT = """
[project]
name = "sweetspot-worker"
description = "In place of the worker"
requires-python = ">=3.11"
dependencies = []
scripts = { sweetspot-worker = "worker:main" }
[tool.setuptools]
packages = ["worker"]
package-data = { worker = ["deploy/*"] }
"""
CODE = '__version__ = "{version}"\ndef main():\n    {body}\n'
SYSTEM_PATHS = ("/opt/sweetspot-worker", "/usr/local/bin/", "/etc/", "/var/lib/sweetspot-worker", "/run/systemd/system")


class Place:
    """A directory in place of the root of a host, with a server's files."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._patch = monkeypatch
        (root / "served").mkdir()
        (root / "bin").mkdir()
        self.program("fio", "exit 0")
        copies = f'while [ "$1" != -o ]; do shift; done; cp "{root}/served/${{3##*/}}" "$2"'
        self.program("curl", f'echo "$@" >>"{root}/curl"; {copies}')
        self.state = root / "var/lib/sweetspot-worker"
        self.state.mkdir(parents=True)
        (self.state / "worker.json").write_text("{}")
        monkeypatch.setattr(wheelhouse, "FOLDER", root / "wheelhouse")
        monkeypatch.setattr(wheelhouse, "REQUIREMENTS", root / "requirements.txt")
        monkeypatch.setattr(installer, "REQUIREMENTS", root / "requirements.txt")
        monkeypatch.setattr(wheelhouse, "download", lambda _a, place, _p: _pack_pip(place))
        (root / "requirements.txt").write_text("# nothing else\n")

    def program(self, name: str, text: str) -> None:
        (self.root / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.root / "bin" / name).chmod(0o755)

    def serve(self, version: str, body: str = "print(__version__)") -> None:
        """A worker of this version, and the wheelhouse."""
        source = self.root / f"source-{version}"
        (source / "deploy").mkdir(parents=True)
        (source / "pyproject.toml").write_text(PROJECT)
        (source / "__init__.py").write_text(CODE.format(version=version, body=body))
        (source / "deploy/policy.example.toml").write_text("# nothing\n")
        (source / "deploy/sweetspot-worker.service").write_text(f"# unit of {version}\n")
        self.wheel: Wheel = _wheel(source)
        (self.root / "served" / self.wheel.filename).write_bytes(self.wheel.content)
        built = wheelhouse.build()
        (self.root / "served" / built.filename).write_bytes(built.path.read_bytes())

    def run(self, change: Callable[[str], str] = str) -> subprocess.CompletedProcess[str]:
        text = installer.install_script(self.wheel).text
        for path in SYSTEM_PATHS:
            text = text.replace(f"={path}", f"={self.root}{path}")
        script = self.root / "install.sh"
        script.write_text(change(text))
        environment = {"PATH": f"{self.root}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "PIP_NO_INDEX": "1"}
        return subprocess.run(
            ["sh", str(script)], capture_output=True, text=True, env=environment, timeout=60, check=False, cwd="/"
        )

    def version(self) -> str:
        command = self.root / "usr/local/bin/sweetspot-worker"
        return subprocess.run([command], capture_output=True, text=True, check=True, timeout=10, env={}).stdout.strip()

    def versions(self) -> list[str]:
        return sorted(path.name.split("-")[0] for path in self.root.glob("opt/sweetspot-worker/*-*"))


def _pack_pip(place: Path) -> None:
    """This environment's pip as a wheel; the script only runs it. It starts faster with compiled modules."""
    source, wheel = Path(pip.__file__).parent, place / f"pip-{pip.__version__}-py3-none-any.whl"
    if wheel.exists():  # it is the same for each Python and machine
        return
    with zipfile.ZipFile(wheel, "w") as archive:
        for compiled in source.rglob("__pycache__/*.pyc"):
            folder = "pip" / compiled.parents[1].relative_to(source)
            archive.write(compiled, str(folder / f"{compiled.name.partition('.')[0]}.pyc"))
        for path in sorted(source.rglob("*.py")) + sorted(source.rglob("*.pem")) + sorted(source.rglob("*.txt")):
            archive.write(path, f"pip/{path.relative_to(source)}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_a_new_version_is_swapped_in_and_a_failed_one_leaves_the_old_one(place: Place) -> None:
    place.serve("1.0")
    assert (done := place.run()).returncode == 0, done.stderr
    assert place.version() == "1.0"
    place.serve("1.1", body="raise SystemExit(1)")
    failed = place.run()
    assert failed.returncode == 1
    assert "the new version does not start. The installed version" in failed.stderr
    assert (place.version(), place.versions()) == ("1.0", ["1.0"])
    place.serve("1.2")
    assert place.run().returncode == 0
    place.serve("1.3")
    assert place.run().returncode == 0
    assert (place.version(), place.versions()) == ("1.3", ["1.2", "1.3"])  # the previous one is kept


def test_a_private_authority_is_kept_and_all_downloads_trust_it_alone(
    place: Place, tmp_path: Path, settings: Settings
) -> None:
    certificate = tmp_path / "authority.crt"
    certificate.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    settings.AUTHORITY = str(certificate)
    place.serve("1.0")
    assert (done := place.run()).returncode == 0, done.stderr
    assert (place.root / "etc/sweetspot-worker/ca.crt").read_text() == certificate.read_text()
    calls = (place.root / "curl").read_text().splitlines()
    assert [("--cacert" in call, "-k" in call.split()) for call in calls] == [(True, False)] * 2


def test_an_old_version_in_which_something_is_mounted_is_not_deleted(place: Place, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").touch()
    old = place.root / "opt/sweetspot-worker/0.9-abcdef"
    (old / "data").mkdir(parents=True)
    other = old.with_name("0.8-abcdef")
    other.mkdir()
    place.serve("1.0")
    with rig.bound(precious, old / "data"):
        assert (done := place.run()).returncode == 0, done.stderr
        assert (precious / "data").exists()
    assert place.versions() == ["0.9", "1.0"]


def test_a_version_whose_service_does_not_stay_up_is_swapped_out_again(place: Place) -> None:
    (place.root / "run/systemd/system").mkdir(parents=True)
    (place.root / "etc/systemd/system").mkdir(parents=True)
    unit = place.root / "etc/systemd/system/sweetspot-worker.service"
    # In place of systemd: the main process of version 1.1 gets another pid with every look.
    place.program("systemctl", f'[ "$1" != show ] || if grep -q 1.1 "{unit}"; then date +%N; else echo 7; fi')
    place.program("sleep", "exit 0")
    place.serve("1.0")
    assert (done := place.run()).returncode == 0, done.stderr
    place.serve("1.1")
    failed = place.run()
    assert failed.returncode == 1
    assert "the service did not start with the new version. The installed version" in failed.stderr
    assert (place.version(), place.versions(), unit.read_text()) == ("1.0", ["1.0"], "# unit of 1.0\n")


def test_a_lost_connection_keeps_the_version_that_is_in_use(place: Place) -> None:
    """The script is hung up while it waits whether the service stays up."""
    (place.root / "run/systemd/system").mkdir(parents=True)
    (place.root / "etc/systemd/system").mkdir(parents=True)
    place.program("systemctl", '[ "$1" != show ] || echo 7')
    place.program("sleep", 'kill -HUP "$PPID"')
    place.serve("1.0")
    done = place.run(lambda text: text.replace("set -eu\n", '[ -n "${BASH:-}" ] || exec bash "$0"\nset -eu\n', 1))
    assert done.returncode == 0, done.stderr
    assert place.version() == "1.0"


def test_it_says_in_a_sentence_that_a_checksum_is_wrong(place: Place) -> None:
    place.serve("1.0")
    for file in (place.root / "served").iterdir():
        kept = file.read_bytes()
        file.write_bytes(kept + b"more")
        done = place.run()
        assert done.returncode == 1
        assert f"the checksum of {file.name} is wrong" in done.stderr
        file.write_bytes(kept)
    assert place.versions() == []


def test_pip_refuses_a_wheel_with_another_hash_than_listed(place: Place) -> None:
    """Also if somebody replaced the wheelhouse together with its checksum."""
    place.serve("1.0")
    done = place.run(lambda text: text.replace(f"--hash=sha256:{place.wheel.sha256}", f"--hash=sha256:{'0' * 64}"))
    assert done.returncode == 1
    assert "pip could not install the worker's packages" in done.stderr
    assert place.versions() == []


def test_it_finds_a_newer_python_beside_python3(place: Place) -> None:
    place.program("python3", "exit 1")
    place.program("python3.11", 'exec /usr/bin/python3 "$@"')
    for name in ("python3.12", "python3.13", "python3.14"):
        place.program(name, "exit 1")
    place.serve("1.0")
    done = place.run()
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install python3.11 fio"),
        ('ID="sles"\nID_LIKE="suse"\n', "zypper install python311 fio"),
        ("ID=arch\n", "this system's package manager"),
    ],
)
def test_it_names_the_packages_of_the_distribution(place: Place, release: str, words: str) -> None:
    for name in ("python3", "python3.14", "python3.13", "python3.12", "python3.11"):
        place.program(name, "exit 1")
    place.program("apt-get", "echo apt-get was called >&2; exit 1")
    (place.root / "etc").mkdir(exist_ok=True)
    (place.root / "etc/os-release").write_text(release)
    place.serve("1.0")
    done = place.run()
    assert done.returncode == 1
    assert words in done.stderr
    assert "missing: Python 3.11 to 3.14" in done.stderr
    assert "apt" not in done.stderr + done.stdout


def test_without_a_wheelhouse_it_says_so_with_the_command(place: Place) -> None:
    place.serve("1.0")
    for path in (place.root / "wheelhouse").iterdir():
        path.unlink()
    done = place.run()
    assert "this server has no wheelhouse (to build it, run there: python -m webapp.hosts.wheelhouse)" in done.stdout
