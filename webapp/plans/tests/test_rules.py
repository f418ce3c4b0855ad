"""Rules of parts: points left out, paired levels, one change at a time; and invalid combinations."""

from typing import Any

import msgspec
import pytest

from webapp.plans.document import Order, Part, PlanDocument, export_plan, import_plan
from webapp.plans.expand import expand
from webapp.plans.grids import document_problems, part_grid
from webapp.plans.tests.helpers import device, directory, document


def plan(*rules: str, **factors: str) -> PlanDocument:
    return document(Part(name="main", factors={"pattern": "randread"} | factors, rules=rules), repeats=1)


def levels(made: PlanDocument, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(point.get(name) for name in names) for point in part_grid(made, made.parts[0]).points]


def test_except_leaves_out_points_that_meet_all_conditions() -> None:
    made = plan("except ioengine=psync; iodepth=2..64 *2", ioengine="psync, io_uring", iodepth="1, 32")
    assert levels(made, "ioengine", "iodepth") == [("psync", 1), ("io_uring", 1), ("io_uring", 32)]
    assert len(expand(made, [directory()], seed=1).trials) == 3


def test_only_when_keeps_points_that_meet_any_such_rule() -> None:
    made = plan("only when iodepth=1", "only when direct=on; iodepth=4", direct="on, off", iodepth="1, 2, 4")
    assert sorted(levels(made, "direct", "iodepth")) == [(False, 1), (True, 1), (True, 4)]


def test_a_condition_can_name_a_level_with_a_semicolon() -> None:
    filled = "purge discard; write 1x sequential 128k"
    made = plan(f"except before={filled}; iodepth=4", before=f"none, {filled}", iodepth="1, 4")
    assert levels(made, "before", "iodepth") == [
        ("none", 1), ("none", 4), ("purge discard; write 1x sequential 128 KiB", 1),
    ]  # fmt: skip


def test_zip_pairs_levels_in_their_order() -> None:
    made = plan("zip block_size, iodepth", block_size="4k, 64k, 1M", iodepth="32, 8, 1", numjobs="1, 2")
    assert sorted(levels(made, "numjobs", "block_size", "iodepth")) == [
        (jobs, size, depth) for jobs in (1, 2) for size, depth in ((4096, 32), (65_536, 8), (1_048_576, 1))
    ]


def test_one_at_a_time_changes_each_factor_from_the_base_and_names_the_change() -> None:
    made = plan(
        "one at a time scheduler, read_ahead_kb",
        pattern="read, write", scheduler="mq-deadline, none, kyber", read_ahead_kb="128, 0",
    )  # fmt: skip
    assert levels(made, "pattern", "change", "scheduler", "read_ahead_kb") == [
        (pattern, *each)
        for pattern in ("read", "write")
        for each in (
            ("base", "mq-deadline", "128"),
            ("I/O scheduler none", "none", "128"),
            ("I/O scheduler kyber", "kyber", "128"),
            ("Read-ahead 0 KiB", "mq-deadline", "0"),
        )
    ]


def test_zipped_factors_are_one_change() -> None:
    made = plan("zip scheduler, nr_requests", "one at a time scheduler", scheduler="none, bfq", nr_requests="64, 256")
    assert [change for (change,) in levels(made, "change")] == ["base", "I/O scheduler bfq, Queue size 256"]


def test_a_change_without_effect_is_not_repeated() -> None:
    made = plan("one at a time read_percent", pattern="randread, randrw", read_percent="50, 70")
    assert levels(made, "pattern", "change") == [("randread", "base"), ("randrw", "base"), ("randrw", "Reads 70 %")]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("without iodepth=1", "is not a rule. Start with `except`"),
        ("except iodepth", "write it like `ioengine=psync`"),
        ("except iodepth=many", "`many` is not a whole number"),
        ("except scheduler=none", "names `scheduler`, which is not a factor of this part"),
        ("zip iodepth, block_size", "the same number of levels"),
        ("zip iodepth", "two or more factors"),
        ("one at a time numjobs", "needs a factor with several levels"),
        ("except iodepth=1,2", "the rules leave out all points"),
    ],
)
def test_it_explains_wrong_rules_at_their_place(rule: str, words: str) -> None:
    (problem,) = document_problems(plan(rule, iodepth="1, 2"))
    assert problem.place == "parts.0.rules"
    assert words in problem.message.replace("The rules", "the rules").replace("A rule", "a rule")


def test_a_wrong_rule_is_named_by_its_number() -> None:
    made = plan("except iodepth=1", "except iodepth=many", "only when nothing=1", iodepth="1, 2")
    assert [one.message for one in document_problems(made)] == [
        "Rule 2: Queue depth: `many` is not a whole number.",
        "Rule 3: names `nothing`, which is not a factor of this part.",
    ]


def test_rules_are_part_of_the_file() -> None:
    made = plan("except iodepth=1; numjobs=2", iodepth="1, 2", numjobs="1, 2")
    assert import_plan(export_plan(made)) == made


def test_the_factor_change_cannot_be_set() -> None:
    (problem,) = document_problems(plan(change="mine"))
    assert "there is no factor `change`" in problem.message.replace("There", "there")


def test_invalid_combinations_are_left_out_and_named() -> None:
    made = expand(plan(ioengine="psync, io_uring", iodepth="1, 32"), [directory(), device()], seed=1)
    assert made.problems == ()
    assert len(made.trials) == 6
    (words,) = made.skipped
    assert words.startswith("Part main, 2 points: I/O engine psync has one I/O in flight per thread")


def test_a_part_without_a_valid_point_is_refused() -> None:
    made = expand(plan(ioengine="psync", iodepth="2, 32"), [directory()], seed=1)
    assert made.trials == ()
    assert len(made.problems) == 2
    assert made.skipped == ()


def test_parts_with_rules_share_the_maximum_of_combinations() -> None:
    """Each combination takes time in every preview."""
    part = plan("except iodepth=1; rate_iops=1", iodepth="1..40 +1", rate_iops="1..1000 +1").parts[0]
    assert not part_grid(document(part), part).found
    (problem,) = part_grid(document(part, part, part), part).found
    assert problem.message == "rules can select from at most 33,333 combinations in this part. Remove levels."


def test_rounds_need_a_point_to_track_and_enough_repeats() -> None:
    tracking = msgspec.structs.replace(plan("rounds until steady iodepth=3", iodepth="1, 2"), order=Order.LISTED)
    (problem,) = document_problems(msgspec.structs.replace(tracking, repeats=5))
    assert "No point meets `rounds until steady`" in problem.message
    (problem,) = document_problems(msgspec.structs.replace(tracking, repeats=4))
    assert "Enter at least 5 repeats" in problem.message
    shuffled = msgspec.structs.replace(tracking, repeats=5, order=Order.RANDOMISED)
    assert "needs the listed order" in document_problems(shuffled)[0].message
