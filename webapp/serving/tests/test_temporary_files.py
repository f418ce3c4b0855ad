"""The directory of uploads in progress. Files and locks are real."""

import os
import tempfile
from pathlib import Path

import pytest

from webapp.serving import PREFIX, OwnDirectory


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_temporary_files_are_in_it_until_the_end(folder: Path) -> None:
    own = OwnDirectory()
    with tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).parent == own.path
    (own.path / "left").touch()
    own.remove()
    assert list(folder.iterdir()) == []
    assert tempfile.gettempdir() == str(folder)


def test_what_a_killed_server_left_is_removed_and_a_running_one_is_not_disturbed(folder: Path) -> None:
    left, foreign = folder / f"{PREFIX}left", folder / "another-program"
    left.mkdir()
    foreign.mkdir()
    (left / "upload").touch()
    link = folder / f"{PREFIX}link"
    link.symlink_to(foreign)
    first = OwnDirectory()
    tempfile.tempdir = None
    second = OwnDirectory()
    assert sorted(folder.iterdir()) == sorted([first.path, second.path, foreign, link])
    first.remove()
    second.remove()


@pytest.mark.skipif(os.getuid() != 0, reason="root can create another user's directory")
def test_another_users_directory_is_not_removed(folder: Path) -> None:
    other = folder / f"{PREFIX}other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    OwnDirectory().remove()
    assert other.exists()
