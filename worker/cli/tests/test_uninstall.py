"""`uninstall` removes what was installed, below a directory in place of the root, and refuses with an open journal."""

import os
import subprocess
from pathlib import Path

import pytest

from worker.cli import main, sandbox, uninstall
from worker.guard.tests import rig
from worker.journal import Baseline, Journal

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="only root may uninstall")]


class Installed:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.policy = root / "state", root / "etc/policy.toml"
        self.scratch = root / "scratch"
        self.unit = root / "systemd/sweetspot-worker.service"
        self.home, self.command = root / "opt", root / "bin/sweetspot-worker"
        for folder in (self.policy.parent, self.scratch, self.unit.parent, self.home, self.command.parent):
            folder.mkdir(parents=True)
        self.state.mkdir(mode=0o700)
        (self.scratch / ".sweetspot").mkdir(mode=0o700)
        (self.scratch / ".sweetspot/sweetspot.0.0").write_text("test data")
        (self.scratch / "of somebody else").write_text("kept")
        self.policy.write_text(f'[[target]]\nid = "scratch"\nkind = "directory"\npath = "{self.scratch}"\n')
        self.unit.write_text("[Service]\n")
        (self.home / "current").mkdir()
        self.command.symlink_to(self.home / "current")
        monkeypatch.setattr(uninstall, "SYSTEM_STATE", self.state)
        monkeypatch.setattr(uninstall, "SYSTEM_POLICY", self.policy)
        monkeypatch.setattr(uninstall, "HOME", self.home)
        monkeypatch.setattr(uninstall, "COMMAND", self.command)
        monkeypatch.setattr(sandbox, "UNIT", self.unit)
        monkeypatch.setattr(sandbox, "DROP_INS", self.unit.with_name("sweetspot-worker.service.d"))

    def uninstall(self, *options: str) -> int:
        return main(["--state", str(self.state), "--policy", str(self.policy), "uninstall", *options])

    def left(self) -> list[Path]:
        places = (self.state, self.policy.parent, self.unit, self.home, self.command, self.scratch / ".sweetspot")
        return [path for path in places if path.exists() or path.is_symlink()]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    return Installed(tmp_path, monkeypatch)


def test_it_lists_and_removes_everything_that_was_installed(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    places = installed.left()
    assert len(places) == 6
    assert installed.uninstall("--yes") == 0
    assert installed.left() == []
    said = capsys.readouterr().out
    assert all(str(path) in said for path in places)
    assert [path.name for path in installed.scratch.iterdir()] == ["of somebody else"]


def test_it_removes_nothing_without_a_yes(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed.uninstall() == 2  # no terminal to ask on
    assert len(installed.left()) == 6


def test_it_refuses_while_the_journal_has_something_to_undo(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(installed.state / "journal.db")
    journal.save_baselines(
        [
            Baseline(
                run="r", stable_id="host", name="vm.dirty_ratio", device="", boot_id="b", survives_reboot=False,
                before="20", written="10", pending=False, requested=True,
            )
        ]
    )  # fmt: skip
    journal.close()
    assert installed.uninstall("--yes") == 2
    said = capsys.readouterr().err
    assert "vm.dirty_ratio" in said
    assert "sweetspot-worker restore" in said
    assert len(installed.left()) == 6


def test_it_keeps_test_files_that_it_does_not_recognize_as_its_own(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link in place of the private directory leads elsewhere."""
    private, elsewhere = installed.scratch / ".sweetspot", installed.scratch / "elsewhere"
    private.rename(elsewhere)
    private.symlink_to(elsewhere)
    assert installed.uninstall("--yes") == 1
    assert (elsewhere / "sweetspot.0.0").exists()
    assert f"Not done: remove {private}" in capsys.readouterr().err


def test_it_removes_no_directory_that_somebody_names(installed: Installed, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    assert main(["--state", str(other), "--policy", str(installed.policy), "uninstall", "--yes"]) == 2
    assert other.exists()
    assert len(installed.left()) == 6


@pytest.mark.parametrize("folder", ["state/layouts/one", "opt/data"])
def test_it_refuses_while_something_is_mounted_in_a_folder_that_it_removes(
    installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    """A layout that was built by hand and then forgotten. A bind mount has the same device number."""
    elsewhere, point = tmp_path / "elsewhere", tmp_path / folder
    elsewhere.mkdir()
    (elsewhere / "data").write_text("kept")
    point.mkdir(parents=True)
    _bind(elsewhere, point)
    try:
        assert installed.uninstall("--yes") == 2
    finally:
        rig.unmount(point)
    assert f"umount {point}" in capsys.readouterr().err
    assert (elsewhere / "data").exists()
    assert len(installed.left()) == 6


def test_it_removes_no_files_of_a_directory_that_is_mounted_among_the_test_files(
    installed: Installed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere, point = tmp_path / "elsewhere", installed.scratch / ".sweetspot/folder"
    elsewhere.mkdir()
    (elsewhere / "data").write_text("kept")
    point.mkdir()
    _bind(elsewhere, point)
    try:
        assert installed.uninstall("--yes") == 1
    finally:
        rig.unmount(point)
    assert "folder is a mount point" in capsys.readouterr().err
    assert (elsewhere / "data").exists()


def _bind(source: Path, point: Path) -> None:
    if subprocess.run(["mount", "--bind", str(source), str(point)], check=False).returncode:
        pytest.skip("mounts are not allowed here")
