from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.document import Order
from webapp.plans.expand import Expansion, expand
from webapp.plans.points import point_key
from webapp.plans.tests.helpers import device, directory, document, part
from worker.contract.workload import FioWorkload, IoEngine, SyncDepth, TargetKind

GRID = {"block_size": "4k, 8k", "iodepth": "1, 2, 4"}


def only_problem(expansion: Expansion) -> str:
    assert len(expansion.problems) == 1, expansion.problems
    return expansion.problems[0]


def test_it_makes_a_full_factorial_for_each_part_target_and_repeat() -> None:
    made = expand(document(part("main", GRID), part("second")), [directory(), device()], seed=1)
    assert made.problems == ()
    assert len(made.trials) == (2 * 3 + 1) * 2 * 2
    assert [trial.index for trial in made.trials] == list(range(28))
    assert {trial.repeat for trial in made.trials} == {1, 2}


def test_a_point_carries_every_factor_that_applies_and_its_workload_says_the_same() -> None:
    made = expand(document(part(ioengine="psync", iodepth="8", sync_depth="threads")), [directory()], seed=1)
    trial = made.trials[0]
    assert trial.point == {
        "engine": "fio", "pattern": "randread", "block_size": 4096, "ioengine": "psync", "numjobs": 1, "iodepth": 8,
        "sync_depth": "threads", "direct": True, "sync": "none", "fsync_every": 0, "end_fsync": False,
        "size": 64 * 1024**2, "files": 1, "runtime": 3, "ramp": 0, "prefill": True, "buffers": "incompressible",
        "fixedbufs": False, "registerfiles": False, "hipri": False, "sqthread_poll": False, "nonvectored": False,
        "drop_caches": False,
    }  # fmt: skip
    assert isinstance(trial.workload, FioWorkload)
    assert trial.workload.ioengine is IoEngine.PSYNC
    assert trial.workload.sync_depth is SyncDepth.THREADS
    assert (trial.workload.iodepth, trial.workload.runtime_s, trial.workload.size_bytes) == (8, 3, 64 * 1024**2)
    assert trial.settings == {}


def test_an_alternative_replaces_the_common_factor() -> None:
    made = expand(document(part(amount="1M", block_split="4k/60:8k/40")), [directory()], seed=1)
    point, work = made.trials[0].point, made.trials[0].workload
    assert isinstance(work, FioWorkload)
    assert "runtime" not in point
    assert "block_size" not in point
    assert work.amount_bytes == 1024**2
    assert [(s.block_bytes, s.percent) for s in work.block_split] == [(4096, 60), (8192, 40)]


def test_the_share_of_reads_multiplies_only_patterns_that_mix() -> None:
    made = expand(document(part(pattern="randread, randrw", read_percent="70, 90")), [directory()], seed=1)
    assert made.problems == ()
    assert sorted((t.point["pattern"], t.point.get("read_percent")) for t in made.trials if t.repeat == 1) == [
        ("randread", None),
        ("randrw", 70),
        ("randrw", 90),
    ]


def test_equal_points_have_equal_keys_on_every_target_and_repeat() -> None:
    made = expand(document(part()), [directory(), device(settings_allowed=())], seed=1)
    assert len({trial.point_key for trial in made.trials}) == 1
    assert point_key({"a": 1, "b": True}) == point_key({"b": True, "a": 1}) != point_key({"a": 1, "b": 1})


@given(st.integers(0, 2**31))
def test_randomised_blocks_hold_every_point_once_and_costly_levels_together(seed: int) -> None:
    plan = document(part(scheduler="none, mq-deadline", read_ahead_kb="0, 128", grid=GRID))
    trials = expand(plan, [device(), device(id="two", name="a/two")], seed=seed).trials
    for _, block in groupby(trials, key=lambda t: t.block):
        members = list(block)
        assert len({(t.target_id, t.point_key) for t in members}) == len(members) == 48
        for slow in (
            lambda t: t.target_id,
            lambda t: (t.target_id, t.settings["scheduler"]),
            lambda t: (t.target_id, t.settings["scheduler"], t.settings["read_ahead_kb"]),
        ):
            runs = [key for key, _ in groupby(members, key=slow)]
            assert len(runs) == len(set(runs))


def test_the_seed_decides_the_order_and_blocks_are_shuffled_anew() -> None:
    def keys(seed: int) -> list[tuple[int, str]]:
        return [(t.block, t.point_key) for t in expand(document(part("main", GRID)), [directory()], seed=seed).trials]

    assert keys(1) == keys(1) != keys(2)
    assert [key for block, key in keys(1) if block == 1] != [key for block, key in keys(1) if block == 2]


def test_listed_order_is_that_of_the_levels_as_written() -> None:
    plan = document(part(block_size="8k, 4k", iodepth="4, 1"), order=Order.LISTED)
    made = expand(plan, [directory()], seed=9)
    once = [(8192, 4), (8192, 1), (4096, 4), (4096, 1)]
    assert [(t.point["block_size"], t.point["iodepth"]) for t in made.trials] == once * 2


