"""Preparation steps on real loop devices and files: what they write, and what the guard refuses."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from worker.contract.items import Finished, Item, Observed, Outcome, Phase, PhaseName, StreamResult
from worker.contract.orders import Arming, TrialOrder
from worker.contract.workload import FioWorkload, FlushStep, IoEngine, Pattern, PauseStep, Step, Stream, WriteStep
from worker.engines.complete_files import CompleteFiles
from worker.guard.directories import PRIVATE
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel.counters import read_counters
from worker.kernel.signatures import identity
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.policy import Policy
from worker.process.control import Control

pytestmark = rig.needs_root

MIB = rig.MIB
FILL = WriteStep(block_bytes=128 * 1024)
READ = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=1)


class Host:
    def __init__(self, folder: Path, policy: Policy) -> None:
        self.policy = policy
        files = CompleteFiles(folder / "files.db")
        self._context = HostContext(folder, policy.path, Journal(folder / "journal.db"), files)
        self.items: list[Item] = []
        self.control = Control("a")
        self.on_item: Callable[[Item], None] = lambda _: None

    def trial(self, *steps: Step, work: FioWorkload = READ, armed: bool = True) -> Finished:
        target, now = rig.stream(self.policy).target, time.time()
        self.items.clear()
        arming = Arming(serials=(target.serial or target.stable_id,), by="tester", until=now + 60) if armed else None
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=target, workload=work),), steps=steps, arming=arming,
        )  # fmt: skip
        return carry_out(order, OrderContext(host=self._context, emit=self._emit, control=self.control))

    def _emit(self, item: Item) -> None:
        self.items.append(item)
        self.on_item(item)

    @property
    def drive_state(self) -> str:
        return next(item.facts["stream.0.drive_state"] for item in self.items if isinstance(item, Observed))

    @property
    def phases(self) -> list[tuple[PhaseName, Step | None]]:
        found = [(item.name, item.step) for item in self.items if isinstance(item, Phase)]
        return list(dict.fromkeys(found))


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return rig.sparse(tmp_path / "disk.img", 64 * MIB)


@pytest.fixture
def device(image: Path) -> Iterator[str]:
    with rig.loop(image) as device:
        yield device


@pytest.fixture
def drive(tmp_path: Path, image: Path, device: str) -> Host:
    return Host(tmp_path, rig.load(tmp_path, rig.block(device, image, destroy=True)))


def written_mib(image: Path) -> int:
    """Allocated blocks, without those in which the file system lists them."""
    return image.stat().st_blocks * 512 // MIB


def flushes(device: str) -> int:
    """Linux, Documentation/block/stat: the 16th field."""
    return int((Path("/sys/block") / Path(device).name / "stat").read_text().split()[15])


def test_a_raw_device_is_filled_flushed_and_rested_before_it_is_read(drive: Host, image: Path) -> None:
    twice = WriteStep(block_bytes=MIB, times=2)
    end = drive.trial(twice, FlushStep(), PauseStep(seconds=1))
    assert end.outcome is Outcome.DONE, end.message
    assert written_mib(image) == 64
    assert drive.drive_state == "sequentially filled"
    prepared = [step for name, step in drive.phases if name is PhaseName.PREPARE]
    assert prepared == [twice, FlushStep(), PauseStep(seconds=1)]
    names = [name for name, _ in drive.phases]
    assert names.index(PhaseName.SETTINGS) < names.index(PhaseName.PREPARE) < names.index(PhaseName.RUN)
    percents = [item.percent for item in drive.items if isinstance(item, Phase) and item.step == PauseStep(seconds=1)]
    assert percents[-1] == pytest.approx(100, abs=30)


def test_a_step_writes_only_the_used_part_and_a_small_amount_makes_the_drive_used(drive: Host, image: Path) -> None:
    part = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=1, size_bytes=16 * MIB)
    assert drive.trial(FILL, work=part).outcome is Outcome.DONE
    assert written_mib(image) == 16
    assert image.read_bytes()[16 * MIB :] == bytes(48 * MIB)
    end = drive.trial(FILL, WriteStep(random=True, block_bytes=4096, amount_bytes=MIB))
    assert end.outcome is Outcome.DONE, end.message
    assert drive.drive_state == "used"


def test_a_step_writes_a_partition_once_and_not_the_size_of_its_disk(tmp_path: Path, image: Path, device: str) -> None:
    part = rig.partition(device, "start=2048, size=32768")
    entry = {**rig.block(part, image, destroy=True), "stable_id": identity(Path(part).name)}
    drive = Host(tmp_path, rig.load(tmp_path, entry))
    counted = read_counters(Path(part).name)
    end = drive.trial(FILL, WriteStep(block_bytes=MIB, random=True, times=5))
    assert end.outcome is Outcome.DONE, end.message
    now = read_counters(Path(part).name)
    assert counted is not None
    assert now is not None
    assert (now.write_sectors - counted.write_sectors) * 512 == (1 + 5) * 16 * MIB
    assert drive.trial().outcome is Outcome.DONE
    assert drive.drive_state == "unknown"  # 96 MiB were written to a drive of 64 MiB, but not to all of it


@pytest.mark.parametrize(("destroy", "armed"), [(True, False), (False, True)])
def test_a_reading_trial_with_a_writing_step_needs_policy_and_arming(
    tmp_path: Path, image: Path, *, destroy: bool, armed: bool
) -> None:
    with rig.loop(image) as device:
        host = Host(tmp_path, rig.load(tmp_path, rig.block(device, image, destroy=destroy)))
        end = host.trial(FILL, armed=armed)
        assert end.outcome is Outcome.FAILED
        assert end.code.startswith("guard_"), end
        assert image.stat().st_blocks == 0
        end = host.trial(FlushStep(), PauseStep(seconds=1), armed=False)
        assert end.outcome is Outcome.DONE, "steps that do not write need no arming"


def test_the_write_limit_counts_steps_before_they_write(tmp_path: Path, image: Path) -> None:
    with rig.loop(image) as device:
        limited = rig.block(device, image, destroy=True, max_write_bytes=100 * MIB)
        host = Host(tmp_path, rig.load(tmp_path, limited))
        end = host.trial(WriteStep(block_bytes=MIB, times=2))
        assert end.code == "guard_write_limit", end
        assert image.stat().st_blocks == 0
        assert host.trial(FILL).outcome is Outcome.DONE


@pytest.mark.parametrize("step", [WriteStep(block_bytes=4096, random=True, times=100), PauseStep(seconds=3600)])
def test_a_step_is_cancelled_promptly_and_no_write_goes_on(drive: Host, image: Path, step: Step) -> None:
    def cancel(item: Item) -> None:
        if isinstance(item, Phase) and item.step and item.percent:
            drive.control.cancel()

    drive.on_item = cancel
    assert drive.trial(step).outcome is Outcome.CANCELLED
    assert not any(isinstance(item, StreamResult) for item in drive.items)
    before = image.stat().st_mtime_ns
    os.sync()
    assert image.stat().st_mtime_ns == before


def test_a_flush_reaches_the_drive(drive: Host, device: str) -> None:
    assert drive.trial().outcome is Outcome.DONE
    before = flushes(device)
    assert drive.trial().outcome is Outcome.DONE
    assert flushes(device) == before, "nothing else flushes a drive that is only read"
    assert drive.trial(FlushStep()).outcome is Outcome.DONE
    assert flushes(device) == before + 1


def test_files_are_written_again_by_a_step_after_the_prefill(tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir(mode=0o700)
    host = Host(tmp_path, rig.load(tmp_path, {"id": "scratch", "kind": "directory", "path": str(place)}))
    work = FioWorkload(
        pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, runtime_s=1, size_bytes=4 * MIB, files=2, prefill=False
    )
    end = host.trial(FILL, FlushStep(), work=work, armed=False)
    assert end.outcome is Outcome.DONE, end.message
    files = sorted((place / PRIVATE).iterdir())
    assert [file.stat().st_size for file in files] == [4 * MIB, 4 * MIB]
