"""The samples of a stream add up to its result, whatever the drive and other programs do meanwhile."""

import time
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.contract.items import Direction, DirectionResult, Sample
from worker.contract.packing import merge, unpack
from worker.contract.workload import FioWorkload, Pattern
from worker.engines.fio.live import DumpSampler
from worker.engines.fio.output import Dump, Flow, Job, Latency
from worker.engines.running import Sampler
from worker.kernel.counters import Counters

TICK_S = 0.25
KIB4, KIB64 = 4096, 65_536
LATENCIES_NS = {Direction.READ: 100_000, Direction.WRITE: 900_000}


class Moved(msgspec.Struct):
    ios: int = 0
    bytes: int = 0


class Jobs:
    """The jobs of one fio. A dump that is due is printed only after every job has completed an I/O since."""

    def __init__(self, work: FioWorkload, clock: "Clock") -> None:
        self.samples: list[Sample] = []
        self._clock = clock
        self._work = work
        self._began = clock.now_s
        self._moved = {Direction.READ: Moved(), Direction.WRITE: Moved()}
        self._waiting: set[int] = set()  # jobs that hold up the dump that is due
        self._due: Dump | None = None
        self.last: Dump | None = None  # printed
        self._next_s = self._began + 1
        self.stream = DumpSampler(work, Sampler(0, ("sda",), self.samples.append))

    def tick(self, ios_by_job: Sequence[int]) -> None:
        for job, ios in enumerate(ios_by_job):
            self._complete(job, ios)
        self.stream.poll()
        if self._due is None and self._clock.now_s >= self._next_s:
            self._due, self._waiting = self.printed(), set(range(self._work.numjobs))
        if self._due and not self._waiting:
            (due,) = self._due.jobs
            (now,) = self.printed().jobs
            late = Job(read=self._late(due.read, now.read), write=self._late(due.write, now.write))
            self._due = None
            self._next_s = max(self._next_s + 1, self._clock.now_s)
            self.last = msgspec.structs.replace(self.printed(), jobs=(late,))
            self.stream.take(self.last)

    def _complete(self, job: int, ios: int) -> None:
        for direction, share in ((Direction.READ, ios - ios // 3), (Direction.WRITE, ios // 3)):
            sizes = self._work.block_sizes
            moved = sum(sizes[n % len(sizes)] for n in range(share))
            self._moved[direction].ios += share
            self._moved[direction].bytes += moved
            if self._clock.counts_fio:
                self._clock.complete(direction, share, moved)
        if ios:
            self._waiting.discard(job)

    @staticmethod
    def _late(due: Flow, now: Flow) -> Flow:
        """Bytes and time are of the moment at which the dump was due, histograms of that at which it is printed."""
        return msgspec.structs.replace(now, io_bytes=due.io_bytes, runtime=due.runtime)

    def printed(self) -> Dump:
        runtime_ms = round(1000 * (self._clock.now_s - self._began))
        flows = {
            direction: Flow(
                io_bytes=moved.bytes, runtime=runtime_ms,
                lat_ns=Latency(N=moved.ios, bins={LATENCIES_NS[direction]: moved.ios} if moved.ios else {}),
            )
            for direction, moved in self._moved.items()
        }  # fmt: skip
        return Dump(
            "", "fio-3.33", round(1000 * time.time()), (Job(read=flows[Direction.READ], write=flows[Direction.WRITE]),)
        )


class Clock:
    """The time, and the counters of the one device."""

    def __init__(self, *, counts_fio: bool) -> None:
        self.now_s = 100.0
        self.counts_fio = counts_fio
        self._counted = {Direction.READ: Moved(), Direction.WRITE: Moved()}

    def complete(self, direction: Direction, ios: int, moved_bytes: int) -> None:
        self._counted[direction].ios += ios
        self._counted[direction].bytes += moved_bytes

    def counters(self, _device: str) -> Counters:
        read, write = self._counted[Direction.READ], self._counted[Direction.WRITE]
        return Counters(self.now_s, read.ios, read.bytes // 512, write.ios, write.bytes // 512, 0, 0, in_flight=1)


# One tick: I/Os of each of three jobs, and those of another program on the device.
busy = st.tuples(st.lists(st.integers(0, 300), min_size=3, max_size=3), st.sampled_from([0, 0, 7, 5000]))
frozen = st.sampled_from([0, 0, 9000]).map(lambda others: ([0, 0, 0], others))
one_frozen = st.integers(1, 200).map(lambda ios: ([ios, 0, ios], 0))
phases = st.lists(
    st.tuples(st.one_of(busy, frozen, one_frozen), st.integers(1, 24)).map(lambda phase: [phase[0]] * phase[1]),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(phases, st.booleans(), st.integers(1, 2), st.booleans(), st.booleans())
def test_the_samples_add_up_to_the_result(
    phases: list[list[tuple[list[int], int]]], one_size: bool, streams: int, uses_device: bool, ends: bool
) -> None:
    """Three jobs in each stream on one device. `uses_device`: False for files whose I/O a cache answers. `ends`:
    False if the device freezes until fio is killed."""
    work = FioWorkload(
        pattern=Pattern.RANDRW, read_percent=67, runtime_s=600, numjobs=3, block_bytes=KIB4,
        block_range=None if one_size else (KIB4, KIB64),
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as monkeypatch:
        clock = Clock(counts_fio=uses_device)
        monkeypatch.setattr(time, "monotonic", lambda: clock.now_s)
        monkeypatch.setattr(time, "time", lambda: 5e8 + clock.now_s)
        monkeypatch.setattr("worker.engines.running.read_counters", clock.counters)
        several = [Jobs(work, clock) for _ in range(streams)]
        for ios_by_job, others in [tick for phase in phases for tick in phase]:
            clock.now_s += TICK_S
            clock.complete(Direction.READ, others, others * KIB4)
            for jobs in several:
                jobs.tick(ios_by_job)
        for jobs in several:
            if ends:
                final = jobs.printed()
                jobs.stream.take(final)
                assert_they_add_up(jobs.samples, jobs.stream.finish(final))
            elif jobs.last and jobs.samples:
                assert_they_add_up(jobs.samples, jobs.stream.finish_stalled(jobs.last))


def assert_they_add_up(samples: Sequence[Sample], results: Sequence[DirectionResult]) -> None:
    for direction in LATENCIES_NS:
        whole = next((each for each in results if each.direction is direction), None)
        parts = [part for sample in samples for part in sample.directions if part.direction is direction]
        assert sum(part.ios for part in parts) == (whole.ios if whole else 0)
        assert sum(part.bytes for part in parts) == (whole.bytes if whole else 0)
        histograms = merge(unpack(part.latency) for part in parts)
        assert histograms.total == (whole.ios if whole else 0)
    ends = [sample.offset_ms for sample in samples]
    assert [sample.offset_ms - sample.length_ms for sample in samples] == [0, *ends[:-1]][: len(ends)]
