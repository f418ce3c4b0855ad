"""Steps, ramps and freezes of a drive at known times during a trial, compared with the trial's samples and verdict.

A freeze stops the drive, not fio. A freeze of 75 s is longer than the silence limit, so fio is killed during it.

Other load on the machine disturbs a trial. Such a trial is repeated, at most TRIES times. If it is disturbed each time,
its times and its verdict prove nothing: it is reported as disturbed, and the part has not passed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from queue import SimpleQueue
from statistics import median
from typing import Any

from dev.bench.figures import Figure, figure
from dev.console import say, step
from dev.truth.drive import Disturbed, Drive, Limit, drives
from dev.truth.trial import SILENCE_S, Script, Trial, differences, run
from worker.contract.items import Sample
from worker.contract.packing import LAST_BUCKET_NS, supported_percentile, unpack
from worker.contract.steadiness import Verdict
from worker.contract.workload import FioWorkload, IoEngine, Pattern
from worker.engines.base import StreamFailed

AT_ONCE, TRIES = 5, 3
SHORT_MS = 400  # a shorter sample lies between two readings of the device's counters
FAST, SLOW = Limit(iops=1000), Limit(iops=500)
FREEZE_AT_S, CHANGE_AT_S = 5.0, 10.0
OFFSET_S, STALL_S, SILENT_S, LATENCY_S = 1.0, 1.0, 2.0, 0.5  # the bounds
# A trial is disturbed if a change of the drive was later than this, or if a second, farther than SETTLED_S from each
# change, differs by more than UNEVEN from the others between the same two changes: the throttle permits no such second.
LATE_S, SETTLED_S, UNEVEN = 0.5, 1.5, 0.15
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
class Outcome:
    """`acted_at`: seconds after the start of the measured part. `late_s`: the largest delay of an action."""

    case: Case
    trial: Trial
    acted_at: Sequence[float]
    late_s: float = 0.0

    @property
    def disturbances(self) -> list[str]:
        """Why its times and its verdict prove nothing; empty if they count.

        In a freeze, only another program can complete an I/O by reading the drive.
        """
        return [
            *([f"the drive was changed {self.late_s:.1f} s late"] if self.late_s > LATE_S else []),
            *(["another program read the drive"] if self.with_ios else []),
            *(f"{ios} I/Os in second {at_s:.0f}, others {usual:.0f}" for at_s, ios, usual in self._uneven()),
        ]

    def _uneven(self) -> Iterator[tuple[float, int, float]]:
        """Time and I/Os of seconds unlike the others between the same two changes, and the others' median."""
        edges = [0.0, *self.acted_at, float("inf")]
        for began, ended in pairwise(edges):
            is_freeze = self.case.freeze_s and began == self.acted_at[0]
            rates = [
                (sample.offset_ms / 1000, 1000 * _ios(sample) / sample.length_ms)
                for sample in self.trial.samples[1:-1]
                if began + SETTLED_S <= _start_ms(sample) / 1000 and sample.offset_ms / 1000 <= ended - SETTLED_S
            ]
            usual = median(rate for _, rate in rates) if rates else 0.0
            for at_s, rate in rates if not is_freeze else ():
                if abs(rate - usual) > UNEVEN * usual:
                    yield at_s, round(rate), usual

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
        """Samples with I/O that lie inside the freeze, if there is one."""
        if not self.case.freeze_s:
            return []
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


@dataclass(frozen=True)
class Tried:
    """The last try of a case. Without an outcome, the engine gave no result."""

    case: Case
    tries: int
    outcome: Outcome | None
    disturbances: Sequence[str]  # if there are any, times and verdict of the outcome do not count


def smallest() -> list[Case]:
    """A freeze of 3 s and a step."""
    step_down, *_ = _changes()
    return [_freeze(3, 0.25, MIXES[1]), step_down]


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


