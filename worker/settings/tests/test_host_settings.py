"""What is kernel-wide, on this very host: harmless values, put back whatever happens."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.guard.tests import rig
from worker.journal import Journal
from worker.settings import BY_KEY, REGISTRY, session
from worker.settings.base import SettingFailed, SettingScope
from worker.settings.tests.machine import HOST_WIDE, Machine

# A little beside what kernels come with.
HARMLESS = {
    "vm.dirty_ratio": "21", "vm.dirty_bytes": "2147483648", "vm.dirty_background_ratio": "11",
    "vm.dirty_background_bytes": "1073741824", "vm.dirty_expire_centisecs": "3100",
    "vm.dirty_writeback_centisecs": "510",
}  # fmt: skip


def states() -> dict[str, str]:
    return {key: s.capture("") for key, s in BY_KEY.items() if s.scope is SettingScope.HOST and s.discover("")}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path, list(HOST_WIDE))
    before = {key: state for key, state in states().items() if key != "irqbalance"}
    try:
        yield found
    finally:
        for key, state in before.items():
            if BY_KEY[key].capture("") != state:
                BY_KEY[key].restore("", state)


def another_value(name: str) -> str:
    if name in HARMLESS:
        return HARMLESS[name]
    setting = REGISTRY[name]
    now = setting.read("")
    return next((choice for choice in setting.choices("") if choice != now), "")


@pytest.mark.root
@rig.needs_root[1]
@pytest.mark.parametrize("name", [name for name in HOST_WIDE if name != "irqbalance"])
def test_it_applies_reads_back_and_restores(machine: Machine, name: str) -> None:
    setting = HOST_WIDE[name]
    value = another_value(name) if setting.discover("") else ""
    if not value:
        pytest.skip(setting.missing(""))
    before = states()
    (record,) = machine.apply_settings({name: value})
    assert (record.name, record.device, record.asked, record.observed) == (name, "", value, value)
    assert setting.read("") == value
    (told,) = session.restore_run("run", machine.journal)
    assert (told.device, told.restored) == ("", True)
    assert states() == before


@pytest.mark.root
@rig.needs_root[1]
@pytest.mark.parametrize("state", ["dirty_ratio=20", "dirty_ratio=0", "dirty_bytes=3221225472"])
def test_it_puts_a_limit_back_in_the_face_it_had(machine: Machine, state: str) -> None:
    limit = BY_KEY["vm.dirty_ratio"]
    limit.restore("", state)
    machine.apply_settings({"vm.dirty_bytes": "2147483648"})
    assert Path("/proc/sys/vm/dirty_ratio").read_text().strip() == "0"
    session.restore_run("run", machine.journal)
    assert limit.capture("") == state
    machine.apply_settings({"vm.dirty_ratio": "25"})
    assert Path("/proc/sys/vm/dirty_bytes").read_text().strip() == "0"
    assert all(item.restored for item in session.restore_run("run", machine.journal))
    assert limit.capture("") == state


@pytest.mark.root
@rig.needs_root[1]
@pytest.mark.parametrize(
    ("requested", "code", "words"),
    [
        ({"vm.dirty_ratio": "10", "vm.dirty_bytes": "2147483648"}, "setting_conflict", "Choose one of them"),
        ({"vm.dirty_bytes": "1"}, "setting_refused", "Invalid argument"),
        ({"vm.dirty_ratio": "101"}, "setting_refused", "Invalid argument"),
        ({"transparent_hugepage": "sometimes"}, "setting_refused", "madvise"),
        ({"cpu.deepest_idle_state": "77"}, "setting_refused", "cpu.deepest_idle_state"),
    ],
)
def test_it_refuses_in_the_kernels_words(machine: Machine, requested: dict[str, str], code: str, words: str) -> None:
    before = states()
    with pytest.raises(SettingFailed, match=words) as caught:
        machine.apply_settings(requested)
    assert caught.value.code == code
    session.restore_run("run", machine.journal)
    assert states() == before


@pytest.mark.root
@rig.needs_root[1]
def test_it_does_not_restore_a_value_that_another_program_changed(machine: Machine) -> None:
    machine.apply_settings({"vm.dirty_expire_centisecs": "3100"})
    Path("/proc/sys/vm/dirty_expire_centisecs").write_text("3200")
    (told,) = session.restore_run("run", machine.journal)
    assert (told.restored, told.observed, "another program or person" in told.note) == (False, "3200", True)


@pytest.mark.root
@rig.needs_root[1]
def test_it_restores_nothing_after_a_reboot(machine: Machine) -> None:
    machine.apply_settings({"vm.dirty_expire_centisecs": "3100"})
    machine.journal.close()
    later = Journal(machine.directory / "journal.db", boot_id="another boot")
    (told,) = session.restore_all(later)
    assert (told.restored, "restart of the host" in told.note) == (False, True)
    later.close()


def test_it_changes_nothing_of_the_host_that_the_policy_does_not_name(tmp_path: Path) -> None:
    narrow = Machine(tmp_path, ["vm.dirty_ratio"])
    with pytest.raises(SettingFailed, match=r"under \[host\]") as caught:
        narrow.apply_settings({"vm.dirty_bytes": "2147483648"})
    assert caught.value.code == "setting_not_allowed"


CHILD = """
import os, signal, sys
from pathlib import Path
from worker.settings import memory
from worker.settings.tests.machine import HOST_WIDE, Machine

def dying(path, value, what, write=memory.write_file):
    write(path, value, what)
    os.kill(os.getpid(), signal.SIGKILL)

import worker.settings.base
worker.settings.base.write_file = dying
Machine(Path(sys.argv[1]), list(HOST_WIDE)).apply_settings({"vm.dirty_bytes": "2147483648"})
"""


@pytest.mark.root
@rig.needs_root[1]
def test_it_restores_the_changes_of_a_killed_worker(machine: Machine) -> None:
    before = states()
    command = [sys.executable, "-c", CHILD, str(machine.directory)]
    assert subprocess.run(command, check=False, timeout=30).returncode == -signal.SIGKILL
    assert states() != before
    assert [told.restored for told in session.restore_all(machine.journal)] == [True]
    assert states() == before
    assert machine.journal.baselines() == ()
