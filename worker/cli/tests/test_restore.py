"""`restore` lists its changes and asks before it makes them, on a real loop device."""

import io
import os
import pty
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.cli import main
from worker.contract.orders import SettingRequest
from worker.guard.tests import rig
from worker.journal import Baseline, Journal
from worker.kernel.targets import OpenTarget
from worker.settings import session

pytestmark = rig.needs_root


class Changed:
    """A state directory whose journal holds one changed setting of a loop device."""

    def __init__(self, folder: Path, device: str, file: Path) -> None:
        self.options = ["--state", str(folder), "--policy", str(folder / "policy.toml")]
        self.path = folder / "journal.db"
        self.name = Path(device).name
        self.file = Path(f"/sys/block/{self.name}/queue/read_ahead_kb")
        self.file.write_text("256")
        policy = rig.load(folder, rig.block(device, file, settings=["*"]))
        request = SettingRequest(name="read_ahead_kb", value="64")
        target = OpenTarget(path=device, device=self.name, target="disk")
        journal = Journal(self.path)
        session.apply_settings([request], "run", {0: target}, policy, journal)
        journal.close()

    def restore(self, *arguments: str) -> int:
        return main([*self.options, "restore", *arguments])

    def value(self) -> str:
        return self.file.read_text().strip()


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[Changed]:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device:
        yield Changed(folder, device, file)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Type a line on a terminal."""
    typist, terminal = pty.openpty()
    os.write(typist, f"{text}\n".encode())
    monkeypatch.setattr("sys.stdin", os.fdopen(terminal))


@pytest.mark.parametrize("text", ["y", "Yes"])
def test_it_restores_after_a_yes(
    changed: Changed, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, text)
    assert changed.restore() == 0
    assert changed.value() == "256"
    out = capsys.readouterr().out
    assert f"read_ahead_kb of {changed.name}: restore 256\nContinue? (y/N)" in out
    assert f"read_ahead_kb of {changed.name}: restored to 256" in out


@pytest.mark.parametrize("text", ["", "n", "yep"])
def test_it_changes_nothing_after_any_other_answer(
    changed: Changed, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, text)
    assert changed.restore() == 1
    assert changed.value() == "64"
    assert "Nothing was changed." in capsys.readouterr().out
    assert changed.restore("--yes") == 0


def test_it_refuses_without_a_terminal_and_without_yes(
    changed: Changed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert changed.restore() == 2
    assert changed.value() == "64"
    assert "--yes" in capsys.readouterr().err
    assert changed.restore("--yes", "--json") == 0
    told = capsys.readouterr()
    assert told.out.startswith("[{")
    assert f"read_ahead_kb of {changed.name}: restore 256" in told.err
    assert changed.value() == "256"


def test_it_lists_what_it_cannot_restore(changed: Changed, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(changed.path)
    kept = Baseline(
        run="run", stable_id="gone", name="nomerges", device="sdx", boot_id=journal.boot_id, survives_reboot=False,
        before="0", written="1", pending=False, requested=True,
    )  # fmt: skip
    journal.save_baselines([kept])
    journal.close()
    assert changed.restore("--yes") == 1
    assert "nomerges of sdx: cannot be restored now: the device is absent" in capsys.readouterr().out


def test_it_lists_layouts_before_it_takes_them_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from worker.layouts.tests.rack import racked

    with racked(tmp_path) as rack:
        record = rack.build("single / ext4").record
        options = ["--state", str(rack.state), "--policy", str(rack.folder / "policy.toml")]
        assert main([*options, "restore"]) == 2
        words = f"layout {record.key} (single / ext4): take down; all data of the layout on {rack.devices[0]} is lost"
        assert words in capsys.readouterr().out
        assert rack.journal.layouts() == (record,)
        assert main([*options, "restore", "--yes"]) == 0
        rack.assert_blank()
