from collections.abc import Mapping

import pytest

from webapp.plans.bytes_written import FASTEST_IOPS, written_in
from webapp.plans.document import Part
from webapp.plans.estimate import Estimate, estimate
from webapp.plans.expand import expand
from webapp.plans.expected_time import OVERHEAD_S, PREFILL_BYTES_PER_S, Experience, Span
from webapp.plans.fitness import TargetFacts
from webapp.plans.tests.helpers import device, directory, document, part

MIB = 1024**2


def of(
    *targets: TargetFacts, repeats: int = 1, experience: Mapping[str, Experience] | None = None, **factors: str
) -> Estimate:
    expansion = expand(document(part("main", factors), repeats=repeats), targets, seed=1)
    assert expansion.problems == ()
    return estimate(expansion, experience)


def test_it_adds_times_ramps_overhead_and_files_written_first() -> None:
    made = of(directory(), repeats=2, ramp="2s", iodepth="1, 2")
    assert made.trials == 4
    assert made.seconds == pytest.approx(4 * (3 + 2 + 0.4) + 64 * MIB / 200e6)
    assert made.unknown_trials == 0
    assert (made.seconds_low, made.seconds_high, made.learned_runs) == (made.seconds, made.seconds, 0)


def test_earlier_runs_on_the_host_give_a_range() -> None:
    known = Experience(runs=4, turnover_s=Span(1, 1.5, 2), prefill_bytes_per_s=Span(16 * MIB, 32 * MIB, 64 * MIB))
    made = of(directory(), repeats=2, experience={"host-a": known})
    assert (made.seconds_low, made.seconds, made.seconds_high) == (2 * 4 + 1, 2 * 4.5 + 2, 2 * 5 + 4)
    assert made.learned_runs == 4
    assert of(directory(), experience={"host-b": known}).learned_runs == 0


def test_an_amount_takes_as_long_as_the_same_workload_did_before() -> None:
    work = expand(document(part(amount="64M")), [device()], seed=1).trials[0].workload
    span = Span(16 * MIB, 32 * MIB, 64 * MIB)
    known = Experience(runs=1, turnover_s=Span(1, 1, 1), amounts={(("loop",), work.rated()): span})
    made = of(device(), amount="128M", experience={"host-a": known})
    assert (made.seconds_low, made.seconds, made.seconds_high) == (1 + 2, 1 + 4, 1 + 8)
    assert made.unknown_trials == 0
    assert of(device(), amount="128M", block_size="8k", experience={"host-a": known}).unknown_trials == 1


def test_a_stop_rule_takes_from_its_minimum_to_the_runtime() -> None:
    made = of(device(), stop="confidence 2%", runtime="60s", runtime_min="10s", ramp="2s", iodepth="1, 2")
    assert (made.stop_trials, made.stop_seconds, made.unknown_stops) == (2, (12, 62), 2)
    assert made.seconds_low == pytest.approx(2 * 12.4)
    assert made.seconds == made.seconds_high == pytest.approx(2 * 62.4)
    rounds = of(device(), stop="snia 60s", runtime="1h")
    assert rounds.stop_seconds == (300, 3600)
    assert of(device()).stop_trials == 0


def test_earlier_trials_with_the_same_stop_rule_say_what_to_expect() -> None:
    work = expand(document(part(stop="confidence 2%", runtime="60s")), [device()], seed=1).trials[0].workload
    known = Experience(runs=1, turnover_s=Span(1, 1, 1), stops_s={(("loop",), work): Span(8, 12, 30)})
    made = of(device(), stop="confidence 2%", runtime="60s", repeats=2, experience={"host-a": known})
    assert (made.seconds_low, made.seconds, made.seconds_high) == (2 * 9, 2 * 13, 2 * 61)
    assert made.unknown_stops == 0


def test_hosts_work_side_by_side() -> None:
    one = of(device())
    two = of(device(), device(id="b", host_id="host-b", name="b/loop"))
    assert one.seconds == two.seconds == pytest.approx(3.4)
    assert of(device(), device(id="b", name="a/loop2")).seconds == pytest.approx(6.8)


def test_it_does_not_guess_the_time_of_an_amount() -> None:
    made = of(device(), amount="1G")
    assert made.unknown_trials == 1
    assert made.seconds == pytest.approx(0.4)


def test_it_bounds_what_is_written() -> None:
    assert of(device()).bytes_written_max == 0
    assert of(device(), pattern="randwrite").bytes_written_max == 3 * FASTEST_IOPS * 4096
    assert of(device(), pattern="write", block_size="1M").bytes_written_max == 3 * 15.75e9
    assert of(device(), pattern="randrw", read_percent="75", amount="1M").bytes_written_max == MIB // 4
    assert of(directory()).bytes_written_max == 64 * MIB


