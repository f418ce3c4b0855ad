"""Turn fio's dumps into samples while fio runs.

    dump ─► in the ramp? ─► shorter than 0.5 s, or the run's last half second? wait for the next ─► sample
    no dump for 1.5 s ─► silence: no sample until the next dump, which has the I/Os of the whole silence

fio does not print a dump before every job has completed an I/O. So it prints no dump while a drive is frozen. After the
freeze it prints the delayed dump, with the runtime at which the dump was due, and at once the next one.

Only fio counts its I/Os: the device's counters contain those of all programs. But while the device completes nothing,
fio completes nothing. So the counters are read four times a second, and divide a silence into spans:

    last dump │ works │ stands still │ works │ dump          fio's I/Os of the silence are spread evenly over the spans
              │ 500   │ 0      0   0 │ 100   │               in which the device works, up to what it completed

So a freeze of 3 s gives samples of 3 s with 0 I/Os, regardless of its position between two dumps. A silence in which
the device never stands still gives one long sample, because nothing shows when fio's I/Os were completed in it.
"""

import math
import time
from collections.abc import Iterable

import msgspec

from worker.contract.items import Direction, DirectionResult, DirectionSample, LatencyKind
from worker.contract.workload import FioWorkload
from worker.engines.fio.output import Differ, Dump, runtime_ms
from worker.engines.running import Reading, Sampler
from worker.kernel.counters import Counted, has_counted_nothing, is_frozen

DUMP_S = 1.0  # fio's status interval
SILENT_S = 1.5  # time without a dump after which fio is silent
START_S = 1.0  # maximum time in which fio starts its jobs
POLL_S = 0.2  # minimum time between two readings of the devices' counters
MIN_SAMPLE_S = 0.5  # minimum length of a sample from fio, except for the last one of a fixed amount
MAX_SPANS = 4000  # of one silence; a standstill is one span each second until then


class Span(msgspec.Struct, frozen=True):
    """A part of the time since the last sample. `is_still`: the devices completed nothing in it."""

    began: float  # moment
    end: Reading
    is_still: bool

    @property
    def seconds(self) -> float:
        return self.end.moment - self.began

    @property
    def is_complete(self) -> bool:
        return self.is_still and self.seconds >= DUMP_S


