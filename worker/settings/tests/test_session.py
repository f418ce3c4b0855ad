import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from worker.contract.orders import SettingRequest
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.settings import BY_KEY, REGISTRY, memory, session
from worker.settings.base import KernelFile, SettingError, SettingFailed
from worker.settings.devices import SchedulerTunable
from worker.settings.tests.session_host import Host

pytestmark = rig.needs_root


# In the order in which the kernel keeps them all; an earlier user of the loop device may have left others.
BEFORE = {
    "scheduler": "none", "nr_requests": "100", "rotational": "1", "add_random": "0", "iostats": "1",
    "write_cache": "write back", "nomerges": "0", "rq_affinity": "1", "max_sectors_kb": "256", "read_ahead_kb": "256",
}  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device:
        found = Host(tmp_path, device, file)
        for name, value in BEFORE.items():
            found.write(name, value)
        yield found
        session.restore_all(found.journal)


CHANGES = {
    "scheduler": "mq-deadline", "read_ahead_kb": "64", "nr_requests": "32", "rq_affinity": "2", "nomerges": "2",
    "wbt_lat_usec": "5000", "max_sectors_kb": "512", "rotational": "0", "add_random": "1", "iostats": "0",
    "write_cache": "write through",
}  # fmt: skip


@pytest.mark.parametrize("name", list(CHANGES))
def test_it_applies_reads_back_and_restores(host: Host, name: str) -> None:
    before = host.state()
    (record,) = host.apply_settings({name: CHANGES[name]})
    assert (record.name, record.device, record.before) == (name, host.device, before[name])
    assert record.asked == record.observed == host.state()[name] == CHANGES[name]
    told = session.restore_run("run", host.journal)
    assert [(t.name, t.restored, t.observed) for t in told if t.name == name] == [(name, True, before[name])]
    assert host.state() == before
    assert host.journal.baselines() == ()
    assert session.restore_run("run", host.journal) == []


def test_it_applies_all_together_and_puts_all_back(host: Host) -> None:
    before = host.state()
    host.apply_settings(dict(reversed(CHANGES.items())))
    assert CHANGES.items() <= host.state().items()
    assert all(told.restored for told in session.restore_all(host.journal))
    assert host.state() == before


def test_it_takes_back_what_the_next_trial_does_not_request(host: Host) -> None:
    before = host.state()
    host.apply_settings({"rq_affinity": "2", "read_ahead_kb": "64"})
    host.apply_settings({"read_ahead_kb": "64"})
    assert host.state() == {**before, "read_ahead_kb": "64"}
    host.apply_settings({})
    assert host.state() == before


def test_the_settings_of_a_trial_do_not_depend_on_earlier_trials(host: Host) -> None:
    host.apply_settings({"scheduler": "mq-deadline"})
    fresh = host.state()
    assert fresh["nr_requests"] != "100"  # the kernel's choice for that scheduler
    for earlier in (
        {"scheduler": "mq-deadline", "nr_requests": "32"},
        {"nr_requests": "50"},
        {"max_sectors_kb": "512"},
    ):
        host.apply_settings(earlier)
        host.apply_settings({"scheduler": "mq-deadline"})
        assert host.state() == fresh


def test_the_hosts_scheduler_is_restored_with_all_values_that_its_change_affected(host: Host) -> None:
    """Otherwise a plan of two schedulers measures the host's own one with two values of `nr_requests`."""
    host.apply_settings({"scheduler": "none"})
    before = host.state()
    host.apply_settings({"scheduler": "mq-deadline"})
    host.apply_settings({"scheduler": "none"})
    assert host.state() == before


def test_it_restores_the_settings_of_another_run_first(host: Host) -> None:
    before = host.state()
    host.apply_settings({"nomerges": "2"}, run="one")
    host.apply_settings({"rq_affinity": "2"}, run="two")
    assert host.state() == {**before, "rq_affinity": "2"}
    session.restore_run("two", host.journal)
    assert host.state() == before


def test_it_does_not_restore_a_value_that_another_program_changed(host: Host) -> None:
    host.apply_settings({"nomerges": "2"})
    host.write("nomerges", "1")
    (told,) = session.restore_run("run", host.journal)
    assert (told.restored, told.observed) == (False, "1")
    assert "another program or person" in told.note
    assert host.state()["nomerges"] == "1"
    host.write("nomerges", "0")


