"""Tests of the lab that do not boot the guest."""

import json
import socket
import subprocess
import sys
import tarfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from dev.console import columns
from dev.lab import image, worker_archive
from dev.lab.__main__ import Lab
from dev.lab.machine import PORT_FORWARD, Machine
from dev.lab.settings import TRIALS
from dev.lab.storage_host import BAYS, POOL, guest_policy, serials
from dev.lab.suite import differences
from worker import policy
from worker.settings import SETTING_NAMES

REPOSITORY = Path(__file__).parents[3]


def test_it_says_what_is_otherwise_than_before() -> None:
    before = {"setting.LAB1.scheduler": "none", "content.LAB1": "", "gone": "1"}
    after = {"setting.LAB1.scheduler": "mq-deadline", "content.LAB1": "", "new": "2"}
    assert differences(before, before) == []
    assert differences(before, after) == [
        "gone: 1 → (missing)",
        "new: (missing) → 2",
        "setting.LAB1.scheduler: none → mq-deadline",
    ]


@pytest.mark.parametrize("keep", [True, False])
def test_it_says_that_all_was_stopped_only_if_it_was(keep: bool, capsys: pytest.CaptureFixture[str]) -> None:
    lab = Lab.__new__(Lab)
    lab.server, lab.machine = Mock(), Mock(pid=7, ssh_line="ssh root@127.0.0.1")
    lab.end(keep=keep)
    said = capsys.readouterr()
    assert ("stopped" in said.out + said.err, lab.machine.end.called) == (not keep, not keep)


def test_it_writes_equal_columns() -> None:
    head, row = columns([("layout", "MB/s", "p99 µs"), ("raid0 x4 chunk 64k / xfs", "12.3", "88")])
    assert row.split("  ")[-1].strip() == "88"
    assert head.index("MB/s") == row.index("12.3")


def test_a_guest_of_another_recipe_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []
    monkeypatch.setattr(image, "install_packages", lambda: None)
    monkeypatch.setattr(image, "_run", lambda _: None)
    monkeypatch.setattr(image, "_pack", lambda directory, _: built.append(directory))
    (tmp_path / "key").touch()
    (tmp_path / "root.img").touch()
    image.build(tmp_path)
    image.build(tmp_path)
    assert len(built) == 1
    monkeypatch.setattr(image, "GUEST_PACKAGES", ("fio",))
    image.build(tmp_path)
    assert len(built) == 2


def test_a_connection_of_the_guest_reaches_the_port_of_that_name(tmp_path: Path) -> None:
    ports = tmp_path / "ports.json"
    with socket.create_server(("127.0.0.1", 0)) as server:
        ports.write_text(json.dumps({"web": server.getsockname()[1]}))
        guest, end = socket.socketpair()
        with (
            guest,
            subprocess.Popen(
                [sys.executable, "-S", "-E", str(PORT_FORWARD), str(ports), "web"],
                stdin=end.fileno(),
                stdout=end.fileno(),
            ),
        ):
            end.close()
            accepted, _ = server.accept()
            with accepted:
                guest.sendall(b"asked")
                assert accepted.recv(100) == b"asked"
                accepted.sendall(b"answered")
            assert guest.makefile("rb").read() == b"answered"
            guest.shutdown(socket.SHUT_WR)


def test_the_guests_policy_is_one_that_the_worker_takes(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(guest_policy())
    path.chmod(0o600)
    found = policy.load(path, SETTING_NAMES)
    assert [drive.serial for drive in found.drives(POOL)] == list(serials(*BAYS))
    named = {name for entry in found.targets for name in entry.settings} | {*found.host_settings}
    assert {name for _, _, wanted in TRIALS for name in wanted} <= named


def test_what_goes_into_the_guest_is_the_worker_and_all_that_it_needs(tmp_path: Path) -> None:
    worker_archive.pack(REPOSITORY, tmp_path / "guest.tar")
    with tarfile.open(tmp_path / "guest.tar") as tar:
        names = set(tar.getnames())
    assert {
        "worker/orders/trial.py",
        "worker/tests/lab/snapshot.py",
        "celery/__init__.py",
        "redis/__init__.py",
    } <= names
    assert {"msgspec/__init__.py", "pytest/__init__.py", "_pytest/__init__.py", "pluggy/__init__.py"} <= names
    assert not any(name.startswith(("django/", "webapp/")) for name in names)


def test_a_process_that_has_its_pid_by_now_is_not_the_machine(tmp_path: Path) -> None:
    machine = Machine(tmp_path, _pid=1, _ticks=12345)
    assert not machine.alive
