"""Drives of known speed: 60 trials over patterns, I/O engines, depths and block sizes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from queue import SimpleQueue

from dev.bench.figures import Figure, figure
from dev.console import say, step
from dev.truth.drive import Drive, Limit, drives
from dev.truth.trial import differences, run
from worker.contract.items import Direction, DirectionResult
from worker.contract.workload import KIB, FioWorkload, IoEngine, Pattern
from worker.engines.base import StreamFailed

AT_ONCE, TRIES = 3, 3
SECONDS = 5  # the throttle permits I/Os in slices of 0.1 s, so one slice more or less is 2 % of 5 s
WITHIN_PERCENT = 2.5
PATTERNS = (Pattern.READ, Pattern.WRITE, Pattern.RANDREAD, Pattern.RANDWRITE, Pattern.RANDRW)
ENGINES = ((IoEngine.IO_URING, 1), (IoEngine.IO_URING, 16), (IoEngine.LIBAIO, 8), (IoEngine.PSYNC, 1))
BLOCKS = (
    (4 * KIB, Limit(iops=1000)),
    (64 * KIB, Limit(bytes_per_s=20_000_000)),
    (256 * KIB, Limit(bytes_per_s=40_000_000)),
)


@dataclass(frozen=True)
class Case:
    work: FioWorkload
    limit: Limit

    @property
    def name(self) -> str:
        work = self.work
        return f"{work.pattern.value} {work.block_bytes // KIB}k {work.ioengine.value} depth {work.iodepth}"


@dataclass(frozen=True)
class Found:
    case: Case
    differences: Sequence[str]
    error_percent: float  # of the measured speed, relative to the drive's limit
    tries: int


def cases() -> list[Case]:
    """For a mix, only reads are limited, so its known speed is that of the reads."""
    return [
        Case(
            FioWorkload(
                pattern=pattern,
                read_percent=50 if pattern.mixed else None,
                ioengine=engine,
                iodepth=depth,
                block_bytes=block_bytes,
                runtime_s=SECONDS,
            ),
            Limit(limit.iops, limit.bytes_per_s, ("read",) if pattern.mixed else limit.ways),
        )
        for pattern, (engine, depth), (block_bytes, limit) in product(PATTERNS, ENGINES, BLOCKS)
    ]


def smallest() -> list[Case]:
    """One of each block size, with different patterns and engines."""
    return [cases()[number] for number in (0, 16, 29)]


def figures(chosen: Sequence[Case]) -> list[Figure]:
    """Raises NotPossible."""
    found = _measured(chosen)
    errors = [each.error_percent for each in found]
    wrong = [f"{each.case.name}: {text}" for each in found for text in each.differences]
    repeated = sum(each.tries > 1 for each in found)
    slow = f"error of the speed of {len(found)} drives ({repeated} disturbed and repeated)"
    slower = [f"{each.case.name}: {each.error_percent:+.1f} %, tried {each.tries} times" for each in found
              if abs(each.error_percent) > WITHIN_PERCENT]  # fmt: skip
    for text in (*wrong, *slower):
        say(f"    {text}")
    return [
        figure(f"numbers of {len(found)} trials that differ from fio's, or from the sum of the samples", "",
               [len(wrong)], "0", met=not wrong),
        figure(slow, "%", errors, f"<= ±{WITHIN_PERCENT:g}", met=not slower),
    ]  # fmt: skip


def _measured(chosen: Sequence[Case]) -> list[Found]:
    with drives(AT_ONCE) as made, step(f"{len(chosen)} trials of {SECONDS} s on drives of known speed"):
        free: SimpleQueue[Drive] = SimpleQueue()
        for drive in made:
            free.put(drive)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda case: _tried(case, free), chosen))


def _tried(case: Case, free: "SimpleQueue[Drive]") -> Found:
    """Repeat a trial that was too slow: a busy machine makes a drive slower than its limit, never faster."""
    drive = free.get()
    try:
        drive.limit(case.limit)
        for tries in range(1, TRIES + 1):
            found = _measure(case, drive, tries)
            if found.error_percent > -WITHIN_PERCENT:
                break
        return found
    finally:
        free.put(drive)


def _measure(case: Case, drive: Drive, tries: int) -> Found:
    try:
        trial = run(drive.path, case.work)
    except StreamFailed as failure:
        return Found(case, (f"no result: {failure.code}",), -100.0, tries)
    return Found(case, differences(trial), _error_percent(case, trial.result.directions), tries)


def _error_percent(case: Case, directions: Sequence[DirectionResult]) -> float:
    limited = next(each for each in directions if len(directions) == 1 or each.direction is Direction.READ)
    known, found = (case.limit.iops, limited.iops) if case.limit.iops else (case.limit.bytes_per_s, limited.bytes_per_s)
    return 100 * (found / known - 1)