def figures(chosen: Sequence[Case]) -> list[Figure]:
    """Raises NotPossible; Disturbed if a trial was disturbed at each try, and no figure of the others is wrong."""
    tried = _measured(chosen)
    with_result = [each.outcome for each in tried if each.outcome]
    counted = [each.outcome for each in tried if each.outcome and not each.disturbances]
    wrong = [f"{each.case.name}: {text}" for each in with_result for text in differences(each.trial)]
    invented = [f"{each.case.name}: I/O in a freeze that no drive completed" for each in with_result if each.invented]
    verdicts = [f"{each.case.name}: {each.trial.verdict.verdict}, not {each.case.verdict}" for each in counted
                if each.trial.verdict.verdict is not each.case.verdict]  # fmt: skip
    for text in (*wrong, *invented, *verdicts):
        say(f"    {text}")
    repeated = sum(each.tries > 1 for each in tried)
    shown = [
        _count(f"wrong verdicts on {len(counted)} steps, ramps and freezes ({repeated} repeated)", verdicts),
        _count(f"numbers of {len(with_result)} trials that differ from fio's, or from the sum of the samples", wrong),
        _count(f"freezes of {len(with_result)} trials with I/O that no drive completed", invented),
        *_times([each for each in counted if each.trial.verdict.verdict is each.case.verdict]),
    ]
    disturbed = [f"{each.case.name}: {'; '.join(each.disturbances)}" for each in tried if each.disturbances]
    if disturbed:
        raise Disturbed(disturbed, shown)
    return shown


def _times(outcomes: Sequence[Outcome]) -> list[Figure]:
    """Errors of the times and lengths, of trials with the right verdict."""
    steps = [each for each in outcomes if each.case.verdict is Verdict.STEPPED]
    frozen = [each for each in outcomes if each.case.freeze_s and not each.trial.result.stalled_s]
    killed = [each for each in outcomes if each.case.freeze_s and each.trial.result.stalled_s]
    freezes = [*frozen, *killed]
    beyond = [each for each in frozen if each.case.limit.iops < FAST.iops]
    return [
        *_within("start of a freeze", [each.frozen[0] - each.acted_at[0] for each in freezes], OFFSET_S),
        *_within("end of a freeze", [each.frozen[1] - each.acted_at[1] for each in frozen], OFFSET_S),
        *_within("stall's length in the verdict",
                 [each.trial.verdict.stall_s - each.case.freeze_s for each in frozen], STALL_S),
        *_within("largest latency against the length of the freeze",
                 [each.largest_latency_s - each.case.freeze_s for each in frozen], LATENCY_S),
        *_within("stalled_s in a freeze of 75 s",
                 [each.trial.result.stalled_s - (each.ended_s - each.acted_at[0]) for each in killed], SILENT_S),
        _count("p99 of a freeze of 22 s not in fio's last bucket",
               [each.case.name for each in beyond if not _ends_in_last_bucket(each.trial)]),
        *_within("time of a step", [each.trial.verdict.step_at_s - each.acted_at[0] for each in steps], OFFSET_S),
    ]  # fmt: skip


def _ends_in_last_bucket(trial: Trial) -> bool:
    (read,) = trial.result.directions
    return supported_percentile(unpack(read.latency), 99.0) == LAST_BUCKET_NS


def _count(name: str, wrong: Sequence[str]) -> Figure:
    return figure(name, "", [len(wrong)], "0", met=not wrong)


def _within(name: str, errors: Sequence[float], bound: float) -> Iterator[Figure]:
    """The figure of these errors; none if nothing was measured."""
    if errors:
        is_met = all(abs(error) <= bound for error in errors)
        yield figure(f"error of the {name}", "s", errors, f"<= ±{bound:g}", met=is_met)


def _measured(chosen: Sequence[Case]) -> list[Tried]:
    with drives(AT_ONCE) as made, step(f"{len(chosen)} trials with steps, ramps and freezes"):
        free: SimpleQueue[Drive] = SimpleQueue()
        for drive in made:
            free.put(drive)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda case: _tried(case, free), chosen))


def _tried(case: Case, free: "SimpleQueue[Drive]") -> Tried:
    """Repeat a disturbed trial, unless it takes minutes."""
    drive = free.get()
    try:
        for tries in range(1, (1 if case.freeze_s > SILENCE_S else TRIES) + 1):
            tried = _once(case, drive, tries)
            if not tried.disturbances:
                break
        return tried
    finally:
        free.put(drive)


def _once(case: Case, drive: Drive, tries: int) -> Tried:
    drive.limit(case.limit)
    script = Script(case.actions(drive))
    try:
        trial = run(drive.path, case.work)
    except StreamFailed as failure:
        return Tried(case, tries, None, (f"{failure.code}: {failure}",))
    finally:
        script.join()
    outcome = Outcome(case, trial, [at - trial.began for at in script.done_at], max(script.late_s, default=0.0))
    return Tried(case, tries, outcome, outcome.disturbances)
