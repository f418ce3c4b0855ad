"""Dumps as samples: where they are put in time, also while fio prints none."""

import time
from itertools import accumulate
from typing import Any

import pytest

from worker.contract.items import Sample
from worker.contract.packing import unpack
from worker.contract.workload import FioWorkload, Pattern
from worker.engines.fio import live
from worker.engines.fio.output import Dump, Flow, Job, Latency
from worker.engines.running import Sampler
from worker.kernel.counters import Counters


class Simulated:
    """fio at 1,000 reads per second on a device that counts, with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **workload: Any) -> None:
        self.now_s = 100.0
        self.fio_ios = self.device_ios = 0
        self.in_flight = 1
        self.samples: list[Sample] = []
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(time, "time", lambda: 5e8 + self.now_s)
        monkeypatch.setattr("worker.engines.running.read_counters", self._counters)
        usual: dict[str, Any] = {"pattern": Pattern.RANDREAD, "runtime_s": 60}
        work = FioWorkload(**(usual | workload))
        self.dumps = live.DumpSampler(work, Sampler(0, ("sda",), self.samples.append))

    def _counters(self, _device: str) -> Counters:
        return Counters(self.now_s, self.device_ios, 8 * self.device_ios, 0, 0, 0, 0, in_flight=self.in_flight)

    def wait(self, seconds: float, *, reads_per_s: int, fio_counts: bool = True) -> None:
        for _ in range(round(seconds * 4)):
            self.now_s += 0.25
            self.device_ios += reads_per_s // 4
            self.fio_ios += reads_per_s // 4 if fio_counts else 0
            self.dumps.poll()

    def dump(self, runtime_ms: int, *, final: bool = False) -> None:
        (self.dumps.finish if final else self.dumps.take)(self.printed(runtime_ms))

    def printed(self, runtime_ms: int) -> Dump:
        bins = {100_000: self.fio_ios} if self.fio_ios else {}
        flow = Flow(io_bytes=4096 * self.fio_ios, runtime=runtime_ms, lat_ns=Latency(N=self.fio_ios, bins=bins))
        return Dump("", "fio-3.33", round((5e8 + self.now_s) * 1000), (Job(read=flow),))

    def second(self, runtime_ms: int, reads_per_s: int = 1000) -> None:
        self.wait(1, reads_per_s=reads_per_s)
        self.dump(runtime_ms)

    @property
    def rates(self) -> list[int]:
        return [round(1000 * s.directions[0].ios / s.length_ms) for s in self.samples]

    @property
    def offsets(self) -> list[int]:
        return [s.offset_ms for s in self.samples]


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    return Simulated(monkeypatch)


def test_a_sample_a_second(simulated: Simulated) -> None:
    for n in range(1, 4):
        simulated.second(1000 * n)
    assert simulated.offsets == [1000, 2000, 3000]
    assert simulated.rates == [1000, 1000, 1000]
    assert not any(sample.estimated for sample in simulated.samples)


def test_a_freeze_is_zero_while_it_lasts(simulated: Simulated) -> None:
    """12 s. The dump that was due at 4 s comes at 15.5 s with the runtime of 4 s, the next one at once."""
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(11, reads_per_s=0)
    assert simulated.offsets[-1] == 3000, "only fio counts its I/Os"
    simulated.wait(1, reads_per_s=1000)
    simulated.dump(4000)
    simulated.dump(15_500)
    simulated.second(16_500)
    simulated.second(17_500)
    assert (simulated.offsets[3], simulated.rates[3]) == (3500, 1000)  # half a second of I/O, then none
    assert simulated.offsets[14] == 14_500, "the end of the freeze"
    assert simulated.rates[4:15] == [0] * 11
    assert set(simulated.rates[-2:]) == {1000}
    assert simulated.offsets == list(accumulate(s.length_ms for s in simulated.samples))
    assert simulated.offsets[-1] == 17_500
    assert sum(s.directions[0].ios for s in simulated.samples) == simulated.fio_ios


@pytest.mark.parametrize("after_s", [0.25, 0.5, 0.75, 1.0])
def test_a_freeze_of_three_seconds_is_three_seconds_of_zero(simulated: Simulated, after_s: float) -> None:
    """Wherever it lies between two dumps. The first dump after it has the I/Os after it."""
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(after_s, reads_per_s=1000)
    simulated.wait(3, reads_per_s=0)
    simulated.fio_ios, simulated.device_ios = simulated.fio_ios + 100, simulated.device_ios + 100
    simulated.dump(4000)
    simulated.wait(1, reads_per_s=1000)
    simulated.dump(round(1000 * (3 + after_s + 3 + 1)))
    zero = [sample for sample in simulated.samples if not sample.directions[0].ios]
    assert zero[0].offset_ms - zero[0].length_ms == 3000 + 1000 * after_s
    assert zero[-1].offset_ms == 6000 + 1000 * after_s
    assert sum(sample.length_ms for sample in zero) == 3000
    assert sum(s.directions[0].ios for s in simulated.samples) == simulated.fio_ios


def test_a_freeze_of_one_job_causes_no_burst_afterwards(simulated: Simulated) -> None:
    """The other jobs go on, so fio's late dump holds the I/Os of 8 s beside the runtime of one."""
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(8, reads_per_s=500)
    simulated.dump(4000)
    simulated.dump(11_000)
    simulated.second(12_000)
    assert simulated.rates == [1000, 1000, 1000, 500, 1000]
    assert simulated.offsets == [1000, 2000, 3000, 11_000, 12_000]
    assert sum(s.directions[0].ios for s in simulated.samples) == simulated.fio_ios


