"""Turn fio's dumps into samples while fio runs, and estimate samples while fio prints nothing.

    dump ─► in the ramp? ─► shorter than 0.5 s, or the run's last half second? wait for the next ─► sample
    no dump for 1.5 s ─► sample estimated from the device's counters, then one each second until the next dump

While fio is silent, the device's counters are read four times a second. A sample also ends when the device stops or
continues. So a freeze of 3 s gives samples of 3 s with 0 I/Os, regardless of its position between two dumps.

fio does not print a dump before every job has completed an I/O. So it prints no dump while a drive is frozen. After the
freeze it prints the delayed dump, with the runtime at which the dump was due, and at once the next one.
"""

import math
import time
from itertools import pairwise

from worker.contract.items import Direction, DirectionResult, DirectionSample, LatencyKind
from worker.contract.workload import FioWorkload, IoEngine
from worker.engines.device import Counted, has_counted_nothing, is_frozen
from worker.engines.fio.difference import Differ, runtime_ms
from worker.engines.fio.output import Dump
from worker.engines.sampling import Sampler

DUMP_S = 1.0  # fio's status interval
SILENT_S = 1.5  # time without a dump after which fio is silent
START_S = 1.0  # maximum time in which fio starts its jobs
POLL_S = 0.2  # minimum time between two readings of the devices' counters
MIN_SAMPLE_S = 0.5  # minimum length of a sample from fio, except for the last one of a fixed amount


class DumpSampler:
    """Sends the samples of one fio process. Moments are of the monotonic clock, in s."""

    def __init__(self, work: FioWorkload, sampler: Sampler, *, alone: bool) -> None:
        """`alone`: no other program uses the device, so what it completes while fio is silent is fio's."""
        polled = work.ioengine is IoEngine.IO_URING and work.uring.sqthread_poll
        self.kind = LatencyKind.CLAT if polled else LatencyKind.LAT
        self._work = work
        self._alone = alone
        self._sampler = sampler
        self.expected = _expected(work)
        self._differ = Differ(
            self.kind,
            _directions(work),
            io_bytes=work.block_bytes if work.one_block_size else None,
            expected=self.expected,
        )
        self._heard = time.monotonic() + START_S  # time of the last dump
        self._look_at = self._heard + SILENT_S  # when the devices' counters are checked next
        self._began: float | None = None  # None in the ramp, and before the first dump
        self._polled: list[tuple[float, Counted]] = []  # readings since the last sample or dump
        self._silent_from: Counted = ()  # the devices' counters 1.5 s after the last dump
        self._looked: Counted = ()  # the counters at the last check
        self._frozen = False  # since then, the devices have completed none of fio's I/Os that are in flight
        self._fastest: dict[Direction, float] = {}  # I/Os per second of any sample that fio reported

    def take(self, dump: Dump) -> None:
        moment = _moment(dump)
        late = moment - self._heard > SILENT_S
        if self._looked:
            self._end_freeze()
        self._polled.clear()
        self._heard, self._look_at = moment, moment + SILENT_S
        self._silent_from, self._looked, self._frozen = (), (), False
        if self._in_ramp(dump):
            self._sampler.restart()
        elif self._begin(dump, moment, late=late) and self._is_due(dump, moment):
            self._emit(self._differ.advance(dump), moment)

    def _emit(self, parts: tuple[DirectionSample, ...], moment: float) -> None:
        seconds = moment - self._sampler.ended
        for part in parts:
            self._fastest[part.direction] = max(self._fastest.get(part.direction, 0.0), part.ios / seconds)
        self._sampler.emit(parts, moment)

    def finish(self, dump: Dump) -> tuple[DirectionResult, ...]:
        """Send what is left, up to the end by fio's own clock: the final dump comes after files are closed."""
        runtime_s = runtime_ms(dump) / 1000
        self._begin(dump, _moment(dump), late=False)
        rest = self._differ.advance(dump, final=True)
        if any(part.ios or part.bytes or part.latency for part in rest):
            end = self._sampler.began + runtime_s  # of the job that ran longest; others may have begun later
            self._sampler.emit(rest, end if end > self._sampler.ended else _moment(dump))
        return self._differ.results(dump)

    def finish_stalled(self, dump: Dump) -> tuple[DirectionResult, ...]:
        """The result of a stream whose device froze until fio was killed. The stall is part of its time.

        fio did not report its last I/Os before the freeze. They are taken from the device's counters, without
        latencies.
        """
        self._sampler.emit(self._differ.advance(dump), time.monotonic())
        return self._differ.results_until(dump, round((self._sampler.ended - self._sampler.began) * 1000))

    def is_frozen(self) -> bool:
        """Whether I/O is in flight, but the devices completed none of fio's I/Os since shortly after its last dump.

        False if nothing was measured before.
        """
        return self._frozen and self._sampler.count > 0

    def poll(self) -> None:
        """Estimate samples if fio is silent. Without O_DIRECT, the device's counters do not show fio's I/O."""
        now = time.monotonic()
        if now < (self._polled[-1][0] if self._polled else self._sampler.ended) + POLL_S:
            return
        counters = self._sampler.counters()
        self._polled.append((now, counters))
        if now < self._look_at:
            return
        self._look_at = now + DUMP_S
        idle = bool(self._looked) and has_counted_nothing(self._looked, counters)
        self._looked, self._silent_from = counters, self._silent_from or counters
        self._frozen = is_frozen(self._silent_from, counters)
        if self._estimates and (self._alone or idle):
            quiet = self._quiet()
            for last in (*(n for n in range(1, len(quiet)) if quiet[n] != quiet[n - 1]), len(quiet)):
                self._estimate(*self._polled[last - 1])
        self._polled.clear()

    @property
    def _estimates(self) -> bool:
        return self._work.direct and self._sampler.count > 0

    def _quiet(self) -> list[bool]:
        """Whether the devices completed nothing between two readings, the first of which is at the last sample."""
        counted = [self._sampler.counted, *(each for _, each in self._polled)]
        return [has_counted_nothing(*each) for each in pairwise(counted)]

    def _end_freeze(self) -> None:
        """The first dump after a freeze contains the I/Os after it, so the freeze itself becomes a separate sample."""
        quiet = self._quiet()
        if self._estimates and quiet and quiet[0]:
            frozen = next((n for n, is_quiet in enumerate(quiet) if not is_quiet), len(quiet))
            self._estimate(*self._polled[frozen - 1])

    def _estimate(self, moment: float, counters: Counted) -> None:
        """Never faster than fio has reported so far: another program may use the device."""
        seconds = moment - self._sampler.ended
        limits = {direction: fastest * seconds for direction, fastest in self._fastest.items()}
        whole = self._sampler.whole()
        self._sampler.estimate(lambda device: self._differ.estimate(device, whole, limits), moment, counters)

    def _in_ramp(self, dump: Dump) -> bool:
        return bool(self._work.ramp_s) and self._began is None and not self._differ.measured(dump)

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