def test_an_amount_is_rounded_up_to_whole_blocks_of_all_jobs() -> None:
    written = of(device(), pattern="write", block_size="1M", numjobs="16", amount="1M", size="64M").bytes_written_max
    assert written == 16 * MIB


def test_a_mix_with_rate_limits_may_only_write() -> None:
    """While the reads have reached their limit, fio writes."""
    free = of(device(), pattern="randrw", read_percent="99").bytes_written_max
    limited = of(device(), pattern="randrw", read_percent="99", rate="4k", write_rate="10G").bytes_written_max
    assert limited == of(device(), pattern="randwrite").bytes_written_max == pytest.approx(100 * free)


@pytest.mark.parametrize(
    ("target", "retries", "pattern", "again"),
    [
        (directory(), 1, "write", True),
        (directory(), 1, "randread", True),  # its file, if it was not complete
        (directory(), 0, "write", False),
        (device(), 1, "write", False),  # overwrites a device, so it has no new attempts
        (device(), 1, "randread", False),
    ],
)
def test_it_says_whether_new_attempts_write_again(target: TargetFacts, retries: int, pattern: str, again: bool) -> None:
    expansion = expand(document(part(pattern=pattern), retries=retries), [target], seed=1)
    assert estimate(expansion).written_again is again


def test_files_of_one_size_are_shared_and_a_device_needs_no_space() -> None:
    made = of(directory(), size="1M, 4M", files="1, 3", block_size="4k, 8k")
    assert made.space_bytes == 3 * MIB + 12 * MIB
    assert of(device()).space_bytes == 0


@pytest.mark.parametrize(("free", "written"), [(11, 11), (10, 11 + 11)])
def test_files_that_do_not_fit_together_are_written_again(free: int, written: int) -> None:
    """The second repeat runs in reverse order, so only the file in the middle is still there."""
    made = of(directory(size_bytes=free * MIB), size="1M, 4M, 6M", repeats=3)
    assert made.bytes_written_max >= written * MIB


def test_files_that_are_not_written_first_still_need_space() -> None:
    made = of(directory(), prefill="off", pattern="write", amount="1M")
    assert made.space_bytes == 64 * MIB
    assert made.bytes_written_max == MIB


def test_new_files_need_space_beside_those_that_are_written_first() -> None:
    plan = document(
        part("write", pattern="write", prefill="off"), part("read", pattern="read"), repeats=1,
        common={"size": "64M", "amount": "64M"},
    )  # fmt: skip
    made = estimate(expand(plan, [directory()], seed=1))
    assert (made.bytes_written_max, made.space_bytes) == (128 * MIB, 128 * MIB)


def test_it_names_the_settings_that_change() -> None:
    made = of(device(), scheduler="none, mq-deadline", nr_requests="64")
    assert made.settings_changed == ("a/loop: Queue size", "a/loop: I/O scheduler")


def test_the_load_of_a_database_counts_beside_the_measured_writes() -> None:
    """3 s cannot write as much as the load of scale 10,000, which has no time limit."""
    plan = document(Part(name="main", factors={"engine": "pgbench", "script": "tpcb-like", "scale": "10000"}),
                    repeats=1, common={"runtime": "3s"})  # fmt: skip
    expansion = expand(plan, [directory(size_bytes=2**50)], seed=1)
    (trial,) = expansion.trials
    slow = {"dir": 10e6}
    assert trial.workload.load_bytes > 300 * 10**9
    assert written_in(trial, {})["dir"] >= trial.workload.load_bytes
    assert written_in(trial, slow)["dir"] == trial.workload.load_bytes + 30 * 10**6


def test_the_load_of_a_database_takes_time_as_in_earlier_runs() -> None:
    plan = document(Part(name="main", factors={"engine": "pgbench", "script": "tpcb-like", "scale": "10"}),
                    repeats=1, common={"runtime": "3s"})  # fmt: skip
    expansion = expand(plan, [directory()], seed=1)
    work = expansion.trials[0].workload
    guessed = estimate(expansion).seconds
    assert guessed == pytest.approx(3 + OVERHEAD_S + work.startup_s + work.load_bytes / PREFILL_BYTES_PER_S)
    learned = Experience(1, Span.of([OVERHEAD_S]), loads_s={(("dir",), work.load_bytes): Span(5, 6, 7)})
    assert estimate(expansion, {directory().host_id: learned}).seconds == pytest.approx(3 + OVERHEAD_S + 6)
