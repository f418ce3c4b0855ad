"""The wheelhouse: one zip file with the packages of all workers."""

import hashlib
import zipfile
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from webapp.hosts import wheelhouse
from webapp.hosts.installer import install_script
from worker import __version__


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the one of this clone; a wheel of each platform comes from nowhere."""

    def download(_arguments: list[str], place: Path, platform: tuple[str, str]) -> None:
        (place / f"part-{'-'.join(platform)}.whl").write_text("wheel")

    monkeypatch.setattr(wheelhouse, "FOLDER", tmp_path / "wheelhouse")
    monkeypatch.setattr(wheelhouse, "download", download)
    return tmp_path / "wheelhouse"


def test_it_holds_the_wheels_of_every_python_and_machine(folder: Path) -> None:
    found = wheelhouse.build()
    names = zipfile.ZipFile(found.path).namelist()
    assert len(names) == len(wheelhouse.PLATFORMS)
    assert {"part-3.11-x86_64.whl", "part-3.13-aarch64.whl"} <= set(names)


def test_every_server_builds_the_same_bytes(folder: Path) -> None:
    first = wheelhouse.build().sha256
    assert wheelhouse.build().sha256 == first == hashlib.sha256(next(folder.iterdir()).read_bytes()).hexdigest()


def test_a_wheelhouse_of_another_version_counts_as_not_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheelhouse.build()
    other = folder.parent / "requirements.txt"
    other.write_text("msgspec==9.9.9\n")
    monkeypatch.setattr(wheelhouse, "REQUIREMENTS", other)
    assert wheelhouse.built_wheelhouse() is None
    wheelhouse.build()
    assert len(list(folder.iterdir())) == 1


def test_a_wheelhouse_from_another_machine_needs_no_package_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheelhouse.build()
    monkeypatch.setattr(wheelhouse, "build", lambda: pytest.fail("packages are downloaded again"))
    assert wheelhouse.main() == 0


def test_it_says_what_pip_says(tmp_path: Path) -> None:
    with pytest.raises(wheelhouse.NotBuilt, match=r"for Python 3.11 on aarch64: .*nothing-here"):
        wheelhouse.download([str(tmp_path / "nothing-here.whl")], tmp_path, ("3.11", "aarch64"))


def test_the_server_serves_what_its_script_names(folder: Path, client: Client) -> None:
    found = wheelhouse.build()
    answer = client.get(f"/worker/{__version__}/{found.filename}")
    content = b"".join(answer.streaming_content)  # type: ignore[attr-defined]
    assert f"wheels_sha256='{hashlib.sha256(content).hexdigest()}'" in install_script().text
    assert f"wheels='{found.filename}'" in install_script().text
    assert client.get(f"/worker/{__version__}/wheels-0123456789abcdef.zip").status_code == 404


def test_the_script_lists_the_sha256_of_every_package(folder: Path) -> None:
    listed = (Path(settings.BASE_DIR) / "worker/deploy/requirements.txt").read_text().strip()
    assert listed in install_script().text
    pins = listed.split("\n#")[0].replace("\\\n", "").splitlines()[1:]
    assert all("==" in pin and "--hash=sha256:" in pin for pin in pins)