class DumpSampler:
    """Sends the samples of one fio process. Moments are of the monotonic clock, in s."""

    def __init__(self, work: FioWorkload, sampler: Sampler) -> None:
        self.kind = LatencyKind.CLAT if work.uring.sqthread_poll else LatencyKind.LAT
        self._work = work
        self._sampler = sampler
        self.expected = _expected(work)
        self._differ = Differ(
            self.kind,
            _directions(work),
            io_bytes=work.block_bytes if work.one_block_size else None,
            expected=self.expected,
        )
        self._heard = time.monotonic() + START_S  # time of the last dump
        self._look_at = self._heard + SILENT_S  # when the drive is next checked for a freeze
        self._began: float | None = None  # None in the ramp, and before the first dump
        self._spans: list[Span] = []  # since the last sample
        self._silent_from: Counted = ()  # the devices' counters 1.5 s after the last dump
        self._frozen = False  # since then, the devices have completed none of fio's I/Os that are in flight

    def take(self, dump: Dump) -> None:
        moment = _moment(dump)
        late = moment - self._heard > SILENT_S
        self._heard, self._look_at = moment, moment + SILENT_S
        self._silent_from, self._frozen = (), False
        if self._work.ramp_s and self._began is None and not self._differ.measured(dump):
            self._sampler.restart()
            self._spans.clear()
        elif self._begin(dump, moment, late=late):
            if late:
                self._divide_silence(dump, moment)
            if self._is_due(dump, moment):
                self._sampler.emit(self._differ.advance(dump), moment)
                self._spans.clear()

    def finish(self, dump: Dump) -> tuple[DirectionResult, ...]:
        """Send what is left, up to the end by fio's own clock: the final dump comes after files are closed."""
        runtime_s = runtime_ms(dump) / 1000
        self._begin(dump, _moment(dump), late=False)
        rest = self._differ.advance(dump, final=True)
        if _has_io(rest):
            end = self._sampler.began + runtime_s  # of the job that ran longest; others may have begun later
            self._sampler.emit(rest, end if end > self._sampler.ended else _moment(dump))
        return self._differ.results(dump)

    def finish_stalled(self, dump: Dump) -> tuple[DirectionResult, ...]:
        """The result of a stream whose device froze until fio was killed. The stall is part of its time.

        I/Os after fio's last dump are not counted: only fio could have told how many there were.
        """
        now = time.monotonic()
        self._divide_silence(dump, now)
        rest = self._differ.advance(dump)
        if now > self._sampler.ended or _has_io(rest):
            self._sampler.emit(rest, now)
        return self._differ.results_until(dump, round((self._sampler.ended - self._sampler.began) * 1000))

    def is_frozen(self) -> bool:
        """Whether I/O is in flight, but the devices completed none of fio's I/Os since shortly after its last dump.

        False if nothing was measured before.
        """
        return self._frozen and self._sampler.count > 0

    def poll(self) -> None:
        """Read the devices' counters, to know when they stand still."""
        now = time.monotonic()
        before = self._spans[-1].end if self._spans else self._sampler.last
        if now < before.moment + POLL_S:
            return
        reading = self._sampler.read(now)
        self._add(before, reading)
        if now >= self._look_at:
            self._look_at = now + DUMP_S
            self._silent_from = self._silent_from or reading.counters
            self._frozen = is_frozen(self._silent_from, reading.counters)

    def _add(self, before: Reading, reading: Reading) -> None:
        """Add the time between two readings to the last span, or begin a new one."""
        is_still = has_counted_nothing(before.counters, reading.counters)
        last = self._spans[-1] if self._spans else None
        if last is None:
            self._spans.append(Span(before.moment, reading, is_still))
        elif len(self._spans) == MAX_SPANS or (last.is_still is is_still and not last.is_complete):
            self._spans[-1] = Span(last.began, reading, last.is_still and is_still)
        else:
            if reading.moment > self._heard + SILENT_S:
                self._spans[-1] = Span(last.began, self._sampler.with_telemetry(last.end), last.is_still)
            self._spans.append(Span(before.moment, reading, is_still))

    def _divide_silence(self, dump: Dump, moment: float) -> None:
        """Send the spans of a silence up to the last standstill. The I/Os after it are those of the next sample."""
        spans = [span for span in self._spans if span.end.moment <= moment]
        while spans and not spans[-1].is_still:
            spans.pop()
        if not spans or not self._counters_tell:
            return
        working_s = moment - spans[-1].end.moment + sum(span.seconds for span in spans if not span.is_still)
        for span in spans:
            worked_s = 0.0 if span.is_still else span.seconds
            share = worked_s / working_s if working_s else 0.0
            parts = self._differ.spread(dump, share, self._sampler.device_until(span.end))
            self._sampler.emit_earlier(parts, span.end)
            working_s -= worked_s
        self._spans.clear()

    @property
    def _counters_tell(self) -> bool:
        """Whether a standstill of the devices is one of fio: not with the page cache, nor with SCSI commands."""
        return self._work.direct and self._sampler.count > 0 and self._sampler.device_works

    def _begin(self, dump: Dump, moment: float, *, late: bool) -> bool:
        """Compute the start of the measured part. False for a late first dump, because its runtime is too short."""
        if self._sampler.count == 0:
            self._began = min(moment - runtime_ms(dump) / 1000, self._began or math.inf)
            self._sampler.began_at(self._began)
        return not late or self._sampler.count > 0

    def _is_due(self, dump: Dump, moment: float) -> bool:
        """The rest of a run with a runtime is part of its last sample."""
        runtime_s = self._work.runtime_s
        length_s = moment - self._sampler.ended
        ends_soon = runtime_s is not None and runtime_ms(dump) >= (runtime_s - MIN_SAMPLE_S) * 1000
        return length_s >= SILENT_S or (length_s >= MIN_SAMPLE_S and not ends_soon)


def _has_io(parts: Iterable[DirectionSample]) -> bool:
    return any(part.ios or part.bytes or part.latency for part in parts)


def _moment(dump: Dump) -> float:
    """When the dump was printed. Its own time is of the wall clock, which may be set meanwhile: hence the limits."""
    return time.monotonic() - min(max(0.0, time.time() - dump.timestamp_ms / 1000), DUMP_S)


def _directions(work: FioWorkload) -> tuple[Direction, ...]:
    wanted = {
        Direction.READ: work.pattern.reads or work.verifies,
        Direction.WRITE: work.pattern.stores,
        Direction.TRIM: work.pattern.trims,
    }
    return tuple(direction for direction, is_wanted in wanted.items() if is_wanted)


def _expected(work: FioWorkload) -> tuple[Direction, ...]:
    """The directions that have a result even without any I/O: both of a mix. Without it, a mean over repeats would
    leave out the repeat in which a direction got no I/O."""
    is_mix = work.pattern.mixed and 0 < (work.read_percent or 0) < 100
    return (Direction.READ, Direction.WRITE) if is_mix else ()
