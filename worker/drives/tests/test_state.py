"""What is known of a drive, from what was done to it."""

import pytest
from msgspec.structs import replace

from worker.contract.workload import FioWorkload, Pattern
from worker.drives.records import (
    DriveCounters,
    DriveState,
    Manner,
    Record,
    after_writes,
    interrupted,
    manner_of,
    purged,
    state_now,
)

S = DriveState
SIZE = 1000 * 512


def counters(sectors: int | None, *, boot: str = "b1", told: int | None = None) -> DriveCounters:
    return DriveCounters(boot_id=boot, sectors=sectors, host_written_bytes=told)


def known(state: DriveState, *, manner: Manner = Manner.OTHER, written: int = 0) -> Record:
    return Record(state=state, counters=counters(5000), manner=manner, written_bytes=written)


def written(before: Record | None, sectors: int, manner: Manner) -> Record:
    return after_writes(before, counters(5000), counters(5000 + sectors), manner=manner, size_bytes=SIZE)


@pytest.mark.parametrize(
    ("before", "manner", "sectors", "after"),
    [
        (S.PURGED, Manner.SEQUENTIAL, 1000, S.SEQUENTIAL),
        (S.PURGED, Manner.SEQUENTIAL, 999, S.USED),
        (S.PURGED, Manner.RANDOM, 1000, S.RANDOM),
        (S.PURGED, Manner.RANDOM, 1, S.USED),
        (S.PURGED, Manner.OTHER, 5000, S.USED),
        (S.UNKNOWN, Manner.RANDOM, 999, S.UNKNOWN),
        (S.UNKNOWN, Manner.OTHER, 5000, S.UNKNOWN),
        (S.UNKNOWN, Manner.SEQUENTIAL, 1000, S.SEQUENTIAL),
        (S.SEQUENTIAL, Manner.SEQUENTIAL, 10, S.SEQUENTIAL),
        (S.SEQUENTIAL, Manner.RANDOM, 10, S.USED),
        (S.RANDOM, Manner.RANDOM, 10, S.RANDOM),
        (S.RANDOM, Manner.SEQUENTIAL, 10, S.USED),
        (S.USED, Manner.SEQUENTIAL, 1000, S.SEQUENTIAL),
    ],
)
def test_a_write_leads_to(before: DriveState, manner: Manner, sectors: int, after: DriveState) -> None:
    assert written(known(before), sectors, manner).state is after


def test_a_pass_may_take_several_trials_of_one_manner() -> None:
    half = written(known(S.PURGED), 600, Manner.RANDOM)
    assert (half.state, half.written_bytes) == (S.USED, 600 * 512)
    whole = after_writes(half, half.counters, counters(6000), manner=Manner.RANDOM, size_bytes=SIZE)
    assert whole.state is S.RANDOM
    other = after_writes(half, half.counters, counters(6000), manner=Manner.SEQUENTIAL, size_bytes=SIZE)
    assert (other.state, other.written_bytes) == (S.USED, 400 * 512)


def test_writes_of_others_in_between_begin_the_count_anew() -> None:
    half = written(known(S.PURGED), 600, Manner.RANDOM)
    at_start = replace(half.counters, sectors=5601)
    assert after_writes(half, at_start, counters(6100), manner=Manner.RANDOM, size_bytes=SIZE).state is S.UNKNOWN


@pytest.mark.parametrize(
    ("now", "state"),
    [
        (counters(5000), S.PURGED),
        (counters(5001), S.UNKNOWN),
        (counters(4999), S.UNKNOWN),  # plugged anew
        (counters(None), S.UNKNOWN),  # its statistics are off
        (counters(5000, boot="b2"), S.UNKNOWN),
        (counters(0, boot="b2", told=77), S.PURGED),
        (counters(0, boot="b2", told=78), S.UNKNOWN),
    ],
)
def test_it_is_known_only_while_nobody_else_wrote(now: DriveCounters, state: DriveState) -> None:
    assert state_now(purged(counters(5000, told=77)), now) is state


def test_a_drive_that_does_not_count_is_unknown_after_a_restart() -> None:
    assert state_now(purged(counters(5000)), counters(0, boot="b2")) is S.UNKNOWN


def test_what_was_never_seen_or_broken_off_is_unknown() -> None:
    assert state_now(None, counters(1)) is S.UNKNOWN
    assert state_now(interrupted(counters(1)), counters(1)) is S.UNKNOWN


def test_a_trial_that_wrote_nothing_changes_nothing() -> None:
    before = known(S.SEQUENTIAL, manner=Manner.SEQUENTIAL, written=SIZE)
    assert written(before, 0, Manner.RANDOM) == before


def test_a_drive_whose_statistics_are_off_is_unknown_afterwards() -> None:
    made = after_writes(known(S.PURGED), counters(5000), counters(None), manner=Manner.RANDOM, size_bytes=SIZE)
    assert made.state is S.UNKNOWN


def work(pattern: Pattern, **more: object) -> FioWorkload:
    return FioWorkload(pattern=pattern, runtime_s=1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("works", "manner"),
    [
        ([work(Pattern.WRITE)], Manner.SEQUENTIAL),
        ([work(Pattern.WRITE), work(Pattern.READ)], Manner.SEQUENTIAL),
        ([work(Pattern.WRITE, size_bytes=SIZE)], Manner.SEQUENTIAL),
        ([work(Pattern.WRITE, size_bytes=SIZE - 512)], Manner.OTHER),
        ([work(Pattern.WRITE, numjobs=2)], Manner.OTHER),
        ([work(Pattern.READWRITE)], Manner.OTHER),
        ([work(Pattern.RANDRW, numjobs=4)], Manner.RANDOM),
        ([work(Pattern.RANDWRITE), work(Pattern.WRITE)], Manner.OTHER),
        ([work(Pattern.READ)], Manner.OTHER),
    ],
)
def test_the_manner_of_a_trial(works: list[FioWorkload], manner: Manner) -> None:
    assert manner_of(works, SIZE) is manner
