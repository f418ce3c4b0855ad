"""Steps before trials: their text, their points, what they write, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from webapp.plans.document import Order, Part, PlanDocument, export_plan, import_plan
from webapp.plans.estimate import estimate
from webapp.plans.expand import Expansion, expand
from webapp.plans.expected_time import PREFILL_BYTES_PER_S
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import document_problems
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.points import steps_of
from webapp.plans.preflight import destroys
from webapp.plans.steps import Preparation, StepsBefore, StepTexts, steps_before
from webapp.plans.tests.helpers import GIB, device, directory, document, part
from worker.contract.workload import FlushStep, PauseStep, WriteStep

MIB = 2**20
CHAIN = ("write 2x sequential 128k", "write 1X random 4K", "flush", "pause 1m", "write 64M random 4k")
STEPS = (
    WriteStep(block_bytes=128 * 1024, times=2),
    WriteStep(block_bytes=4096, random=True),
    FlushStep(),
    PauseStep(seconds=60),
    WriteStep(block_bytes=4096, random=True, amount_bytes=64 * MIB),
)
ONCE = ("once purge discard", "once write 2x sequential 128k", "flush")
DRIVE = device(purges={"discard": ""})


def plan(*before: str, **factors: str) -> PlanDocument:
    main = replaced(part(grid=factors), before)
    return document(main, common={"runtime": "3s"}, repeats=1, order=Order.LISTED)


def replaced(one: Part, before: Sequence[str]) -> Part:
    return Part(name=one.name, on=one.on, factors=one.factors, before=tuple(before))


def made(document: PlanDocument, *targets: TargetFacts) -> Expansion:
    found = expand(document, targets or (DRIVE,), seed=1)
    assert found.problems == ()
    return found


def test_steps_are_typed_and_part_of_the_point() -> None:
    (trial,) = made(plan(*CHAIN)).trials
    assert trial.before == Preparation("", STEPS)
    words = "write 2x sequential 128 KiB; write 1x random 4 KiB; flush; pause 60s; write 64 MiB random 4 KiB"
    assert trial.point["before"] == words
    assert StepTexts().parse(words) == words
    assert "before" not in made(plan()).trials[0].point


def test_parts_that_differ_in_steps_are_different_points() -> None:
    both = document(part("new"), replaced(part("filled"), CHAIN), repeats=1)
    assert len({trial.point_key for trial in made(both).trials}) == 2


def test_steps_are_levels_of_a_factor_too() -> None:
    trials = made(plan(before="purge discard; write 1x sequential 128k, none")).trials
    assert [trial.before for trial in trials] == [
        Preparation("discard", (WriteStep(block_bytes=128 * 1024),)), Preparation()
    ]  # fmt: skip


def test_bytes_and_time_of_steps_count_for_a_trial_that_only_reads() -> None:
    found = made(plan(*CHAIN, size="4G"))
    assert estimate(found).written_most == {"loop": 3 * 4 * GIB + 64 * MIB}
    assert estimate(found).bytes_written_max == 3 * 4 * GIB + 64 * MIB
    assert estimate(found).seconds == pytest.approx(3 + 60 + (12 * GIB + 64 * MIB) / PREFILL_BYTES_PER_S, abs=1)
    assert estimate(made(plan(*CHAIN))).written_most == {"loop": 3 * 10 * GIB + 64 * MIB}, "the whole device"
    files = made(plan("write 1x random 4k", size="1G", files="2"), directory())
    assert estimate(files).written_most == {"dir": 2 * 2 * GIB}, "prefill and step"


def test_a_reading_trial_with_a_writing_step_overwrites_a_device_but_not_a_directory() -> None:
    (trial,) = made(plan(*CHAIN)).trials
    assert destroys(trial.workload, trial.kind, trial.layouts[0], trial.before)
    (pausing,) = made(plan("flush", "pause 5s")).trials
    assert not destroys(pausing.workload, pausing.kind, pausing.layouts[0], pausing.before)
    (files,) = made(plan(*CHAIN, size="64M"), directory()).trials
    assert not destroys(files.workload, files.kind, files.layouts[0], files.before)
    refused = expand(plan(*CHAIN), [replace(DRIVE, destroy=False)], seed=1)
    assert "The step `write 2x sequential 128 KiB` overwrites a/loop" in refused.problems[0]


def test_steps_with_once_prepare_each_target_for_all_repeats_of_a_part() -> None:
    small, large = (replaced(part(name, block_size=size), ONCE) for name, size in (("4k", "4k"), ("1M", "1M")))
    found = made(document(small, large, repeats=2, common={"runtime": "3s"}), DRIVE, replace(DRIVE, id="other"))
    assert [trial.part for trial in found.trials] == ["4k"] * 4 + ["1M"] * 4
    whole = Preparation("discard", (WriteStep(block_bytes=128 * 1024, times=2), FlushStep()))
    first = {(trial.part, trial.target_id): trial.before for trial in reversed(found.trials)}
    assert set(first.values()) == {whole}
    assert [trial.before for trial in found.trials].count(whole) == 4
    assert estimate(found).written_before == {"loop": 4 * 10 * GIB, "other": 4 * 10 * GIB}
    most = estimate(found).written_most
    assert most == {"loop": 8 * 10 * GIB, "other": 8 * 10 * GIB}, "the second trial repeats them if the first one fails"
    assert estimate(replace(found, stop_after=1)).written_most == estimate(found).written_before
    assert steps_of(found.trials[-1].point).once.purge == "discard", "also later trials say how they were prepared"


@pytest.mark.parametrize(
    ("lines", "factors", "words"),
    [
        (("wipe",), {}, "`wipe` is not a step; write it like `write 2x sequential 128k`"),
        (("write 2x backwards 4k",), {}, "is not a step"),
        (("write 0x random 4k",), {}, "`0x` is outside 1x to 100x"),
        (("write 1x random 1000",), {}, "is not a multiple of 512 B"),
        (("pause 0s",), {}, "is outside 1 s to 24 h"),
        (("purge everything",), {}, "there is no purge `everything`; there are discard"),
        (("flush", "purge discard"), {}, "only the first step can be a purge"),
        (("flush", "once flush"), {}, "steps with `once` come before the others"),
        (("flush, flush",), {}, "A step contains no comma"),
        (("purge discard",), {"purge": "discard"}, "`purge` is a step and a factor"),
        (("once flush",), {"purge": "discard"}, "removes what steps with `once` have written"),
        (("once flush",), {"size": "1G, 2G"}, "`size` must have one level"),
        (("flush",), {"before": "none"}, "the steps are given twice"),
    ],
)
def test_it_explains_wrong_steps_at_their_place(lines: tuple[str, ...], factors: dict[str, str], words: str) -> None:
    found = document_problems(plan(*lines, **factors))
    assert {problem.place for problem in found} == {"parts.0.before"}
    assert words.lower() in found[0].message.lower()


def test_a_step_that_does_not_fit_the_target_is_refused_with_its_words() -> None:
    (problem,) = expand(plan("write 1x sequential 1M", size="64512"), [DRIVE], seed=1).problems
    assert "Step `write 1x sequential 1 MiB` on a/loop: " in problem
    (problem,) = expand(plan("write 1x sequential 1M"), [replace(DRIVE, size_bytes=0)], seed=1).problems
    assert "which is unknown: give a size" in problem
    (problem,) = expand(plan("purge discard"), [device(purges={})], seed=1).problems
    assert "The drive does not support it" in problem


def test_steps_are_part_of_the_files() -> None:
    found = plan(*ONCE, "pause 1m")
    assert import_plan(export_plan(found)) == found
    back = read_job_file(write_job_file(found))
    assert made(back).trials[0].point == made(found).trials[0].point


def test_equal_texts_of_one_chain_are_one_level() -> None:
    assert steps_before("FLUSH ;  pause 60") == StepsBefore(each=Preparation("", (FlushStep(), PauseStep(seconds=60))))
