"""Later runs fill gaps in front of a waiting run, and never delay it beyond its reservation."""

import heapq
import random
from collections.abc import Hashable, Sequence

import pytest

from webapp.runs.dispatch.queue import Busy, Closed, Job, Start, planned_starts

HOSTS = ("a", "b", "c", "d")


def job(key: str, hosts: str, seconds: float | None, position: int = 0, *, margin_s: float = 0.0) -> Job:
    return Job(key, frozenset(hosts), seconds, margin_s, position)


def times(starts: dict[Hashable, Start]) -> dict[Hashable, float | None]:
    return {key: start.at_s for key, start in starts.items()}


def test_a_later_run_fills_the_gap_if_it_ends_in_time() -> None:
    jobs = [job("wide", "ab", 500), job("long", "a", 101), job("short", "a", 100), job("other", "c", 999)]
    starts = planned_starts(jobs, [Busy("b", 100.0)])
    assert times(starts) == {"wide": 100, "long": 600, "short": 0, "other": 0}
    assert starts["short"].overtakes == ("wide", "long")
    assert starts["other"].overtakes == starts["wide"].overtakes == ()


def test_a_run_starts_after_a_maintenance_window_and_takes_longer_by_the_next_one() -> None:
    closed: Closed = {"a": [(0.0, 50.0), (80.0, 100.0)], "b": [(90.0, 110.0)]}
    starts = planned_starts([job("first", "a", 40), job("wide", "ab", 10), job("other", "b", 20)], [], closed)
    assert times(starts) == {"first": 50, "wide": 110, "other": 0}  # the first one works from 50 to 80, and to 110


def test_a_later_run_must_end_in_time_although_a_window_interrupts_it() -> None:
    jobs = [job("wide", "ab", 10), job("long", "a", 61), job("short", "a", 60)]
    closed: Closed = {"a": [(20.0, 60.0)]}
    assert times(planned_starts(jobs, [Busy("b", 100.0)], closed)) == {"wide": 100, "long": 110, "short": 0}
    assert times(planned_starts(jobs, [Busy("b", 100.0)])) == {"wide": 100, "long": 0, "short": 110}


def test_two_later_runs_share_a_gap_and_a_third_waits() -> None:
    jobs = [job("wide", "ab", 10), *(job(f"{n}", "a", 40) for n in range(3))]
    assert times(planned_starts(jobs, [Busy("b", 100.0)])) == {"wide": 100, "0": 0, "1": 40, "2": 110}


def test_the_margin_must_fit_into_the_gap_and_nothing_else_waits_for_it() -> None:
    jobs = [job("wide", "ab", 10), job("late", "a", 90, margin_s=11), job("next", "a", 5)]
    assert times(planned_starts(jobs, [Busy("b", 100.0)])) == {"wide": 100, "late": 110, "next": 0}
    fits = [job("wide", "ab", 10), job("in time", "a", 90, margin_s=10), job("next", "a", 5)]
    assert times(planned_starts(fits, [Busy("b", 100.0)])) == {"wide": 100, "in time": 0, "next": 90}


@pytest.mark.parametrize(("left_s", "seconds"), [(None, 1.0), (100.0, None)])
def test_without_an_estimate_nothing_starts_ahead(left_s: float | None, seconds: float | None) -> None:
    """Neither if the end of the busy host is unknown, nor if that of the later run is."""
    starts = planned_starts([job("wide", "ab", 10), job("later", "a", seconds)], [Busy("b", left_s)])
    assert starts["later"].at_s != 0


def test_a_late_run_that_started_ahead_lets_no_other_one_ahead() -> None:
    """It moves the start of the waiting run, but not the moment until which others may use its hosts."""
    waiting = Job("wide", frozenset("abc"), 10.0, position=1, queued_s=-500.0)
    ahead = Busy("a", 300.0, position=2, started_s=-400.0)
    before = Busy("b", 100.0, position=0, started_s=-900.0)
    later = [Job(f"{seconds}", frozenset("c"), float(seconds), position=3) for seconds in (101, 100)]
    starts = planned_starts([waiting, *later], [ahead, before])
    assert times(starts) == {"wide": 300, "101": 310, "100": 0}
    starts = planned_starts([waiting, *later], [ahead])
    assert times(starts) == {"wide": 300, "101": 310, "100": 411}


