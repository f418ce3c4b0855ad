"""Settings that a person changes outside any run, on a real loop device: they stay, and go back when asked to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.contract.items import SettingRecord, SettingRestored
from worker.contract.orders import SettingRequest
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.orders import manual_setting
from worker.settings import session
from worker.settings.base import SettingFailed
from worker.settings.restore import BY_HAND, restore_run

pytestmark = rig.needs_root


class Host:
    def __init__(self, folder: Path, device: str, file: Path) -> None:
        self.forbidden = rig.load(folder, rig.block(device, file))
        self.allowed = rig.load(folder, rig.block(device, file, settings=["*"]))
        self.device = Path(device).name
        self.open_target = OpenTarget(path=device, device=self.device, target="disk")
        self.journal = Journal(folder / "journal.db")

    def now(self, name: str) -> str:
        return Path(f"/sys/block/{self.device}/queue/{name}").read_text().strip()

    def write(self, name: str, value: str) -> None:
        Path(f"/sys/block/{self.device}/queue/{name}").write_text(value)

    def change(self, name: str, value: str) -> list[SettingRecord]:
        return manual_setting.change(name, value, self.open_target, self.allowed, self.journal)

    def put_back(self, name: str) -> list[SettingRestored]:
        return manual_setting.restore(name, self.open_target, self.journal)

    def apply_settings(self, **values: str) -> list[SettingRecord]:
        requests = [SettingRequest(name=name, value=value) for name, value in values.items()]
        return session.apply_settings(requests, "run", {0: self.open_target}, self.allowed, self.journal)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device:
        found = Host(tmp_path, device, file)
        for name, value in {"scheduler": "none", "nr_requests": "100", "read_ahead_kb": "256"}.items():
            found.write(name, value)
        yield found
        restore_run(BY_HAND, found.journal)


def test_it_is_read_without_being_touched(host: Host) -> None:
    told = manual_setting.read("read_ahead_kb", host.open_target)
    assert (told.asked, told.observed, told.device) == ("", "256", host.device)
    assert not host.journal.baselines()


def test_it_survives_restarts_and_runs_until_it_is_restored(host: Host) -> None:
    (told,) = host.change("read_ahead_kb", "64")
    assert (told.before, told.asked, told.observed) == ("256", "64", "64")
    assert session.restore_all(host.journal) == []
    assert host.now("read_ahead_kb") == "64"
    host.apply_settings(read_ahead_kb="512", nr_requests="32")
    assert host.now("read_ahead_kb") == "512"
    restore_run("run", host.journal)
    assert (host.now("read_ahead_kb"), host.now("nr_requests")) == ("64", "100")
    (back,) = host.put_back("read_ahead_kb")
    assert (back.restored, back.observed, host.now("read_ahead_kb")) == (True, "256", "256")
    assert not host.journal.baselines()


def test_settings_that_the_kernel_changed_with_it_are_restored_too(host: Host) -> None:
    host.change("scheduler", "mq-deadline")
    host.change("read_ahead_kb", "64")
    host.put_back("scheduler")
    assert host.now("scheduler").startswith("[none]")
    assert (host.now("nr_requests"), host.now("read_ahead_kb")) == ("100", "64")


def test_it_is_not_restored_if_another_program_changed_it(host: Host) -> None:
    host.change("read_ahead_kb", "64")
    host.write("read_ahead_kb", "128")
    (back,) = host.put_back("read_ahead_kb")
    assert not back.restored
    assert "another program or person" in back.note
    assert host.now("read_ahead_kb") == "128"


def refused(host: Host, name: str, value: str, code: str) -> None:
    with pytest.raises(SettingFailed) as failed:
        host.change(name, value)
    assert failed.value.code == code


def test_it_is_refused_with_the_same_messages_as_in_runs(host: Host) -> None:
    refused(host, "no_such", "1", "setting_unknown")
    refused(host, "scheduler", "elevator", "setting_refused")
    with pytest.raises(SettingFailed, match="was not changed by hand"):
        host.put_back("read_ahead_kb")
    with pytest.raises(SettingFailed) as failed:
        manual_setting.change("read_ahead_kb", "64", host.open_target, host.forbidden, host.journal)
    assert failed.value.code == "setting_not_allowed"
    assert host.now("read_ahead_kb") == "256"


def test_a_run_that_holds_settings_is_not_disturbed(host: Host) -> None:
    host.apply_settings(nr_requests="32")
    refused(host, "read_ahead_kb", "64", "setting_conflict")
    restore_run("run", host.journal)
    assert host.change("read_ahead_kb", "64")


def test_a_setting_of_an_absent_device_blocks_no_run(host: Host, tmp_path: Path) -> None:
    with rig.loop(rig.sparse(tmp_path / "other.img")) as other:
        allowed = rig.load(tmp_path, rig.block(other, tmp_path / "other.img", settings=["*"]))
        open_target = {0: OpenTarget(path=other, device=Path(other).name, target="disk")}
        Path(f"/sys/block/{Path(other).name}/queue/nomerges").write_text("0")  # a new loop device may have 2
        session.apply_settings([SettingRequest(name="nomerges", value="2")], "run", open_target, allowed, host.journal)
        with pytest.raises(SettingFailed, match="A run has changed settings"):
            host.change("read_ahead_kb", "64")
    host.change("read_ahead_kb", "64")
    assert host.now("read_ahead_kb") == "64"
