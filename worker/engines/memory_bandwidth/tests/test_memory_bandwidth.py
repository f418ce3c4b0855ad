"""sysbench really run on this host's memory."""

import threading
from pathlib import Path

import pytest

from worker.contract.base import MIB
from worker.contract.items import Sample, StreamResult, StreamStarted
from worker.contract.memory_bandwidth import MemoryAccess, MemoryWorkload
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import memory_bandwidth
from worker.engines.base import StreamFailed
from worker.engines.sysbench import following
from worker.engines.tests.running import running
from worker.kernel.targets import OpenTarget
from worker.process.scope import open_scope
from worker.recipes import missing_features, render, workload_problems

TARGET = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path="/srv", stable_id="dir:scratch")
installed = pytest.mark.skipif(memory_bandwidth.offer() is None, reason="sysbench is not installed here")


class Measurement:
    def __init__(self, state: Path, work: MemoryWorkload) -> None:
        self.samples: list[Sample] = []
        self.started: list[StreamStarted] = []
        self.cancelled = threading.Event()
        self._state, self._work = state, work

    def sampled(self, sample: Sample) -> None:
        self.samples.append(sample)

    def run(self) -> StreamResult:
        with open_scope(self._state, "stream") as scope:
            stream = running(
                Stream(number=0, target=TARGET, workload=self._work),
                OpenTarget(path="."),
                scope,
                self.cancelled,
                on_started=self.started.append,
                on_sample=self.sampled,
            )
            return memory_bandwidth.run_stream(stream)


@installed
@pytest.mark.parametrize("access", MemoryAccess)
def test_it_measures_the_bandwidth_of_memory(tmp_path: Path, access: MemoryAccess) -> None:
    measurement = Measurement(tmp_path, MemoryWorkload(access=access, buffer_bytes=64 * MIB, threads=2, runtime_s=2))
    result = measurement.run()
    rate = result.metrics["memory_bytes_per_s"]
    assert 100e6 < rate < 10e12
    assert f"({rate / MIB:.2f} MiB/sec)" in result.attachments[0].text
    assert f"operation: {access}" in result.attachments[0].text
    assert "block size: 65536KiB" in result.attachments[0].text
    assert (result.directions, result.samples) == ((), len(measurement.samples))
    assert [sample.directions for sample in measurement.samples] == [()] * len(measurement.samples)
    assert len(measurement.samples) >= 1
    assert {metric.name for metric in measurement.started[0].metrics} == set(result.metrics)
    assert result.usr_cpu_percent > 0


@installed
def test_it_ends_when_it_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurement = Measurement(tmp_path, MemoryWorkload(buffer_bytes=MIB, runtime_s=600))
    monkeypatch.setattr(measurement, "sampled", lambda _: measurement.cancelled.set())
    with pytest.raises(StreamFailed) as failure:
        measurement.run()
    assert failure.value.code == "cancelled"


def test_it_refuses_to_take_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       16000000 kB\nMemAvailable:    1048576 kB\n")
    monkeypatch.setattr(memory_bandwidth, "MEMINFO", meminfo)
    with pytest.raises(StreamFailed, match="3 buffers of 256 MiB are more than half of the 1024 MiB"):
        Measurement(tmp_path, MemoryWorkload(threads=3)).run()


def test_a_host_without_sysbench_does_not_offer_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.process.run.find", lambda _: "")
    monkeypatch.setattr(following, "find", lambda _: "")
    assert memory_bandwidth.offer() is None
    assert memory_bandwidth.installation() == "no sysbench"
    (check,) = memory_bandwidth.check()
    assert (check.name, "Install sysbench" in check.advice) == ("memory", True)
    assert missing_features(MemoryWorkload(), {}) == ["engine Memory bandwidth"]


def test_a_text_without_a_result_is_no_result() -> None:
    measured = following.Measured("Threads started!\n", following.Line("end"))
    with pytest.raises(StreamFailed) as failure:
        measured.number(memory_bandwidth._RATE)
    assert failure.value.code == "output_bad"


def test_it_refuses_a_buffer_that_sysbench_does_not_take() -> None:
    assert workload_problems(MemoryWorkload(buffer_bytes=4096), TargetKind.BLOCK) == ()
    (problem,) = workload_problems(MemoryWorkload(buffer_bytes=12 * 1024), TargetKind.BLOCK)
    assert problem.endswith("not 12 KiB: use 8 KiB or 16 KiB")


def test_it_works_on_every_target_and_its_job_states_the_exact_command() -> None:
    assert all(workload_problems(MemoryWorkload(), kind) == () for kind in TargetKind)
    work = MemoryWorkload(access=MemoryAccess.WRITE, buffer_bytes=8 * MIB, threads=4, runtime_s=30)
    text = render(Stream(number=0, target=TARGET, workload=work)).job_text
    for words in ("--memory-oper=write", "--memory-block-size=8192K", "--threads=4", "--time=30"):
        assert words in text
