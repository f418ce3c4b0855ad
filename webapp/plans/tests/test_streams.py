"""Streams with different workloads: their points, workloads and targets, and problems in their texts."""

from dataclasses import replace

import pytest

from webapp.plans.bytes_written import written_most
from webapp.plans.document import Part, PlanDocument, export_plan, import_plan
from webapp.plans.estimate import estimate, outline
from webapp.plans.expand import Expansion, expand
from webapp.plans.factors import FACTORS
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import document_problems
from webapp.plans.points import point_key, varying
from webapp.plans.streams import alone_point, result_point
from webapp.plans.tests.helpers import GIB, device, directory, document
from webapp.plans.tests.stream_parts import streams

READER = {"pattern": "randread", "iodepth": "1, 32"}
WRITER = {"pattern": "randwrite", "iodepth": "8"}


def beside(factors: dict[str, str] | None = None, **given: dict[str, str]) -> PlanDocument:
    """A plan with one part, by default a reader and a writer, alone and together."""
    named = streams(**(given or {"reader": READER, "writer": WRITER}))
    own = {"streams": "alone, together"} if factors is None else factors
    return document(Part(name="main", factors=own, streams=named), repeats=1)


def expanded(plan: PlanDocument, *targets: TargetFacts) -> Expansion:
    return expand(plan, targets or (directory(),), seed=1)


def said(plan: PlanDocument) -> list[str]:
    return [f"{one.place}: {one.message}" for one in document_problems(plan)]


def test_a_reader_beside_a_writer_and_each_alone() -> None:
    made = expanded(beside())
    assert made.problems == ()
    assert document_problems(beside()) == ()
    found = {
        (str(trial.point["streams"]), trial.point.get("reader.iodepth"), trial.point.get("writer.iodepth"))
        for trial in made.trials
    }
    assert found == {
        ("reader", 1, None), ("reader", 32, None), ("writer", None, 8),
        ("reader + writer", 1, 8), ("reader + writer", 32, 8),
    }  # fmt: skip
    assert len(made.trials) == len(found)
    assert all(trial.target_ids == ("dir",) for trial in made.trials)
    together = next(trial for trial in made.trials if len(trial.streams) == 2)
    assert [stream.name for stream in together.streams] == ["reader", "writer"]
    assert [stream.target_id for stream in together.streams] == ["dir", "dir"]
    assert [stream.workload.words for stream in together.streams] == ["randread", "randwrite"]
    assert together.point["numjobs"] == 1  # a default of both
    assert "iodepth" not in together.point


def test_streams_have_offsets_of_their_own_that_are_the_same_alone_and_together() -> None:
    plan = replace_repeats(beside({"streams": "alone, together"}, a=WRITER, b=WRITER), 2)
    seeds = {
        (stream.name, trial.repeat): stream.workload.seed for trial in expanded(plan).trials for stream in trial.streams
    }
    assert len(set(seeds.values())) == 4
    for trial in expanded(plan).trials:
        for stream in trial.streams:
            assert stream.workload.seed == seeds[stream.name, trial.repeat]


def replace_repeats(plan: PlanDocument, repeats: int) -> PlanDocument:
    return document(*plan.parts, repeats=repeats)


def test_the_same_target_or_one_target_each() -> None:
    plan = beside({"streams_on": "same, each"}, a=WRITER, b=WRITER)
    made = expanded(plan, device(id="d0", path="/dev/d0"), device(id="d1", path="/dev/d1"))
    used = sorted((str(trial.point["streams_on"]), trial.target_ids) for trial in made.trials)
    assert used == [("each", ("d0", "d1")), ("same", ("d0",)), ("same", ("d1",))]
    each = next(trial for trial in made.trials if trial.point["streams_on"] == "each")
    assert [(stream.name, stream.target_id) for stream in each.streams] == [("a", "d0"), ("b", "d1")]
    (problem,) = expanded(plan, device()).problems
    assert "2 targets at once are more than the 1 block device that is chosen" in problem


def test_a_result_of_a_stream_has_its_own_levels_and_leads_to_the_stream_alone() -> None:
    trials = {
        str(trial.point["streams"]): trial for trial in expanded(beside(None, reader=READER, writer=WRITER)).trials
    }
    together = result_point(trials["reader + writer"].point, "writer")
    assert together["stream"] == "writer"
    assert together["iodepth"] == together["writer.iodepth"] == 8
    assert together["pattern"] == "randwrite"
    alone = result_point(trials["writer"].point, "writer")
    assert point_key(alone_point(together)) == point_key(alone)
    assert alone_point(alone) == alone
    assert set(varying([together, alone])) >= {"streams"}
    assert "reader.iodepth" not in varying([together, alone])


def test_a_factor_that_acts_only_on_the_stream_beside_it_is_in_its_point() -> None:
    trials = expanded(beside({"fdatasync": "1, 8"}, reader=READER | {"iodepth": "1"}, writer=WRITER)).trials
    together = [trial.point for trial in trials if trial.point["streams"] == "reader + writer"]
    points = [result_point(point, "reader") for point in together]
    assert {point["writer.fdatasync"] for point in points} == {1, 8}
    assert len({point_key(alone_point(point)) for point in points}) == 1, "the reader alone has no such factor"