def test_ios_of_other_programs_are_never_those_of_fio(simulated: Simulated) -> None:
    """Another program reads from the device, also while fio gets nothing: the silence is one long sample."""
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(5, reads_per_s=700, fio_counts=False)
    simulated.wait(0.25, reads_per_s=1000)
    simulated.dump(4000)
    simulated.wait(1, reads_per_s=1000)
    simulated.dump(9750, final=True)
    assert [(s.offset_ms, s.directions[0].ios) for s in simulated.samples[3:]] == [(8750, 750), (9750, 1000)]


def test_ios_of_other_programs_are_not_placed_in_a_standstill(simulated: Simulated) -> None:
    """The device stands still for 3 s, then works for another program alone for 2 s."""
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(3, reads_per_s=0)
    simulated.wait(2, reads_per_s=90_000, fio_counts=False)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.dump(4000)
    assert [s.offset_ms for s in simulated.samples[3:]] == [3500, 4500, 5500, 6500, 9000]
    assert [s.directions[0].ios for s in simulated.samples[3:]] == [167, 0, 0, 0, 833]  # 1,000 in 0.5 s and 2.5 s


def test_one_read_of_another_program_in_a_standstill_is_not_a_burst_of_fio(simulated: Simulated) -> None:
    for n in range(1, 4):
        simulated.second(1000 * n)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(3, reads_per_s=0)
    simulated.device_ios += 1
    simulated.wait(3, reads_per_s=0)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.dump(4000)
    simulated.second(11_000)
    frozen = [s for s in simulated.samples if 3500 < s.offset_ms <= 9500]
    assert sum(s.directions[0].ios for s in frozen) == 1
    assert sum(s.directions[0].ios for s in simulated.samples) == simulated.fio_ios


def test_a_standstill_of_the_counters_says_nothing_of_commands_that_they_leave_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SCSI commands to a drive are not counted by it."""
    simulated = Simulated(monkeypatch)
    for seconds, runtime_ms in ((1, 1000), (4, 2000)):
        simulated.wait(seconds, reads_per_s=0)
        simulated.fio_ios += 1000 * seconds
        simulated.dump(runtime_ms)
    assert (simulated.offsets, simulated.rates) == ([1000, 5000], [1000, 1000])


def test_a_freeze_without_end_is_part_of_the_result(simulated: Simulated) -> None:
    """Killed after 60 s: 5 s of I/O and 60 s of stall."""
    for n in range(1, 6):
        simulated.second(1000 * n)
    assert not simulated.dumps.is_frozen()
    simulated.wait(60, reads_per_s=0)
    assert simulated.dumps.is_frozen()
    (result,) = simulated.dumps.finish_stalled(simulated.printed(5000))
    assert (result.ios, result.bytes, result.runtime_ms) == (5000, 5000 * 4096, 65_000)
    assert result.iops == pytest.approx(5000 / 65)
    assert simulated.offsets[-1] == 65_000
    assert sum(s.directions[0].ios for s in simulated.samples) == 5000


def test_ios_that_fio_never_reported_are_not_part_of_the_result(simulated: Simulated) -> None:
    """fio told about 5 s of the 5.5 s before the freeze. The device's counters do not say whose the rest was."""
    for n in range(1, 6):
        simulated.second(1000 * n)
    printed = simulated.printed(5000)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(60, reads_per_s=0)
    (result,) = simulated.dumps.finish_stalled(printed)
    assert (result.ios, result.bytes, result.runtime_ms) == (5000, 5000 * 4096, 65_500)
    assert sum(s.directions[0].ios for s in simulated.samples) == 5000
    assert unpack(result.latency).total == 5000


