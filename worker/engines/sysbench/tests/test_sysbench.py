"""sysbench really run on files in a scratch directory, and an output that it printed."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worker.contract.base import KIB, MIB
from worker.contract.items import Direction, DirectionSample, Sample, StreamResult
from worker.contract.packing import unpack
from worker.contract.sysbench import FileTest, SysbenchWorkload
from worker.contract.sysbench_oltp import OltpWorkload
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import sysbench
from worker.engines.base import StreamFailed
from worker.engines.running import Reading, Running
from worker.engines.sysbench.reports import EVENTS, Seconds, latency_in
from worker.engines.tests.running import run_in_folder
from worker.recipes import render, workload_problems
from worker.recipes.base import Recipe

RECORDED = (Path(__file__).parent / "recorded" / "rndrd.txt").read_text()  # sysbench 1.0.20, Debian 12
TARGET = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path="/srv", stable_id="dir:scratch")
installed = pytest.mark.skipif(sysbench.offer() is None, reason="sysbench is not installed here")
SMALL = SysbenchWorkload(size_bytes=4 * MIB, files=2, threads=2, runtime_s=2)


def run(
    tmp_path: Path, work: SysbenchWorkload, cancelled: threading.Event, on_sample: Callable[[Sample], None]
) -> StreamResult:
    return run_in_folder(sysbench, tmp_path, Stream(number=0, target=TARGET, workload=work), cancelled, on_sample)


@installed
@pytest.mark.parametrize(("test", "direction"), [(FileTest.RNDRD, Direction.READ), (FileTest.RNDWR, Direction.WRITE)])
def test_it_counts_each_io_and_leaves_nothing(tmp_path: Path, test: FileTest, direction: Direction) -> None:
    samples: list[Sample] = []
    work = SysbenchWorkload(size_bytes=4 * MIB, files=2, threads=2, runtime_s=2, test=test)
    result = run(tmp_path, work, threading.Event(), samples.append)
    (measured,) = result.directions
    assert measured.direction is direction
    assert measured.ios == unpack(measured.latency).total == sum(part.ios for part in _parts(samples)) > 0
    assert measured.bytes == measured.ios * 16 * KIB == sum(part.bytes for part in _parts(samples))
    assert measured.latency_min_ns <= measured.latency_mean_ns <= measured.latency_max_ns
    assert 2000 <= measured.runtime_ms < 10_000
    assert result.samples == len(samples) >= 1
    assert result.engine_version.startswith("sysbench 1.")
    assert result.usr_cpu_percent + result.sys_cpu_percent > 0
    report = result.attachments[0].text
    assert f"total number of events:              {measured.ios}\n" in report
    assert "Threads started!" in report
    assert "[ 1s ]" not in report  # samples have what these lines say, and a long trial has many


def _parts(samples: list[Sample]) -> list[DirectionSample]:
    return [part for sample in samples for part in sample.directions]


@installed
def test_a_cancelled_trial_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    cancelled = threading.Event()
    work = SysbenchWorkload(size_bytes=MIB, runtime_s=600)
    with pytest.raises(StreamFailed) as failure:
        run(tmp_path, work, cancelled, lambda _: cancelled.set())
    assert failure.value.code == "cancelled"
    listed = subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout
    assert f"--file-total-size={MIB} " not in listed


@installed
def test_a_failure_has_the_words_of_sysbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = render(Stream(number=0, target=TARGET, workload=SMALL))
    bad = Recipe(good.job_text.replace("--file-test-mode=rndrd", "--file-test-mode=none"), good.command, ())
    monkeypatch.setattr(Running, "recipe", lambda _: bad)
    with pytest.raises(
        StreamFailed, match=r"FATAL: Invalid IO operations mode: none\.; sysbench fileio ended with status 1"
    ) as failure:
        run(tmp_path, SMALL, threading.Event(), lambda _: None)
    assert failure.value.code == "sysbench_error"


def test_the_recorded_histogram_has_every_event() -> None:
    latency = latency_in(RECORDED)
    measured = sysbench.following.Measured(RECORDED, sysbench.following.Line("end"))
    assert latency.total == measured.number(EVENTS)
    mean_ns, printed_ns = latency.mean_ns(), 1e6 * measured.number(r"^ *avg: *([0-9.]+)$")
    assert mean_ns == pytest.approx(printed_ns, abs=6000, rel=0.03)


class Sent:
    """A sampler that keeps what it is given."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def read(self, moment: float) -> Reading:
        return Reading(moment, ())

    def with_telemetry(self, reading: Reading) -> Reading:
        return reading

    def emit_earlier(self, directions: tuple[DirectionSample, ...], _end: Reading, *, estimated: bool) -> None:
        assert not estimated
        self.parts.append(directions[0])


@pytest.mark.parametrize(("total", "ios"), [(1100, [512, 588]), (500, [512, 0])])
def test_the_last_second_has_the_rest(total: int, ios: list[int]) -> None:
    sent: Any = Sent()
    seconds = Seconds(sent, Direction.READ, lambda text: float(text) * MIB / (4 * KIB), event_bytes=4 * KIB)
    for rate in ("2.00", "3.00"):
        seconds.take(rate)
    measured = sysbench.following.Measured(RECORDED, sysbench.following.Line("end"))
    assert seconds.finish(measured, total).ios == total
    assert [part.ios for part in sent.parts] == ios
    assert [part.bytes for part in sent.parts] == [4 * KIB * count for count in ios]


def test_its_job_states_the_exact_commands() -> None:
    work = SysbenchWorkload(
        test=FileTest.RNDWR, size_bytes=8 * MIB, files=4, threads=3, runtime_s=30, fsync=True, direct=False
    )
    text = render(Stream(number=0, target=TARGET, workload=work)).job_text
    for words in ("--file-num=4", f"--file-total-size={32 * MIB}", "--file-fsync-all=on", "--threads=3", "--time=30"):
        assert words in text
    assert "direct" not in text


@pytest.mark.parametrize(
    ("seed", "given"), [(0, 1), (5, 6), (2**31 - 2, 2**31 - 1), (2**31 - 1, 1), (3 * 10**12, 2112828789)]
)
def test_it_gives_only_seeds_that_sysbench_takes(seed: int, given: int) -> None:
    for work in (SysbenchWorkload(seed=seed), OltpWorkload(seed=seed)):
        assert f'"--rand-seed={given}"' in render(Stream(number=0, target=TARGET, workload=work)).job_text


@installed
def test_it_runs_with_the_seed_of_a_named_stream(tmp_path: Path) -> None:
    work = SysbenchWorkload(size_bytes=MIB, runtime_s=1, seed=3_800_000_000_001)
    assert run(tmp_path, work, threading.Event(), lambda _: None).directions[0].ios > 0


def test_it_refuses_what_cannot_run() -> None:
    def problems(kind: TargetKind = TargetKind.DIRECTORY, **given: Any) -> str:
        return "; ".join(workload_problems(SysbenchWorkload(**given), kind))

    assert problems() == ""
    assert "needs a directory target" in problems(TargetKind.BLOCK)
    assert "multiple of the block size" in problems(size_bytes=24 * KIB)
    assert "rndrd only reads" in problems(fsync=True)