def test_it_restores_nothing_after_a_reboot(host: Host) -> None:
    host.apply_settings({"nomerges": "2"})
    host.journal.close()
    later = Journal(host.directory / "journal.db", boot_id="another boot")
    (told,) = session.restore_all(later)
    assert (told.restored, "restart of the host" in told.note) == (False, True)
    assert host.state()["nomerges"] == "2"
    assert later.baselines() == ()
    host.write("nomerges", "0")
    later.close()
    host.journal = Journal(host.directory / "journal.db")


def test_it_restores_a_setting_when_its_absent_device_is_present_again(host: Host) -> None:
    host.apply_settings({"nomerges": "2"})
    rig.detach(host.path)
    for _ in range(2):
        (told,) = session.restore_run("run", host.journal)
        assert (told.restored, "the device is absent" in told.note) == (False, True)
    host.apply_settings({}, run="another")  # which does not need the device
    rig.run("losetup", host.path, str(host.file))
    host.write("nomerges", "2")
    host.apply_settings({}, run="another")
    assert (host.state()["nomerges"], host.journal.baselines()) == ("0", ())


def test_it_restores_a_setting_that_could_not_be_read_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is readable again only at the second attempt to put the setting back."""
    node = Path(f"/sys/block/{host.device}/queue/nomerges")

    def hide_and_write(setting: KernelFile, device: str, value: str) -> None:
        node.write_text(value)
        monkeypatch.setattr(KernelFile, "read", unreadable)

    def unreadable(setting: KernelFile, device: str) -> str:
        raise SettingError("setting_refused", "nomerges cannot be read: Input/output error.")

    with monkeypatch.context() as broken:
        broken.setattr(KernelFile, "_write", hide_and_write)
        with pytest.raises(SettingFailed, match="cannot be read"):
            host.apply_settings({"nomerges": "2"})
    (told,) = session.restore_run("run", host.journal)
    assert (told.restored, told.note) == (False, "nomerges cannot be read: Input/output error.")
    monkeypatch.undo()
    assert node.read_text() == "2\n"
    (told,) = session.restore_run("run", host.journal)
    assert (told.restored, told.observed, host.journal.baselines()) == (True, "0", ())


def test_it_keeps_journal_entries_of_another_version_of_the_worker(host: Host) -> None:
    host.apply_settings({"nomerges": "2"})
    (kept,) = host.journal.baselines()
    host.journal.drop_baseline(kept)
    other = msgspec.structs.replace(kept, name="queue.tomorrow")
    host.journal.save_baselines([other])
    (told,) = session.restore_all(host.journal)
    assert (told.restored, "does not know" in told.note) == (False, True)
    assert host.journal.baselines() == (other,)
    host.journal.save_baselines([kept])
    host.journal.drop_baseline(other)


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        ({"read_ahead_kb": "123"}, "setting_clamped"),
        ({"nomerges": "7"}, "setting_clamped"),
        ({"scheduler": "nope"}, "setting_refused"),
        ({"nr_requests": "x"}, "setting_refused"),
        ({"max_sectors_kb": "1"}, "setting_refused"),
        ({"../../../uevent": "add"}, "setting_unknown"),
        ({"io_poll": "1"}, "setting_refused"),  # EINVAL: a loop device has no poll queues
        ({"queue_depth": "4"}, "setting_refused"),
        ({"drive_write_cache": "write back"}, "setting_not_allowed"),  # "*" does not cover it
        ({"irq_affinity": "spread"}, "setting_not_allowed"),
        ({"read_ahead_sectors": "101"}, "setting_refused"),
        ({"kyber.read_lat_nsec": "1000000"}, "setting_refused"),
        ({"vm.dirty_ratio": "15"}, "setting_not_allowed"),
    ],
)
def test_it_fails_with_a_code_and_restores_everything(host: Host, requested: dict[str, str], code: str) -> None:
    before = host.state()
    with pytest.raises(SettingFailed) as caught:
        host.apply_settings({"rq_affinity": "2", **requested})
    assert (caught.value.code, next(iter(requested)) in caught.value.message) == (code, True)
    session.restore_all(host.journal)
    assert host.state() == before


def test_it_changes_only_what_the_policy_lists(host: Host) -> None:
    before = host.state()
    narrow = rig.load(host.directory, rig.block(host.path, host.file, settings=["nomerges"]))
    with pytest.raises(SettingFailed) as caught:
        host.apply_settings({"nomerges": "2", "scheduler": "bfq"}, policy=narrow)
    assert caught.value.code == "setting_not_allowed"
    assert host.state() == before


def test_it_asks_for_the_kernels_default_of_throttling(host: Host) -> None:
    host.write("wbt_lat_usec", "1234")
    (record,) = host.apply_settings({"wbt_lat_usec": "-1"})
    assert record.observed not in ("1234", "-1")
    session.restore_all(host.journal)
    assert host.state()["wbt_lat_usec"] == "1234"


def test_it_refuses_two_values_for_one_device(host: Host) -> None:
    requests = [SettingRequest(name="nomerges", value=value, stream=stream) for stream, value in enumerate("12")]
    open_targets = {stream: OpenTarget(path=host.path, device=host.device, target="disk") for stream in (0, 1)}
    with pytest.raises(SettingFailed) as caught:
        session.apply_settings(requests, "run", open_targets, host.allowed, host.journal)
    assert caught.value.code == "setting_conflict"


CHILD = """
import os, signal, sys
from pathlib import Path
from worker import policy
from worker.contract.orders import SettingRequest
from worker.journal import Journal
from worker.kernel.targets import OpenTarget
from worker.settings import SETTING_NAMES, session
from worker.settings.base import KernelFile
from worker.settings.devices import SchedulerTunable