def test_fio_gets_the_repeat_as_its_seed() -> None:
    made = expand(document(part("main", GRID)), [directory()], seed=5)
    assert all(trial.workload.seed == trial.repeat for trial in made.trials)


def test_a_part_is_left_out_on_other_kinds_of_target_and_that_is_said() -> None:
    made = expand(document(part("sched", on=("block",), scheduler="none"), part("b")), [directory()], seed=1)
    assert made.skipped == ("Part sched runs on block devices only; a/scratch is a directory.",)
    assert {trial.part for trial in made.trials} == {"b"}
    assert made.problems == ()


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({"blocksize": "4k"}, "there is no factor `blocksize`. Did you mean `block_size`?"),
        ({"stream": "a"}, "there is no factor `stream`. Did you mean `streams`?"),  # a factor of results only
        ({"block_size": "1000"}, "a block of 1000 bytes: direct I/O, trims and sg need multiples of 512 bytes"),
        (
            {"ioengine": "psync", "iodepth": "4"},
            "I/O engine psync has one I/O in flight per thread, so depth 4 is impossible",
        ),
        ({"block_size": "4k", "block_split": "4k/50:8k/50"}, "exclude each other"),
        ({"read_percent": "70"}, "`read_percent` has no effect"),
        ({"size": "100G"}, "100 GiB are needed on a/scratch, 10 GiB are free"),
        ({"size": "10737418752"}, "10,737,418,752 B are needed on a/scratch, 10,737,418,240 B are free"),
        ({"size": "whole"}, "a directory target needs the size"),
    ],
)
def test_it_says_in_words_what_cannot_run(factors: dict[str, str], words: str) -> None:
    problem = only_problem(expand(document(part("main", factors)), [directory()], seed=1))
    assert problem.startswith("Part main: ")
    assert words in problem


@pytest.mark.parametrize(("offset", "fits"), [("4 MiB", True), ("8 MiB", False)])
def test_offset_and_size_must_fit_in_the_device(offset: str, fits: bool) -> None:
    factors = {"offset": offset, "size": "12 MiB"}
    made = expand(document(part("main", factors)), [device(size_bytes=16 * 2**20)], seed=1)
    assert (len(made.problems) == 0) == fits, made.problems


def test_it_names_the_policy_where_a_setting_is_not_allowed() -> None:
    problem = only_problem(expand(document(part(scheduler="none")), [device(settings_allowed=("nomerges",))], seed=1))
    assert "`scheduler` may not be changed on a/loop" in problem
    assert "policy" in problem


def test_a_path_that_fio_cannot_be_given_is_a_problem_of_the_plan() -> None:
    problem = only_problem(expand(document(part("main", GRID)), [device(path="/dev/disk;x")], seed=1))
    assert "'/dev/disk;x' contains ';'" in problem
    assert expand(document(part()), [directory(path="/srv/a;b")], seed=1).problems == ()


def test_it_does_not_plan_writes_to_a_device_that_the_policy_protects() -> None:
    problem = only_problem(expand(document(part(pattern="randwrite")), [device(destroy=False)], seed=1))
    assert "overwrites a/loop" in problem
    assert expand(document(part(pattern="randread")), [device(destroy=False)], seed=1).problems == ()


def test_it_refuses_a_run_without_targets_or_with_nothing_to_do() -> None:
    assert "No target is chosen" in only_problem(expand(document(part()), [], seed=1))
    assert "No part of this plan runs" in only_problem(expand(document(part(on=("file",))), [directory()], seed=1))
    assert "chosen twice" in only_problem(expand(document(part()), [directory(), directory()], seed=1))
    assert "Two parts are called main" in only_problem(expand(document(part(), part()), [directory()], seed=1))


def test_it_counts_before_it_expands() -> None:
    plan = document(part(block_size="512..256k +512", iodepth="1..1000 +1"))
    assert "exceed the maximum of 10,000 per run" in only_problem(expand(plan, [directory()], seed=1))


def test_a_target_kind_is_named_once_in_words() -> None:
    made = expand(document(part(on=("block", "volume"))), [directory()], seed=1)
    assert "`on` names volume" in only_problem(made)
    assert directory().kind is TargetKind.DIRECTORY


def test_a_sequence_decides_what_changes_slowest_where_the_order_is_as_listed() -> None:
    factors = {"iodepth": "1, 2", "scheduler": "none, mq-deadline"}
    for order, slowest in ((Order.LISTED, "iodepth"), (Order.RANDOMISED, "scheduler")):
        plan = document(part("main", factors), order=order, sequence=("iodepth", "scheduler"), repeats=1)
        trials = expand(plan, [device()], seed=3).trials
        assert len(list(groupby(trials, key=lambda trial: trial.point[slowest]))) == 2
    plain = expand(document(part("main", factors), repeats=1), [device()], seed=3).trials
    assert {trial.point_key for trial in trials} == {trial.point_key for trial in plain}