def test_a_run_that_was_there_first_counts_although_others_were_put_before_it() -> None:
    """A run of higher priority came later: the host was busy already."""
    waiting = Job("wide", frozenset("ab"), 10.0, position=1, queued_s=-500.0)
    busy = Busy("b", 100.0, position=2, started_s=-900.0)
    assert times(planned_starts([waiting, job("short", "a", 50, 3)], [busy])) == {"wide": 100, "short": 0}


# ---- simulated queues


def random_queue(seed: int) -> list[Job]:
    """Most runs use one host, some several. A run comes at `queued_s`."""
    choose = random.Random(seed)
    jobs = []
    for place in range(choose.randint(5, 25)):
        hosts = choose.sample(HOSTS, choose.choice((1, 1, 1, 2, 2, 3, 4)))
        came = float(choose.choice((0, 0, choose.randint(0, 2000))))
        jobs.append(Job(place, frozenset(hosts), float(choose.randint(1, 600)), position=place, queued_s=came))
    jobs.sort(key=lambda each: each.queued_s)
    return [Job(place, one.resources, one.seconds, 0.0, place, one.queued_s) for place, one in enumerate(jobs)]


def simulate(jobs: Sequence[Job], *, backfill: bool, late: float = 1.0) -> dict[Hashable, float]:
    """When each run starts. At each event every run starts that may. `late`: run times per expected time."""
    starts: dict[Hashable, float] = {}
    events = [one.queued_s for one in jobs]
    heapq.heapify(events)
    while events:
        now = heapq.heappop(events)
        while (key := _next(jobs, starts, now, backfill, late)) is not None:
            starts[key] = now
            heapq.heappush(events, now + late * (jobs[int(str(key))].seconds or 0.0))
    return starts


def _next(
    jobs: Sequence[Job], starts: dict[Hashable, float], now: float, backfill: bool, late: float
) -> Hashable | None:
    busy, waiting = [], []
    for one in jobs:
        begun, seconds = starts.get(one.key), one.seconds or 0.0
        if begun is not None and begun + late * seconds > now:
            left_s = max(0.0, begun + seconds - now)
            busy += [Busy(host, left_s, one.position, begun - now) for host in one.resources]
        elif begun is None and one.queued_s <= now:
            waiting.append(Job(one.key, one.resources, seconds, 0.0, one.position, one.queued_s - now))
    in_use = {use.resource for use in busy}
    planned = planned_starts(waiting, busy)
    before: set[Hashable] = set()
    for one in waiting:
        due = planned[one.key].at_s == 0 if backfill else not one.resources & before
        if due and not one.resources & in_use:
            return one.key
        before |= one.resources
    return None


@pytest.mark.parametrize("seed", range(40))
def test_no_run_starts_later_than_without_backfilling_if_estimates_are_true(seed: int) -> None:
    jobs = random_queue(seed)
    plain, filled = simulate(jobs, backfill=False), simulate(jobs, backfill=True)
    assert plain.keys() == filled.keys() == {one.key for one in jobs}
    assert all(filled[one.key] <= plain[one.key] for one in jobs)


def test_hosts_are_idle_for_less_time() -> None:
    """Until the last run ends; the work is the same."""
    ended = {True: 0.0, False: 0.0}
    waited = {True: 0.0, False: 0.0}
    for seed in range(40):
        jobs = random_queue(seed)
        for backfill in ended:
            starts = simulate(jobs, backfill=backfill)
            ended[backfill] += max(starts[one.key] + (one.seconds or 0.0) for one in jobs)
            waited[backfill] += sum(starts[one.key] - one.queued_s for one in jobs)
    assert ended[True] < ended[False]
    assert waited[True] < 0.9 * waited[False]


@pytest.mark.parametrize("late", [0.3, 1.7, 4.0])
def test_every_run_starts_although_all_estimates_are_wrong(late: float) -> None:
    """The first waiting run waits at most for runs that started before the others ahead of it should have ended."""
    for seed in range(15):
        jobs = random_queue(seed)
        starts = simulate(jobs, backfill=True, late=late)
        assert starts.keys() == {one.key for one in jobs}
        for one in jobs:
            before = [other for other in jobs if other.position < one.position and other.resources & one.resources]
            limit_s = max([one.queued_s, *(starts[other.key] + late * (other.seconds or 0.0) for other in before)])
            ahead = [
                other for other in jobs
                if other.position > one.position and other.resources & one.resources
                and limit_s <= starts[other.key] < starts[one.key]
            ]  # fmt: skip
            assert not ahead, (seed, one)