def test_a_factor_of_one_stream_is_a_default_of_the_others_if_the_part_names_it() -> None:
    made = expanded(beside({"iodepth": "4"}, a={"pattern": "randread", "iodepth": "1"}, b={"pattern": "randread"}))
    (trial,) = made.trials
    assert (trial.point["a.iodepth"], trial.point["b.iodepth"]) == (1, 4)


def test_a_copy_beside_a_reader() -> None:
    copier = {"engine": "file_copy", "size": "8M", "block_size": "1M"}
    made = expanded(beside({"streams": "alone, together"}, reader={"pattern": "randread"}, copier=copier))
    assert made.problems == ()
    together = next(trial for trial in made.trials if len(trial.streams) == 2)
    assert [stream.workload.engine for stream in together.streams] == ["fio", "file_copy"]
    assert together.point["reader.engine"] == "fio"
    assert "copier.iodepth" not in together.point
    assert estimate(made).unknown_trials == 2  # the copy, alone and beside the reader


def test_labels_of_factors_of_streams() -> None:
    assert FACTORS["reader.iodepth"].label == "reader: queue depth"
    assert "reader.scheduler" not in FACTORS
    assert "reader.iodepth" not in list(FACTORS)


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (beside({"at_once": "1, 2"}), "at_once"),
        (beside({"stop": "confidence 2%"}), "a stop rule"),
        (beside({"streams": "reader + eraser"}), "`eraser` is not a stream of this part"),
        (beside({"streams": "alone"}, reader=READER), "One stream needs no name"),
        (beside(None, reader={"iodepth": "1"}, writer=WRITER), "`pattern` of the stream reader is missing"),
        (beside(None, reader=READER | {"scheduler": "none"}, writer=WRITER), "`scheduler` cannot differ"),
        (beside(None, reader=READER | {"copy_fsync": "on"}, writer=WRITER), "`copy_fsync` is not a factor of fio"),
        (beside(None, reader=READER | {"iodepth": "0"}, writer=WRITER), "parts.0.streams.reader.iodepth: "),
        (beside(None, together=READER, writer=WRITER), "A stream cannot be called together"),
        (document(Part(name="main", factors={"pattern": "read", "streams": "alone"})), "This part has no streams"),
        (document(Part(name="main", factors={"pattern": "read", "reader.iodepth": "1"})), "no stream `reader`"),
    ],
)  # fmt: skip
def test_problems_of_streams_are_named_where_they_are(plan: PlanDocument, problem: str) -> None:
    assert any(problem.lower() in text.lower() for text in said(plan)), said(plan)


def test_a_stream_cannot_verify_what_another_stream_overwrites() -> None:
    writers = {"a": {"pattern": "write", "verify": "crc32c"}, "b": {"pattern": "randwrite"}}
    sized = {"amount": "64M", "streams": "together"}
    made = expanded(beside(sized, **writers), device())
    assert any("verifies its data while another stream writes" in text for text in made.problems)
    assert expanded(beside(sized, **writers), directory()).problems == ()


def test_space_and_written_bytes_are_of_all_streams() -> None:
    plan = beside({"streams": "together", "size": "6G"}, reader=READER, writer=WRITER)
    (problem,) = {*expanded(plan, directory(size_bytes=10 * GIB)).problems}
    assert "12 GiB are needed" in problem
    assert expanded(plan, device(size_bytes=10 * GIB)).problems == ()
    amounts = {"pattern": "randwrite", "amount": "64M"}
    both = expanded(beside({"streams": "together", "block_size": "4k"}, a=amounts, b=amounts), device())
    assert written_most(both, before={}) == {"loop": 2 * 64 * 2**20}
    assert estimate(expanded(beside())).space_bytes == 2 * 64 * 2**20  # each stream has its own file


def test_steps_prepare_the_used_part_of_each_stream_once() -> None:
    factors, reader = {"before": "write 1x sequential 64k", "size": "1G", "prefill": "off"}, {"pattern": "randread"}
    plan = beside(factors, a=reader, b=reader)
    ranges = beside(factors, a=reader | {"offset": "0"}, b=reader | {"offset": "1G"})
    assert estimate(expanded(plan, device())).written_before == {"loop": GIB}, "both use the same range"
    assert estimate(expanded(ranges, device())).written_before == {"loop": 2 * GIB}
    assert estimate(expanded(plan)).written_before == {"dir": 2 * GIB}, "each has its own file"


def test_steps_that_are_done_once_need_streams_that_all_run() -> None:
    (problem,) = said(beside({"streams": "alone, together", "before": "once flush"}))
    assert "`streams` must have one level" in problem


def test_the_writer_on_a_device_is_destructive_and_the_reader_is_not() -> None:
    plan = beside({"streams_on": "each"}, reader=READER, writer=WRITER)
    read_only = device(id="d0", path="/dev/d0", destroy=False)
    assert expanded(plan, read_only, device(id="d1", path="/dev/d1")).problems == ()
    assert expanded(plan, device(id="d1", path="/dev/d1"), replace(read_only)).problems


def test_streams_in_a_file_keep_their_order() -> None:
    plan = beside({"streams": "alone, together"}, writer=WRITER, reader=READER)
    text = export_plan(plan)
    assert "  streams:\n    writer:\n      pattern: randwrite\n" in text
    assert import_plan(text) == plan


def test_the_outline_counts_alone_and_together() -> None:
    assert outline(beside()).trials_high == 5
