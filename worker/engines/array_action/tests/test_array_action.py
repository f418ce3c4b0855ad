"""The stream of an array action on emulated files of the kernel; `make lab ARGS=rebuild` runs it on a real array.

The texts of /proc/mdstat are from Debian 12 with kernel 6.1 and mdadm 4.2.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from worker.contract.array_action import ArrayAction, ArrayActionWorkload
from worker.contract.items import Direction, Sample, StreamResult, StreamStarted
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import array_action
from worker.engines.array_action import Progress, progress_in, run_stream
from worker.engines.base import StreamFailed
from worker.engines.tests.running import running
from worker.kernel.targets import LayoutArray, OpenTarget
from worker.process.scope import open_scope

KIB = 1024
MEMBER_KIB = 1046528
MDSTAT = """Personalities : [raid0] [raid1] [raid6] [raid5] [raid4] [raid10]
md126 : active raid1 sde[1] sdd[0]
      1046528 blocks super 1.2 [2/2] [UU]

md127 : active raid1 sdc[2] sdb[0]
      1046528 blocks super 1.2 [2/1] [U_]
      {}

unused devices: <none>
"""
RECOVERY = "[====>................]  recovery = 21.0% ({}/1046528) finish=0.6min speed=22054K/sec"
CHECK = "[>....................]  check =  4.4% (46272/1046528) finish=1.0min speed=15424K/sec"


def test_it_reads_the_progress_of_the_named_array() -> None:
    text = MDSTAT.format(RECOVERY.format(220544))
    assert progress_in(text, "md127") == Progress(220544 * KIB, MEMBER_KIB * KIB)
    assert progress_in(text, "md126") is None
    assert progress_in(text, "md12") is None
    assert progress_in(MDSTAT.format(CHECK), "md127") == Progress(46272 * KIB, MEMBER_KIB * KIB)


def test_an_array_that_waits_for_another_one_has_no_progress() -> None:
    assert progress_in(MDSTAT.format("resync=DELAYED"), "md127") is None


class Kernel:
    """The files of one array, and what is done to its last member."""

    def __init__(self, folder: Path) -> None:
        self.md = folder / "sys" / "md127" / "md"
        self.md.mkdir(parents=True)
        self.mdstat = folder / "mdstat"
        self.commands: list[str] = []
        self.set("idle", degraded=0)
        (self.md / "component_size").write_text(f"{MEMBER_KIB}\n")
        self.level("raid1", MEMBER_KIB)
        self.stopped_at(0)

    def set(self, action: str, *, degraded: int, done_kib: int | None = None) -> None:
        (self.md / "sync_action").write_text(f"{action}\n")
        (self.md / "degraded").write_text(f"{degraded}\n")
        self.mdstat.write_text(MDSTAT.format("" if done_kib is None else RECOVERY.format(done_kib)))

    def level(self, level: str, array_kib: int) -> None:
        (self.md / "level").write_text(f"{level}\n")
        (self.md.parent / "size").write_text(f"{2 * array_kib}\n")

    def stopped_at(self, sectors: int) -> None:
        """The kernel keeps the position of a check that was stopped. The next one continues there."""
        (self.md / "sync_min").write_text(f"{sectors}\n")

    @property
    def action(self) -> str:
        return (self.md / "sync_action").read_text().strip()

    def add_member(self) -> None:
        self.commands.append("add")
        self.set("recover", degraded=1, done_kib=1000)

    @property
    def target(self) -> OpenTarget:
        made = LayoutArray(name="md127", remove_member=lambda: None, add_member=self.add_member)
        return OpenTarget(path="/dev/md127", device="md127", members=("sdb", "sdc"), array=made)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path)
    monkeypatch.setattr(array_action, "SYS_BLOCK", made.md.parent.parent)
    monkeypatch.setattr(array_action, "MDSTAT", made.mdstat)
    monkeypatch.setattr(array_action, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(array_action, "SAMPLE_S", 0.01)
    return made


class Taken:
    """The samples of a stream; `then` is called with their number after each one."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.started: list[StreamStarted] = []
        self.cancelled = threading.Event()
        self.then: Callable[[int], object] = lambda _number: None

    def take(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.then(len(self.samples))

    @property
    def moved(self) -> list[int]:
        return [part.bytes for sample in self.samples for part in sample.directions]


@pytest.fixture
def taken() -> Taken:
    return Taken()


def act(
    kernel: Kernel, taken: Taken, action: ArrayAction, *, runtime_s: int = 600, target: OpenTarget | None = None
) -> StreamResult:
    reference = TargetRef(id="pool", kind=TargetKind.BLOCK, path="/dev/md127", stable_id="pool")
    work = ArrayActionWorkload(action=action, runtime_s=runtime_s)
    one = Stream(number=0, name="array", target=reference, workload=work)
    if action is ArrayAction.REBUILD:
        kernel.set("idle", degraded=1)
    with open_scope(None, "array") as scope:
        return run_stream(
            running(
                one,
                target or kernel.target,
                scope,
                taken.cancelled,
                silence_s=60,
                total_s=60,
                on_started=taken.started.append,
                on_sample=taken.take,
            )
        )


def test_a_rebuild_sends_its_progress_and_the_time_until_it_was_complete(kernel: Kernel, taken: Taken) -> None:
    taken.then = lambda number: (
        kernel.set("recover", degraded=1, done_kib=5000) if number == 1 else kernel.set("idle", degraded=0)
    )
    result = act(kernel, taken, ArrayAction.REBUILD)
    assert kernel.commands == ["add"]
    # On a busy machine, a sample may be due before anything has moved.
    assert [moved for moved in taken.moved if moved] == [1000 * KIB, 4000 * KIB, (MEMBER_KIB - 5000) * KIB]
    (part,) = result.directions
    assert (part.direction, part.bytes, part.ios) == (Direction.RESYNC, MEMBER_KIB * KIB, 0)
    assert result.metrics == {"complete_s": taken.samples[-1].offset_ms / 1000}
    assert kernel.action == "idle"


def test_a_rebuild_that_is_not_complete_is_frozen_and_has_no_time(kernel: Kernel, taken: Taken) -> None:
    result = act(kernel, taken, ArrayAction.REBUILD, runtime_s=1)
    assert (result.metrics, [metric.name for metric in taken.started[0].metrics]) == ({}, ["complete_s"])
    assert result.directions[0].bytes == 1000 * KIB
    assert kernel.action == "frozen"


def test_a_check_changes_no_member_and_is_stopped(kernel: Kernel, taken: Taken) -> None:
    result = act(kernel, taken, ArrayAction.CHECK, runtime_s=1)
    assert (kernel.commands, kernel.action, result.metrics) == ([], "idle", {})


def test_a_check_begins_at_the_start_of_the_array(kernel: Kernel, taken: Taken) -> None:
    """Otherwise its result would also have the bytes of the check of an earlier trial."""
    kernel.stopped_at(130816)
    act(kernel, taken, ArrayAction.CHECK, runtime_s=1)
    assert (kernel.md / "sync_min").read_text() == "0"


@pytest.mark.parametrize(("level", "array_kib", "checked_kib"), [
    ("raid1", MEMBER_KIB, MEMBER_KIB),
    ("raid5", 3 * MEMBER_KIB, MEMBER_KIB),
    ("raid10", 2 * MEMBER_KIB, 2 * MEMBER_KIB),
])  # fmt: skip
def test_a_check_that_is_complete_before_its_progress_was_read_has_all_bytes(
    kernel: Kernel, taken: Taken, monkeypatch: pytest.MonkeyPatch, level: str, array_kib: int, checked_kib: int
) -> None:
    kernel.level(level, array_kib)
    monkeypatch.setattr(array_action.Array, "begin_check", lambda _array: None)  # at once complete
    assert act(kernel, taken, ArrayAction.CHECK).directions[0].bytes == checked_kib * KIB


def test_a_check_that_another_program_stopped_is_not_complete(kernel: Kernel, taken: Taken) -> None:
    def stop(_number: int) -> None:
        kernel.stopped_at(130816)
        kernel.set("idle", degraded=0)

    taken.then = stop
    with pytest.raises(StreamFailed, match="Another program stopped the check of md127"):
        act(kernel, taken, ArrayAction.CHECK)


def test_a_cancelled_rebuild_is_frozen(kernel: Kernel, taken: Taken) -> None:
    taken.then = lambda _number: taken.cancelled.set()
    with pytest.raises(StreamFailed, match="cancelled"):
        act(kernel, taken, ArrayAction.REBUILD)
    assert kernel.action == "frozen"


def test_an_interrupted_rebuild_is_frozen(kernel: Kernel, taken: Taken) -> None:
    def interrupt(_number: int) -> None:
        raise KeyboardInterrupt

    taken.then = interrupt
    with pytest.raises(KeyboardInterrupt):
        act(kernel, taken, ArrayAction.REBUILD)
    assert kernel.action == "frozen"


def test_an_action_that_cannot_be_stopped_does_not_hide_the_error_of_the_stream(
    kernel: Kernel, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_action, "STOP_LIMIT_S", 0.05)
    monkeypatch.setattr(array_action.Array, "_write", lambda _array, _name, _value: None)
    taken.then = lambda _number: taken.cancelled.set()
    with pytest.raises(StreamFailed, match="The stream was cancelled"):
        act(kernel, taken, ArrayAction.REBUILD)
    taken.cancelled.clear()
    taken.then = lambda _number: None
    with pytest.raises(StreamFailed, match="The kernel did not end recover of md127"):
        act(kernel, taken, ArrayAction.REBUILD, runtime_s=1)


def test_an_array_that_stays_degraded_fails_the_stream(
    kernel: Kernel, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_action, "BEGIN_LIMIT_S", 0.05)
    taken.then = lambda _number: kernel.set("idle", degraded=1)
    with pytest.raises(StreamFailed, match="md127 is degraded, and the kernel does not rebuild it"):
        act(kernel, taken, ArrayAction.REBUILD)


@pytest.mark.parametrize("action", ["idle", "recover"])
def test_a_rebuild_that_never_ran_fails_the_stream(kernel: Kernel, taken: Taken, action: str) -> None:
    """A result of 0 bytes/s would say that the other streams stopped it."""
    made = LayoutArray(name="md127", remove_member=lambda: None, add_member=lambda: kernel.set(action, degraded=1))
    target = msgspec.structs.replace(kernel.target, array=made)
    if action == "recover":  # it waits for another array
        assert act(kernel, taken, ArrayAction.REBUILD, runtime_s=1, target=target).directions[0].bytes == 0
        return
    with pytest.raises(StreamFailed, match="md127 is degraded, and the kernel does not rebuild it"):
        act(kernel, taken, ArrayAction.REBUILD, runtime_s=1, target=target)


def test_the_time_of_a_rebuild_begins_when_the_member_was_added(kernel: Kernel, taken: Taken) -> None:
    """On a busy array, `mdadm` may need longer than a short time: the result would then have no second."""

    def add_slowly() -> None:
        time.sleep(1.01)  # longer than the run time
        kernel.add_member()

    made = LayoutArray(name="md127", remove_member=lambda: None, add_member=add_slowly)
    result = act(
        kernel, taken, ArrayAction.REBUILD, runtime_s=1, target=msgspec.structs.replace(kernel.target, array=made)
    )
    assert result.directions[0].bytes == 1000 * KIB


def test_a_target_without_a_layout_is_refused(kernel: Kernel, taken: Taken) -> None:
    with pytest.raises(StreamFailed, match="not a layout with an md array"):
        act(kernel, taken, ArrayAction.CHECK, target=OpenTarget(path="/dev/md127", device="md127"))
    assert kernel.action == "idle"
