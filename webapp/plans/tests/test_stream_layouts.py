"""Streams whose layouts differ: each on a pool of its own, also alone."""

from dataclasses import replace

import pytest

from webapp.plans.document import Order, Part, PlanDocument, export_plan, import_plan
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import document_problems
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.layouts import DriveFacts
from webapp.plans.points import layouts_of
from webapp.plans.streams import result_point
from webapp.plans.tests.helpers import GIB, directory, document
from webapp.plans.tests.pools import pool
from webapp.plans.tests.stream_parts import streams

WIDE, NARROW = "raid10 x4 chunk 64k", "raid0 x2 chunk 64k"
FIRST, SECOND = {"pattern": "write", "layout": WIDE}, {"pattern": "write", "layout": NARROW}
EACH = {"streams_on": "each"}


def pools() -> tuple[TargetFacts, TargetFacts]:
    """Four drives of 10 GiB, and two of 30 GiB."""
    small = tuple(DriveFacts(f"a/e{n}", f"/dev/sd{'kl'[n]}", 30 * GIB) for n in range(2))
    return pool(4), replace(pool(2), id="small", name="a/small", drives=small)


def plan(
    factors: dict[str, str] = EACH, first: dict[str, str] = FIRST, second: dict[str, str] = SECOND
) -> PlanDocument:
    given = {"size": "1G", "block_size": "128k", **factors}
    part = Part(name="main", factors=given, streams=streams(first=first, second=second))
    return document(part, order=Order.LISTED, repeats=1)


def made(document: PlanDocument, *targets: TargetFacts) -> Expansion:
    return expand(document, targets or pools(), seed=1)


def test_each_stream_has_its_own_layout_on_its_own_pool() -> None:
    expansion = made(plan())
    assert expansion.problems == ()
    (trial,) = expansion.trials
    assert [(each.name, each.target_id) for each in trial.streams] == [("first", "rack"), ("second", "small")]
    assert [each.layout for each in trial.streams] == list(layouts_of(trial.point))
    assert [each.layout and each.layout.drives for each in trial.streams] == [4, 2]
    assert estimate(expansion).layouts_built == 2


def test_a_result_has_the_layout_of_its_own_array() -> None:
    (trial,) = made(plan()).trials
    assert [result_point(trial.point, name)["layout"] for name in ("first", "second")] == [WIDE, NARROW]


def test_a_stream_alone_keeps_its_pool() -> None:
    """A layout need not fit the pool of the other stream."""
    expansion = made(plan({**EACH, "streams": "alone, together"}))
    assert expansion.problems == ()
    used = [(trial.point["streams"], trial.target_ids) for trial in expansion.trials]
    assert used == [("first", ("rack",)), ("second", ("small",)), ("first + second", ("rack", "small"))]
    assert estimate(expansion).layouts_built == 3  # only `second` is kept for the next trial


def test_sizes_are_of_the_layout_under_each_stream() -> None:
    factors = {**EACH, "size_percent": "50", "streams": "alone, together"}
    part = Part(name="main", factors=factors, streams=streams(first=FIRST, second=SECOND))
    expansion = made(document(part, order=Order.LISTED, repeats=1))
    assert expansion.problems == ()
    sizes = [[each.workload.size_bytes for each in trial.streams] for trial in expansion.trials]
    assert sizes == [[10 * GIB], [30 * GIB], [10 * GIB, 30 * GIB]]


def test_a_layout_of_the_part_is_the_one_of_the_streams_without_their_own() -> None:
    (trial,) = made(plan({**EACH, "layout": NARROW}, second={"pattern": "write"})).trials
    assert [each.layout and each.layout.drives for each in trial.streams] == [4, 2]


def test_levels_of_one_stream_cross_those_of_the_other() -> None:
    lines = "raid0 x2 chunk 64k / xfs|ext4"
    expansion = made(plan(first={**FIRST, "layout": lines}, second={**SECOND, "layout": lines}))
    assert len(expansion.trials) == 4
    kinds = made(plan(second={**SECOND, "layout": f"{NARROW}, {NARROW} / xfs"}))
    assert len(kinds.trials) == 1
    assert "One stream has a layout with a file system, and another one has a layout without." in kinds.skipped[0]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (plan({}), "first.layout: Streams on one target share its layout; set `streams_on` to `each`"),
        (plan({"streams_on": "same, each"}), "first.layout: Streams on one target share its layout"),
        (plan(second={"pattern": "write"}), "parts.0.streams: the stream second has no `layout`"),
        (plan(first={**FIRST, "layout": "raid5 x2 chunk 64k"}), "Layout: raid5 needs at least 3 drives"),
        (plan({**EACH, "hosts_at_once": "2"}), "hosts_at_once: "),
        (plan({**EACH, "before": "once flush"}), "a layout may be built again"),
        (plan(second={"engine": "array_action", "array_action": "check", "layout": NARROW}), "an array action"),
    ],
)
def test_problems_are_named_where_they_are(document: PlanDocument, problem: str) -> None:
    said = [f"{each.place}: {each.message}" for each in document_problems(document)]
    assert any(problem.lower() in text.lower() for text in said), said
    assert made(document).trials == ()


def test_problems_of_the_pools() -> None:
    front, back = pools()
    (problem,) = made(plan(), back, front).problems
    assert problem == "Part main: `raid10 x4 chunk 64k` takes 4 drives; the pool a/small has 2."
    (problem,) = made(plan(), front, replace(back, drives=front.drives[2:])).problems
    assert "a/rack and a/small both contain a/d2, a/d3" in problem
    (problem,) = made(plan({**EACH, "streams": "alone"}), front).problems
    assert problem == (
        "Part main: 2 targets are needed, because each of the 2 streams with layouts of their own uses a target of its "
        "own, also alone. Only 1 is chosen on a. Choose more targets."
    )
    assert made(plan(), front, back, directory()).skipped == (
        "Part main runs on pools of drives only; a/scratch is a directory.",
    )


def test_it_is_carried_by_a_file() -> None:
    text = export_plan(plan())
    assert f"    first:\n      layout: {WIDE}\n" in text
    assert import_plan(text) == plan()
    (trial,), (back,) = made(plan()).trials, made(read_job_file(write_job_file(plan()))).trials
    assert back.streams == trial.streams
