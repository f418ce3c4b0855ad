"""The service's sandbox: its drop-in for the policy's directories, and `doctor` inside it. systemd is not needed."""

import json
import os
from pathlib import Path

import pytest

from worker.cli import doctor, main, sandbox
from worker.contract.tests.example_inventory import INVENTORY
from worker.policy import load
from worker.settings import SETTING_NAMES

DIRECTORY = '[[target]]\nid = "a"\nkind = "directory"\npath = "/srv/50% \\"full\\""\n'
FILES = (
    '[[target]]\nid = "b"\nkind = "file"\npath = "/srv/read.img"\n'
    '[[target]]\nid = "c"\nkind = "file"\npath = "/srv/write.img"\ndestroy = true\n'
)
UNIT = Path(sandbox.__file__).parents[1] / "deploy/sweetspot-worker.service"


@pytest.fixture
def drop_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sandbox, "DROP_INS", tmp_path / "service.d")
    monkeypatch.setattr(sandbox, "DROP_IN", tmp_path / "service.d/policy.conf")
    return tmp_path / "service.d/policy.conf"


def _sandbox(policy: Path, text: str) -> int:
    policy.write_text(text)
    return main(["--state", str(policy.parent / "state"), "--policy", str(policy), "sandbox"])


def test_it_allows_the_directories_and_written_files_of_the_policy(drop_in: Path, tmp_path: Path) -> None:
    assert _sandbox(tmp_path / "policy.toml", DIRECTORY + FILES) == 0
    assert drop_in.read_text().splitlines()[1:] == [
        "[Service]",
        'ReadWritePaths="-/srv/50%% \\"full\\""',
        'ReadWritePaths="-/srv/write.img"',
    ]
    assert drop_in.stat().st_mode & 0o777 == 0o644


def test_it_allows_nothing_any_more_when_the_policy_lists_nothing(drop_in: Path, tmp_path: Path) -> None:
    assert _sandbox(tmp_path / "policy.toml", DIRECTORY) == 0
    assert _sandbox(tmp_path / "policy.toml", "") == 0
    assert not drop_in.exists()


def test_a_policy_that_cannot_be_read_changes_nothing(
    drop_in: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sandbox(tmp_path / "policy.toml", DIRECTORY) == 0
    before = drop_in.read_text()
    assert _sandbox(tmp_path / "policy.toml", "targets = 1\n") == 2
    assert drop_in.read_text() == before
    assert "policy.toml, line 1" in capsys.readouterr().err


def test_it_restarts_the_service_only_if_something_changed(
    drop_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(sandbox, "is_service", lambda: True)
    monkeypatch.setattr(sandbox, "systemctl", lambda *arguments: calls.append(arguments))
    for _ in range(2):
        assert _sandbox(tmp_path / "policy.toml", DIRECTORY) == 0
    assert calls == [("daemon-reload",), ("try-restart", "sweetspot-worker.service")]


def test_doctor_gets_every_limit_of_the_unit_and_nothing_about_its_start() -> None:
    text = f"# /etc/systemd/system/x\n{UNIT.read_text()}\n# drop-in\n[Service]\nReadWritePaths=/srv/scratch\n"
    found = doctor.properties(text)
    assert {"ProtectSystem=strict", "NoNewPrivileges=yes", "ReadWritePaths=/srv/scratch"} <= set(found)
    assert any(line.startswith("SystemCallFilter=") for line in found)
    assert not [line for line in found if line.startswith(("Exec", "Restart", "Type", "Wanted", "Kill", "Timeout"))]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the service")
def test_doctor_runs_itself_in_the_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In place of systemd's programs stand scripts that say what they were called with."""
    _program(tmp_path / "systemctl", f'cat "{UNIT}"')
    _program(tmp_path / "systemd-run", 'printf "%s\\n" "$@"; exit 1')
    monkeypatch.setattr(sandbox, "is_service", lambda: True)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["--state", str(tmp_path / "state"), "--policy", "/etc/p.toml", "doctor", "--json"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "--property=ProtectSystem=strict" in said
    assert said[-4:] == ["--policy", "/etc/p.toml", "doctor", "--json"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the service")
def test_doctor_says_that_it_could_not_run_in_the_sandbox_and_what_the_sandbox_lacks(
    drop_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.toml").write_text(DIRECTORY)
    monkeypatch.setattr(sandbox, "is_service", lambda: True)
    monkeypatch.setattr(doctor, "run_inside", lambda _: (1, "", "Unknown assignment"))
    main(["--state", str(tmp_path / "state"), "--policy", str(tmp_path / "policy.toml"), "doctor", "--json"])
    checks = [check for check in json.loads(capsys.readouterr().out) if check["name"] == "sandbox"]
    assert [check["state"] for check in checks] == ["note", "broken"]
    assert "Unknown assignment" in checks[0]["found"]
    assert "sweetspot-worker sandbox" in checks[1]["advice"]


def test_the_printed_target_is_a_policy(tmp_path: Path) -> None:
    drives = doctor.unlisted_drives(INVENTORY, ())
    assert drives
    (tmp_path / "policy.toml").write_text("\n".join(doctor.block(drive, INVENTORY) for drive in drives))
    read = load(tmp_path / "policy.toml", SETTING_NAMES)
    assert [entry.stable_id for entry in read.targets] == [drive.stable_id for drive in drives]
    assert not any(entry.destroy for entry in read.targets)
    assert not doctor.unlisted_drives(INVENTORY, {drive.stable_id for drive in drives})


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
