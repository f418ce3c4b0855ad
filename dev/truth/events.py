"""Steps, ramps and freezes of a drive at known times during a trial, compared with the trial's samples and verdict.

A freeze stops the drive, not fio. A freeze of 75 s is longer than the silence limit, so fio is killed during it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from queue import SimpleQueue
from typing import Any

from dev.bench.figures import Figure, figure
from dev.console import say, step
from dev.truth.drive import Drive, Limit, drives
from dev.truth.trial import SILENCE_S, Script, Trial, differences, run
from webapp.core.formatting import latency
from worker.contract.histogram import BEYOND, supported_percentile
from worker.contract.items import Sample
from worker.contract.packing import unpack
from worker.contract.steadiness import Verdict
from worker.contract.workload import FioWorkload, IoEngine, Pattern

AT_ONCE, TRIES = 5, 3
SHORT_MS = 400  # a shorter sample lies between two readings of the device's counters
FAST, SLOW = Limit(iops=1000), Limit(iops=500)
FREEZE_AT_S, CHANGE_AT_S = 5.0, 10.0
OFFSET_S, STALL_S, SILENT_S, LATENCY_S = 1.0, 1.0, 2.0, 0.5  # the bounds
MIXES: Sequence[dict[str, Any]] = (
    {"pattern": Pattern.RANDREAD, "iodepth": 4},
    {"pattern": Pattern.RANDWRITE, "ioengine": IoEngine.PSYNC},
    {"pattern": Pattern.RANDRW, "read_percent": 50, "ioengine": IoEngine.LIBAIO, "iodepth": 8},
    {"pattern": Pattern.READ, "iodepth": 16, "numjobs": 2},
)
Actions = Sequence[tuple[float, Callable[[], None]]]


@dataclass(frozen=True)
class Case:
    name: str
    verdict: Verdict
    work: FioWorkload
    actions: Callable[[Drive], Actions]
    freeze_s: float = 0.0
    limit: Limit = FAST


@dataclass(frozen=True)
class Found:
    case: Case
    trial: Trial
    acted_at: Sequence[float]  # seconds after the start of the measured part
    tries: int

    @property
    def frozen(self) -> tuple[float, float]:
        """Start and end of the freeze in the samples: their longest sequence without I/O.

        A read by another program is in a separate short sample, which does not end the sequence.
        """
        runs = [list(run) for is_frozen, run in groupby(self.trial.samples, key=_is_frozen) if is_frozen]
        zeros = [[sample for sample in run if not _ios(sample)] for run in runs]
        longest = max(zeros, key=lambda run: run[-1].offset_ms - _start_ms(run[0]) if run else 0, default=[])
        return (_start_ms(longest[0]) / 1000, longest[-1].offset_ms / 1000) if longest else (0.0, 0.0)

    @property
    def ended_s(self) -> float:
        """The end of the trial; in a freeze without end, the time at which fio was killed."""
        return self.trial.result.ended_at - self.trial.began

    @property
    def largest_latency_s(self) -> float:
        return max(one.latency_max_ns for one in self.trial.result.directions) / 1e9

    @property
    def with_ios(self) -> list[Sample]:
        """Samples with I/O that lie inside the freeze."""
        began, ended = self.acted_at[0], min(self.acted_at[1], self.ended_s)
        inside = [s for s in self.trial.samples if _start_ms(s) > 1000 * began and s.offset_ms < 1000 * ended]
        return [sample for sample in inside if _ios(sample)]

    @property
    def invented(self) -> int:
        """The number of samples with I/O that no device completed. In the others, another program read the drive."""
        return sum(1 for s in self.with_ios if s.device is None or not s.device.read_ios + s.device.write_ios)


def _ios(sample: Sample) -> int:
    return sum(part.ios for part in sample.directions)


def _is_frozen(sample: Sample) -> bool:
    return not _ios(sample) or sample.length_ms < SHORT_MS


def _start_ms(sample: Sample) -> int:
    return sample.offset_ms - sample.length_ms


def cases() -> list[Case]:
    longest = _freeze(75, 0.6, MIXES[0])
    large = _freeze(22, 0.2, {"pattern": Pattern.RANDREAD, "iodepth": 64}, Limit(iops=200))
    short = [_freeze(3, number / 4, mix) for number, mix in enumerate(MIXES)]
    middle = [_freeze(12, 0.4 + number / 4, mix) for number, mix in enumerate(MIXES[:2])]
    return [longest, large, *middle, *short, *_changes()]


def _freeze(seconds: float, after_s: float, mix: dict[str, Any], limit: Limit = FAST) -> Case:
    begin = FREEZE_AT_S + after_s

    def actions(drive: Drive) -> Actions:
        return ((begin, drive.freeze), (begin + seconds, partial(drive.limit, limit)))

    runtime_s = 20 if seconds > SILENCE_S else int(2 * FREEZE_AT_S + seconds)
    work = FioWorkload(**mix, runtime_s=runtime_s)
    return Case(f"freeze of {seconds:g} s", Verdict.STALLED, work, actions, seconds, limit)


def _changes() -> list[Case]:
    work = FioWorkload(pattern=Pattern.RANDREAD, iodepth=4, runtime_s=20)

    def ramp(drive: Drive) -> Actions:
        return [(n / 2, partial(drive.limit, Limit(iops=1000 - 12 * n))) for n in range(1, 42)]

    return [
        Case("step down", Verdict.STEPPED, work, lambda drive: [(CHANGE_AT_S, partial(drive.limit, SLOW))]),
        Case("step up", Verdict.STEPPED, work, lambda drive: [(CHANGE_AT_S, partial(drive.limit, FAST))], limit=SLOW),
        Case("ramp", Verdict.DRIFTING, work, ramp),
        Case("no change", Verdict.STEADY, work, lambda _drive: []),
    ]


def figures() -> list[Figure]:
    """Raises NotPossible."""
    found = _measured()
    wrong = [f"{each.case.name}: {text}" for each in found for text in differences(each.trial)]
    verdicts = [f"{each.case.name}: {each.trial.verdict.verdict}, not {each.case.verdict}" for each in found
                if each.trial.verdict.verdict is not each.case.verdict]  # fmt: skip
    for text in (*wrong, *verdicts):
        say(f"    {text}")
    return [
        _count(f"wrong verdicts on {len(found)} steps, ramps and freezes", verdicts),
        _count(f"numbers of {len(found)} trials that differ from fio's, or from the sum of the samples", wrong),
        *_freezes([each for each in found if each.case.freeze_s]),
        _within("error of the time of a step", "s", [
            each.trial.verdict.step_at_s - each.acted_at[0] for each in found if each.case.verdict is Verdict.STEPPED
        ], OFFSET_S),
    ]  # fmt: skip


def _freezes(found: Sequence[Found]) -> list[Figure]:
    ended = [each for each in found if not each.trial.result.stalled_s]
    killed = [each for each in found if each.trial.result.stalled_s]
    repeated = sum(each.tries - 1 for each in found)
    disturbed = sum(bool(each.with_ios) for each in found)
    invented = [each.case.name for each in found if each.invented]
    starts = [each.frozen[0] - each.acted_at[0] for each in found]
    ends = [each.frozen[1] - each.acted_at[1] for each in ended]
    stalls = [each.trial.verdict.stall_s - each.case.freeze_s for each in ended]
    largest = [each.largest_latency_s - each.case.freeze_s for each in ended]
    silent = [each.trial.result.stalled_s - (each.ended_s - each.acted_at[0]) for each in killed]
    shown = [_p99(each.trial) for each in ended if each.case.limit.iops < FAST.iops]
    return [
        _count(f"freezes with I/O that no drive completed ({disturbed} disturbed, {repeated} repeated)", invented),
        _within("error of the start of a freeze", "s", starts, OFFSET_S),
        _within("error of the end of a freeze", "s", ends, OFFSET_S),
        _within("error of the stall's length in the verdict", "s", stalls, STALL_S),
        _within("largest latency minus the length of the freeze", "s", largest, LATENCY_S),
        _within("error of stalled_s in a freeze of 75 s", "s", silent, SILENT_S),
        _count(f"p99 of a freeze of 22 s not shown as “{BEYOND}”", [text for text in shown if text != BEYOND]),
    ]


def _p99(trial: Trial) -> str:
    (read,) = trial.result.directions
    return latency(supported_percentile(unpack(read.latency), 99.0))


def _count(name: str, wrong: Sequence[str]) -> Figure:
    return figure(name, "", [len(wrong)], "0", met=not wrong)


def _within(name: str, unit: str, errors: Sequence[float], bound: float) -> Figure:
    return figure(name, unit, errors, f"<= ±{bound:g}", met=all(abs(error) <= bound for error in errors))


def _measured() -> list[Found]:
    made = cases()
    with drives(AT_ONCE) as found, step(f"{len(made)} trials with steps, ramps and freezes"):
        free: SimpleQueue[Drive] = SimpleQueue()
        for drive in found:
            free.put(drive)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda case: _tried(case, free), made))


def _tried(case: Case, free: "SimpleQueue[Drive]") -> Found:
    """In a freeze, only another program can complete an I/O by reading the drive. Such a trial is repeated, unless it
    takes too long."""
    drive = free.get()
    try:
        for tries in range(1, TRIES + 1):
            found = _acted(case, drive, tries)
            if not found.case.freeze_s or not found.with_ios or case.freeze_s > SILENCE_S:
                break
        return found
    finally:
        free.put(drive)


def _acted(case: Case, drive: Drive, tries: int) -> Found:
    drive.limit(case.limit)
    script = Script(case.actions(drive))
    trial = run(drive, case.work)
    script.join()
    return Found(case, trial, [at - trial.began for at in script.done_at], tries)
