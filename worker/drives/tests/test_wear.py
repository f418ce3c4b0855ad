"""Readings around writes, of a folder that looks like sysfs and a smartctl that answers for its drive.

The drive's answer is smartctl 7.3's for QEMU's NVMe drive, with other counts; see worker/inventory/tests/recorded.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from worker.contract.items import ReadingMoment
from worker.drives.tests.wearing import Host
from worker.kernel import sysfs

M = ReadingMoment


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Host(tmp_path)


def test_it_reads_the_drive_under_a_partition_before_and_after_its_writes(host: Host) -> None:
    assert sysfs.drives_under(["nvme0n1p1", "gone"], host.sys) == ("nvme0n1",)
    wear = host.wear()
    wear.begin(["nvme0n1p1"])
    host.has_written(16, units=3)
    told = wear.end()
    assert host.moments() == [(M.BEFORE, 0), (M.AFTER, 16 * 512)]
    assert told["nvme0n1"].host_written_bytes == 3 * 512_000
    first, last = host.said
    assert (first.drive, first.serial) == (last.drive, last.serial) == ("nvme-eui.1", "LABNVME0")
    assert first.told
    assert first.told.host_written_bytes == 0


def test_the_last_reading_of_the_run_is_the_one_before_the_next_attempt_also_of_a_worker_that_was_killed(
    host: Host,
) -> None:
    first = host.wear()
    first.begin(["nvme0n1"])
    host.has_written(16)
    first.end()
    second = host.wear()
    second.begin(["nvme0n1"])
    host.has_written(32)
    second.end()
    assert host.moments() == [(M.BEFORE, 0), (M.AFTER, 8192), (M.AFTER, 16384)]
    assert host.times_asked() == 3


def test_what_others_wrote_in_between_is_a_reading_of_its_own(host: Host) -> None:
    for sectors in (16, 48):
        wear = host.wear()
        wear.begin(["nvme0n1"])
        host.has_written(sectors)
        wear.end()
        host.has_written(sectors + 16)
    assert host.moments() == [(M.BEFORE, 0), (M.AFTER, 8192), (M.BEFORE, 16384), (M.AFTER, 24576)]


def test_an_attempt_that_wrote_nothing_asks_the_drive_for_nothing_more(host: Host) -> None:
    wear = host.wear()
    wear.begin(["nvme0n1"])
    assert wear.end() == {}
    assert (host.moments(), host.times_asked()) == ([(M.BEFORE, 0)], 1)


def test_closing_reads_what_came_late_and_forgets_the_run(host: Host) -> None:
    wear = host.wear()
    wear.begin(["nvme0n1"])
    host.has_written(16)
    host.wear().close()
    assert host.moments() == [(M.BEFORE, 0), (M.CLOSED, 8192)]
    assert not list((host.state / "wear").iterdir())
    host.wear().close()
    assert len(host.said) == 2


def test_runs_are_kept_apart(host: Host) -> None:
    for run in ("r1", "r2"):
        host.wear(run).begin(["nvme0n1"])
    assert host.moments() == [(M.BEFORE, 0), (M.BEFORE, 0)]


@pytest.mark.parametrize(
    "trouble",
    [
        lambda host: (host.state / "wear").mkdir(parents=True) or (host.state / "wear/r1.json").write_text("cut"),
        lambda host: host.state.write_text("a file where the folder should be"),
        lambda host: (host.sys / "class/block/nvme0n1").unlink(),
    ],
    ids=["damaged", "unwritable", "gone"],
)
def test_it_breaks_off_nothing_for_want_of_a_reading(host: Host, trouble: Callable[[Host], object]) -> None:
    trouble(host)
    wear = host.wear()
    wear.begin(["nvme0n1"])
    wear.end()
    wear.close()


def test_a_drive_that_goes_in_between_has_no_reading_afterwards(host: Host) -> None:
    wear = host.wear()
    wear.begin(["nvme0n1"])
    (host.sys / "class/block/nvme0n1").unlink()
    wear.end()
    wear.close()
    assert host.moments() == [(M.BEFORE, 0)]
