"""Sizes relative to capacity and memory: resolved per target, with the share as a numeric factor of the point."""

import pytest

from webapp.plans.document import Part, PartStream
from webapp.plans.expand import Expansion, expand
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import document_problems
from webapp.plans.points import varying
from webapp.plans.selectors import facts_for
from webapp.plans.tests.helpers import GIB, device, directory, document, part
from webapp.tests.factories.hosts import a_target, an_inventory

MIB = 2**20


def made(*targets: TargetFacts, **factors: str) -> Expansion:
    return expand(document(part("main", factors), common={"runtime": "3s"}, repeats=1), targets, seed=1)


def test_a_share_of_the_capacity_is_resolved_for_each_target() -> None:
    expansion = made(device(), device(id="other", size_bytes=4 * GIB), size_percent="50")
    assert expansion.problems == ()
    sizes = {trial.target_id: (trial.point["size"], trial.point["size_percent"]) for trial in expansion.trials}
    assert sizes == {"loop": (5 * GIB, 50), "other": (2 * GIB, 50)}
    assert {trial.workload.size_bytes for trial in expansion.trials} == {5 * GIB, 2 * GIB}


def test_the_share_is_a_numeric_factor() -> None:
    points = [trial.point for trial in made(device(), size_percent="10..100 +30").trials]
    assert sorted(int(point["size_percent"] or 0) for point in points) == [10, 40, 70, 100]
    assert varying(points) == ("size_percent",)
    assert FACTORS["size_percent"].numeric


def test_a_multiple_of_memory_needs_the_hosts_inventory() -> None:
    expansion = made(device(memory_bytes=4 * GIB), size_memory="0.5x, 2x")
    assert sorted(int(trial.point["size"] or 0) for trial in expansion.trials) == [2 * GIB, 8 * GIB]
    (problem,) = made(device(), size_memory="2x").problems
    assert "The memory of the host of a/loop is unknown" in problem


def test_points_of_all_jobs_share_one_size_of_whole_blocks() -> None:
    expansion = made(directory(), size_percent="70", pattern="read", numjobs="1, 3, 10", block_size="4k, 128k")
    assert (expansion.problems, expansion.skipped) == ((), ())
    (size,) = {trial.workload.size_bytes for trial in expansion.trials}
    assert size is not None
    assert 0.68 * 10 * GIB < size <= 0.7 * 10 * GIB


def test_files_share_the_size() -> None:
    (trial,) = made(directory(), size_percent="50", files="5").trials
    assert trial.workload.space_bytes == 5 * GIB


def test_each_job_passes_through_its_own_file() -> None:
    plan = document(part("main", pattern="read", passes="1", numjobs="1, 10", own_files="on"), common={"size": "64M"})
    works = [trial.workload for trial in expand(plan, [directory()], seed=1).trials]
    assert {(work.files, work.moved_bytes, work.space_bytes) for work in works} == {
        (jobs, jobs * 64 * MIB, jobs * 64 * MIB) for jobs in (1, 10)
    }


def test_targets_at_once_use_the_smallest() -> None:
    expansion = made(device(), device(id="other", size_bytes=4 * GIB), size_percent="50", at_once="2")
    assert [trial.point["size"] for trial in expansion.trials] == [2 * GIB]


def test_a_size_and_a_share_exclude_each_other() -> None:
    (problem,) = document_problems(document(part(size="1G", size_percent="50")))
    assert "exclude each other" in problem.message


@pytest.mark.django_db
def test_the_memory_is_that_of_the_newest_inventory_and_read_only_if_needed() -> None:
    target = a_target()
    an_inventory(target.host, memory_bytes=64 * GIB)
    assert [one.memory_bytes for one in facts_for(document(part(size_memory="2x")), [target])] == [64 * GIB]
    assert [one.memory_bytes for one in facts_for(document(part(size="1G")), [target])] == [0]


def test_offsets_are_shares_of_the_capacity_in_whole_blocks() -> None:
    shares = {"offset_percent": "50", "offset_increment_percent": "10", "size_percent": "10"}
    (trial,) = made(device(size_bytes=GIB + 4096), numjobs="2", block_size="8k", **shares).trials
    assert (trial.point["offset"], trial.point["offset_increment"]) == (GIB // 2, 13_107 * 8192)
    assert trial.workload.end_bytes == GIB // 2 + 13_107 * 8192 + (trial.workload.size_bytes or 0)


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ({"pattern": "write"}, 10 * GIB),
        ({"pattern": "write", "numjobs": "4"}, 10 * GIB),  # each job has a part
        ({"pattern": "randwrite", "numjobs": "4"}, 40 * GIB),  # each job goes through everything
        ({"pattern": "write", "numjobs": "4", "offset_increment": "0"}, 40 * GIB),
        ({"pattern": "write", "size_percent": "50", "passes": "3"}, 15 * GIB),
        ({"pattern": "write", "size": "1G", "passes": "3"}, 3 * GIB),
    ],
)
def test_passes_become_an_amount(factors: dict[str, str], expected: int) -> None:
    plan = document(part("main", {"passes": "1"} | factors), common={}, repeats=1)
    (trial,) = expand(plan, [device()], seed=1).trials
    assert trial.workload.moved_bytes == expected
    assert trial.workload.time_s == 0


def test_passes_of_a_device_of_unknown_size_are_a_problem() -> None:
    plan = document(part("main", {"pattern": "write", "passes": "1"}), common={}, repeats=1)
    (problem,) = expand(plan, [device(size_bytes=0)], seed=1).problems
    assert "Give `amount` instead of `passes`" in problem


def test_streams_have_shares_of_their_own() -> None:
    reader = PartStream(name="reader", factors={"pattern": "randread", "size_percent": "25"})
    writer = PartStream(name="writer", factors={"pattern": "write", "size_percent": "10", "offset_percent": "50"})
    plan = document(Part(name="main", factors={}, streams=(reader, writer)), common={"runtime": "3s"}, repeats=1)
    (trial,) = expand(plan, [device(size_bytes=100 * GIB)], seed=1).trials
    assert [work.size_bytes for work in trial.workloads] == [25 * GIB, 10 * GIB]
    assert [work.end_bytes for work in trial.workloads] == [25 * GIB, 60 * GIB]
    assert trial.point["reader.size_percent"] == 25