left = int(sys.argv[4])
before_write, write = sys.argv[5] == "before", KernelFile._write

def dying(self, device, value):
    global left
    left -= 1
    if left == 0 and before_write:
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, device, value)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

KernelFile._write = dying
directory, device = Path(sys.argv[1]), sys.argv[2]
requests = [SettingRequest(name=n, value=v) for n, v in (pair.split("=") for pair in sys.argv[3].split(","))]
open_target = OpenTarget(path="/dev/" + device, device=device, target="disk")
allowed = policy.load(directory / "policy.toml", SETTING_NAMES)
session.apply_settings(requests, "run", {0: open_target}, allowed, Journal(directory / "journal.db"))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("write", [1, 2, 4, 7])
def test_it_restores_the_changes_of_a_killed_worker(host: Host, write: int, when: str) -> None:
    before = host.state()
    requests = ",".join(f"{name}={value}" for name, value in CHANGES.items())
    command = [sys.executable, "-c", CHILD, str(host.directory), host.device, requests, str(write), when]
    assert subprocess.run(command, check=False, timeout=30).returncode == -signal.SIGKILL
    assert host.state() != before or (write, when) == (1, "before")
    assert all(told.restored for told in session.restore_all(host.journal))
    assert host.state() == before
    assert host.journal.baselines() == ()


def test_it_drops_the_caches_and_verifies_it() -> None:
    rows = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    memory.drop_caches()
    after = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    assert int(after["drop_pagecache"]) > int(rows["drop_pagecache"])


def test_every_setting_describes_itself(host: Host) -> None:
    for name, setting in REGISTRY.items():
        assert (setting.name, bool(setting.description)) == (name, True)
        assert all(BY_KEY[other].rank > setting.rank for other in setting.disturbs)
    assert {"none", "mq-deadline"} <= set(REGISTRY["scheduler"].choices(host.device))
    assert msgspec.json.encode(session.restore_all(host.journal)) == b"[]"


def test_it_reports_settings_that_another_program_changed(host: Host) -> None:
    applied = host.apply_settings({"nomerges": "2", "read_ahead_kb": "64"})
    assert session.changed_meanwhile(applied) == []
    host.write("read_ahead_kb", "128")
    (changed,) = session.changed_meanwhile(applied)
    assert (changed.name, changed.before, changed.asked, changed.observed) == ("read_ahead_kb", "64", "64", "128")
    assert changed.meanwhile


def test_a_scheduler_tunable_that_cannot_be_read_has_not_vanished(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.apply_settings({"scheduler": "mq-deadline", "mq-deadline.fifo_batch": "7"})

    def unreadable(setting: KernelFile, device: str) -> str:
        raise SettingError("setting_refused", f"{setting.name} of {device} cannot be read: Input/output error.")

    with monkeypatch.context() as broken:
        broken.setattr(SchedulerTunable, "read", unreadable)
        broken.setattr(type(REGISTRY["scheduler"]), "restore", lambda *_: None)
        told = {each.name: each.restored for each in session.restore_run("run", host.journal)}
    assert told["mq-deadline.fifo_batch"] is False
    assert "mq-deadline.fifo_batch" in {kept.name for kept in host.journal.baselines()}
    assert all(each.restored for each in session.restore_run("run", host.journal))
    assert host.journal.baselines() == ()
