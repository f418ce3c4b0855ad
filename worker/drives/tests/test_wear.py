"""Readings around writes, of a folder that looks like sysfs and a smartctl that answers for its drive.

The drive's answer is smartctl 7.3's for QEMU's NVMe drive, with other counts; see worker/inventory/tests/recorded.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import worker
from worker.contract.items import DriveReading, ReadingMoment
from worker.drives.wear import Wear, drives_under

M = ReadingMoment
RECORDED = Path(worker.__file__).parent / "inventory/tests/recorded/smartctl-7.3-nvme.json"


class Host:
    """An NVMe drive with a partition, and what was read of it."""

    def __init__(self, root: Path) -> None:
        self.sys, self.state, self.asked = root / "sys", root / "state", root / "asked"
        self.node = self.sys / "devices/pci0000:00/nvme/nvme0/nvme0n1"
        self.said: list[DriveReading] = []
        (self.node / "device").mkdir(parents=True)
        (self.node / "nvme0n1p1").mkdir()
        for name, text in {"dev": "259:0", "size": "1000", "device/transport": "pcie", "device/serial": "LABNVME0",
                           "wwid": "eui.1", "nvme0n1p1/partition": "1", "nvme0n1p1/dev": "259:1"}.items():  # fmt: skip
            (self.node / name).write_text(text + "\n")
        blocks = self.sys / "class/block"
        blocks.mkdir(parents=True)
        (blocks / "nvme0n1").symlink_to(self.node)
        (blocks / "nvme0n1p1").symlink_to(self.node / "nvme0n1p1")
        self.tool = root / "bin/smartctl"
        self.tool.parent.mkdir()
        self.has_written(0)

    def has_written(self, sectors: int, units: int = 0) -> None:
        """By the kernel's counter, and by the drive's."""
        (self.node / "stat").write_text(f"0 0 0 0 0 0 {sectors} 0 0 0 0 0 0 0 0\n")
        answer = json.loads(RECORDED.read_text())
        answer["nvme_smart_health_information_log"]["data_units_written"] = units
        self.tool.with_suffix(".json").write_text(json.dumps(answer))
        self.tool.write_text(f"#!/bin/sh\necho asked >>{self.asked}\nexec cat {self.tool}.json\n")
        self.tool.chmod(0o755)

    def wear(self, run: str = "r1") -> Wear:
        return Wear(self.state, run, self.said.append, self.sys)

    def moments(self) -> list[tuple[ReadingMoment, int | None]]:
        return [(each.moment, each.kernel_written_bytes) for each in self.said]

    def times_asked(self) -> int:
        return len(self.asked.read_text().split()) if self.asked.exists() else 0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return Host(tmp_path)


def test_it_reads_the_drive_under_a_partition_before_and_after_its_writes(host: Host) -> None:
    assert drives_under(["nvme0n1p1", "gone"], host.sys) == ("nvme0n1",)
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
