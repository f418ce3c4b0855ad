"""Array actions as streams: where they can run, what they write, and how often the layout is built."""

from dataclasses import replace

import pytest

from webapp.plans.bytes_written import written_most
from webapp.plans.document import Part, PlanDocument
from webapp.plans.estimate import Estimate, estimate, written_expected
from webapp.plans.expand import Expansion, expand
from webapp.plans.grids import document_problems
from webapp.plans.points import point_key
from webapp.plans.streams import alone_point, result_point
from webapp.plans.tests.helpers import GIB, document
from webapp.plans.tests.pools import pool
from webapp.plans.tests.stream_parts import streams

READER = {"pattern": "randread"}
REBUILD = {"engine": "array_action", "action": "rebuild"}
CHECK = REBUILD | {"action": "check"}


def beside(layout: str, repeats: int = 1, streams_of: str = "alone, together", **given: dict[str, str]) -> PlanDocument:
    named = streams(**(given or {"reader": READER, "array": REBUILD}))
    factors = {"layout": layout, "streams": streams_of} if layout else {"streams": streams_of}
    return document(Part(name="main", factors=factors, streams=named), repeats=repeats)


def expanded(plan: PlanDocument) -> Expansion:
    return expand(plan, [pool()], seed=1)


def cost(plan: PlanDocument) -> Estimate:
    return estimate(expanded(plan))


def said(plan: PlanDocument) -> list[str]:
    return [one.message for one in document_problems(plan)]


def test_a_rebuild_runs_alone_and_beside_a_reader() -> None:
    made = expanded(beside("raid1 x2, raid5 x4 chunk 64k"))
    assert (made.problems, made.skipped) == ((), ())
    assert {(trial.point["layout"], trial.point["streams"]) for trial in made.trials} == {
        (layout, names)
        for layout in ("raid1 x2", "raid5 x4 chunk 64k")
        for names in ("reader", "array", "reader + array")
    }
    together = next(trial for trial in made.trials if len(trial.workloads) == 2)
    assert [work.words for work in together.workloads] == ["randread", "array rebuild"]


def test_a_stream_verifies_its_data_beside_a_rebuild() -> None:
    writer = {"pattern": "write", "verify": "crc32c", "amount": "64M", "size": "64M"}
    made = expanded(beside("raid1 x2", writer=writer, array=REBUILD))
    assert (made.problems, made.skipped) == ((), ())
    three = expanded(beside("raid1 x2", writer=writer, other={"pattern": "randwrite"}, array=REBUILD))
    assert any("verifies its data while another stream writes" in text for text in three.skipped)


def test_each_stream_beside_the_other_is_matched_with_itself_alone() -> None:
    trials = {str(trial.point["streams"]): trial.point for trial in expanded(beside("raid1 x2")).trials}
    for stream in ("reader", "array"):
        together = result_point(trials["reader + array"], stream)
        assert point_key(alone_point(together)) == point_key(result_point(trials[stream], stream)), stream


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (document(Part(name="main", factors={"layout": "raid1 x2"} | REBUILD)), "Array action runs beside a workload"),
        (beside("raid1 x2", one=CHECK, other=CHECK), "An array can run only one action at a time: remove the stream"),
        (beside("raid1 x2", one=REBUILD, other=CHECK), "An array action runs beside a workload"),
        (beside(""), "An array action needs the factor `layout`"),
        (
            beside("raid1 x2", reader=READER, array={"engine": "array_action"}),
            "`action` of the stream array is missing",
        ),
        (
            beside("raid1 x2", reader=READER, array=READER | {"engine": "fio, array_action"}),
            "A stream has one engine",
        ),
        (
            beside("raid1 x2", reader=READER, array=REBUILD | {"action": "repair"}),
            "`repair` is not one of check, rebuild",
        ),
        (
            document(
                Part(
                    name="main",
                    factors={"layout": "raid1 x2", "streams_on": "each"},
                    streams=streams(reader=READER, array=REBUILD),
                )
            ),
            "An array action and the streams beside it use the same array",
        ),
    ],
)
def test_problems_of_the_plan(plan: PlanDocument, problem: str) -> None:
    assert any(problem in text for text in said(plan)), said(plan)


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("raid0 x2 chunk 64k", "this layout has raid0"),
        ("single / xfs", "this layout has single"),
        ("2 drives / btrfs raid1", "this layout has single"),
        ("2 arrays of raid1 x2 / lvm stripe 64k", "this one has 2"),
        ("raid5 x4 chunk 64k / xfs", "A rebuild of raid5 would damage the file system"),
    ],
)
def test_layouts_without_an_array_for_the_action(layout: str, reason: str) -> None:
    problems = expanded(beside(layout, streams_of="together")).problems
    assert any(reason in text for text in problems), problems


def test_layouts_without_redundancy_are_left_out_of_a_sweep() -> None:
    made = expanded(beside("raid0 x2 chunk 64k, raid1 x2", streams_of="together"))
    assert (made.problems, len(made.trials)) == ((), 1)
    assert made.skipped == (
        "Part main, 1 point: An array action needs md raid1, raid5, raid6 or raid10; this layout has raid0.",
    )


def test_a_check_may_run_on_any_file_system() -> None:
    assert expanded(beside("raid5 x4 chunk 64k / xfs", reader=READER, array=CHECK)).problems == ()


def test_a_rebuild_writes_at_most_the_capacity_of_one_member() -> None:
    plan = beside("raid5 x4 chunk 64k share 50%", repeats=2)
    made, found = expanded(plan), cost(plan)
    assert found.written_most == written_most(made, before={}) == {"rack": 2 * 2 * 5 * GIB}
    assert written_most(made, before={}, limits={"rack": 1.0}) == {"rack": 20 * GIB}, "however slow its link is"
    assert found.open_ended == frozenset()
    assert written_expected(made, {}, {}) == {}, "the bound is known"
    assert cost(beside("raid1 x2", reader=READER, array=CHECK)).written_most == {"rack": 0}


def test_an_unknown_capacity_counts_with_the_time() -> None:
    unknown = pool(slots=tuple(replace(drive, size_bytes=0) for drive in pool().drives))
    (most,) = estimate(expand(beside("raid1 x2", streams_of="together"), [unknown], seed=1)).written_most.values()
    assert most > GIB


def test_the_layout_is_built_again_after_each_rebuild() -> None:
    assert cost(beside("raid1 x2", repeats=3, streams_of="together")).layouts_built == 3
    checks = beside("raid1 x2", repeats=3, streams_of="together", reader=READER, array=CHECK)
    assert cost(checks).layouts_built == 1


@pytest.mark.parametrize(("layout", "prefilled"), [("raid1 x2", 0), ("raid1 x2 / xfs", GIB)])
def test_steps_prepare_only_what_the_workload_uses(layout: str, prefilled: int) -> None:
    factors = {"layout": layout, "streams": "together", "before": "write 1x sequential 64k", "size": "1G"}
    plan = document(Part(name="main", factors=factors, streams=streams(reader=READER, array=CHECK)), repeats=1)
    assert expanded(plan).problems == ()
    assert cost(plan).written_before == {"rack": GIB + prefilled}