def test_a_hanging_fio_on_a_working_device_is_not_a_frozen_device(simulated: Simulated) -> None:
    for n in range(1, 6):
        simulated.second(1000 * n)
    simulated.wait(60, reads_per_s=1000)
    assert not simulated.dumps.is_frozen()


def test_a_few_reads_of_another_program_do_not_hide_a_freeze(simulated: Simulated) -> None:
    for n in range(1, 6):
        simulated.second(1000 * n)
    simulated.wait(30, reads_per_s=0)
    simulated.device_ios += 5
    simulated.wait(30, reads_per_s=0)
    assert simulated.dumps.is_frozen()


def test_a_slow_device_is_not_a_frozen_device(simulated: Simulated) -> None:
    """One I/O every two seconds."""
    for n in range(1, 6):
        simulated.second(1000 * n)
    for _ in range(30):
        simulated.device_ios += 1
        simulated.wait(2, reads_per_s=0)
    assert not simulated.dumps.is_frozen()


def test_a_stopped_fio_on_an_idle_device_is_not_a_frozen_device(simulated: Simulated) -> None:
    """The device owes nothing: no I/O is in flight."""
    for n in range(1, 6):
        simulated.second(1000 * n)
    simulated.in_flight = 0
    simulated.wait(60, reads_per_s=0)
    assert not simulated.dumps.is_frozen()


def test_jobs_that_began_later_make_no_peak_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest job ran for 3 s, another one left its ramp 1.5 s later and ended so much later."""
    simulated = Simulated(monkeypatch, runtime_s=3)
    for n in (1, 2, 3, 3):
        simulated.second(1000 * n)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.dump(3000, final=True)
    assert max(simulated.rates) <= 1100
    assert sum(s.directions[0].ios for s in simulated.samples) == simulated.fio_ios


def test_a_freeze_at_the_start_is_one_long_sample(simulated: Simulated) -> None:
    simulated.wait(0.5, reads_per_s=1000)
    simulated.wait(12, reads_per_s=0)
    simulated.wait(0.5, reads_per_s=1000)
    simulated.dump(1000)
    simulated.dump(13_000)
    assert simulated.offsets == [13_000]
    assert simulated.rates == [77]


def test_a_buffered_freeze_is_one_long_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device does not say what is read from the page cache."""
    simulated = Simulated(monkeypatch, direct=False)
    simulated.second(1000)
    simulated.wait(9, reads_per_s=0)
    assert len(simulated.samples) == 1
    simulated.wait(1, reads_per_s=1000)
    simulated.dump(2000)
    assert (simulated.offsets, simulated.rates) == ([1000, 11_000], [1000, 100])


def test_the_ramp_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, ramp_s=2)
    for n in (1, 2):
        simulated.wait(1, reads_per_s=1000, fio_counts=False)
        simulated.dump(1000 * n)
    simulated.wait(0.25, reads_per_s=1000)
    simulated.dump(250)  # some jobs may not have left it yet
    assert simulated.samples == []
    simulated.wait(1, reads_per_s=1000)
    simulated.dump(1250)
    assert (simulated.offsets, simulated.rates) == ([1250], [1000])


def test_the_rest_of_a_run_is_in_its_last_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, runtime_s=2)
    simulated.second(1000)
    simulated.second(2000)
    simulated.fio_ios += 4
    simulated.now_s += 0.2  # closes its files
    simulated.dump(2004, final=True)
    assert simulated.offsets == [1000, 2004]
    assert sum(s.directions[0].ios for s in simulated.samples) == 2004


def test_a_change_of_the_wall_clock_has_no_effect(simulated: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated.second(1000)
    monkeypatch.setattr(time, "time", lambda: 4e8 + simulated.now_s)
    simulated.second(2000)
    assert simulated.offsets == [1000, 2000]


@pytest.mark.parametrize(
    ("workload", "directions"),
    [
        ({"pattern": Pattern.RANDRW, "read_percent": 99}, ["read", "write"]),
        ({"pattern": Pattern.RANDRW, "read_percent": 100}, ["read"]),
        ({"pattern": Pattern.RANDREAD}, ["read"]),
    ],
)
def test_a_direction_of_a_mix_has_a_result_without_any_io(
    monkeypatch: pytest.MonkeyPatch, workload: dict[str, Any], directions: list[str]
) -> None:
    simulated = Simulated(monkeypatch, **workload)
    simulated.second(1000)
    simulated.wait(1, reads_per_s=1000)
    found = simulated.dumps.finish(simulated.printed(2000))
    assert [result.direction.value for result in found] == directions
    assert [result.iops for result in found] == [1000, 0][: len(found)]
