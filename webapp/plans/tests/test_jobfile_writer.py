"""What is exported as a job file comes back as the same points, and fio takes it."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.core.errors import Refusal
from webapp.plans.document import Order, Part, PlanDocument, import_plan
from webapp.plans.factors import CHANGE
from webapp.plans.grids import document_problems, part_grid
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import parts_unfit_for_job_files, write_job_file
from webapp.plans.points import point_key
from webapp.plans.services import BUILTIN
from webapp.plans.tests.helpers import document, part


def keys(plan: PlanDocument) -> set[tuple[str, tuple[str, ...]]]:
    """Every point with the kinds of target it runs on. A job file has no names of changes."""
    return {
        (point_key({name: value for name, value in point.items() if name != CHANGE}), tuple(sorted(one.on)))
        for one in plan.parts
        for point in part_grid(plan, one).points
    }


OF_FIO = [
    file for file in sorted(BUILTIN.glob("*.yaml")) if not parts_unfit_for_job_files(import_plan(file.read_text()))
]


@pytest.mark.parametrize("file", OF_FIO, ids=lambda path: path.stem)
def test_built_in_plans_come_back_as_they_are(file: Path) -> None:
    plan = import_plan(file.read_text())
    back = read_job_file(write_job_file(plan))
    assert keys(back) == keys(plan)
    assert len(back.parts) == len(plan.parts) or any(one.rules for one in plan.parts)
    assert (back.title, back.repeats, back.order, back.retries) == (plan.title, plan.repeats, plan.order, plan.retries)


def test_factors_that_fio_does_not_have_are_comments() -> None:
    text = write_job_file(document(part(scheduler="none", ioengine="psync", iodepth="8", sync_depth="threads")))
    for line in (
        "; sweetspot: scheduler = none",
        "; sweetspot: iodepth = 8",
        "numjobs=8",
        "; sweetspot plan: repeats = 2",
    ):
        assert line in text.splitlines()
    assert "scheduler=none" not in text.splitlines()


LEVELS = {
    "pattern": ["randread", "read, randwrite", "randrw, read", "readwrite"],
    "block_size": ["4k", "512, 1M", "4k, 12k"],
    "block_split": ["4k/60:8k/40"],
    "ioengine": ["io_uring", "psync, io_uring"],
    "numjobs": ["1, 3"],
    "iodepth": ["1", "1, 32"],
    "sync_depth": ["threads"],
    "direct": ["on, off"],
    "sync": ["dsync"],
    "fsync_every": ["0, 8"],
    "end_fsync": ["on"],
    "size": ["64M", "whole", "1M, 3M"],
    "files": ["3"],
    "runtime": ["5s, 7s"],
    "amount": ["1G", "1000"],
    "ramp": ["2s"],
    "prefill": ["off"],
    "own_files": ["on, off"],
    "buffers": ["zeroes, repeated", "refilled"],
    "drop_caches": ["on, off"],
    "fixedbufs": ["on"],
    "scheduler": ["none, mq-deadline"],
    "read_ahead_kb": ["0, 128"],
    "wbt_lat_usec": ["-1"],
}
factors = st.dictionaries(st.sampled_from(sorted(LEVELS)), st.integers(0, 9), max_size=5).map(
    lambda chosen: {name: LEVELS[name][n % len(LEVELS[name])] for name, n in chosen.items()}
)
parts = st.builds(
    Part,
    name=st.text(min_size=1, max_size=20),
    factors=factors.map(lambda some: {"pattern": "randread"} | some),
    on=st.sampled_from([("block", "directory", "file"), ("block",), ("directory", "file")]),
)


@given(st.lists(parts, min_size=1, max_size=3, unique_by=lambda one: one.name), st.booleans())
def test_any_plan_comes_back_with_the_same_points(some: list[Part], drop_caches: bool) -> None:
    plan = PlanDocument(title="T", parts=tuple(some), drop_caches=drop_caches, order=Order.LISTED)
    if document_problems(plan):
        return
    assert keys(read_job_file(write_job_file(plan))) == keys(plan)


def test_a_mix_of_no_reads_is_written_because_fio_would_read_half() -> None:
    plan = read_job_file("[a]\nrw=randrw\nrwmixread=0\nsize=1g\nruntime=10\ntime_based\n")
    assert "rwmixread=0" in write_job_file(plan).splitlines()


def test_many_levels_of_one_factor_come_back() -> None:
    plan = document(part(iodepth="1..400 +1"))
    assert keys(read_job_file(write_job_file(plan))) == keys(plan)


def test_a_point_taken_out_by_hand_leaves_the_others() -> None:
    plan = document(part(iodepth="1, 2, 4", block_size="4k, 8k"), repeats=1)
    sections = write_job_file(plan).split("\n\n")
    back = read_job_file("\n\n".join(sections[:3] + sections[4:]))
    assert len(keys(back)) == 5
    assert keys(back) < keys(plan)


def test_too_many_points_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        write_job_file(document(part(iodepth="1..600 +1", block_size="4k, 8k")))
    assert caught.value.code == "too_many_points"


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("; sweetspot: colour = red", "there is no factor `colour`"),
        ("; sweetspot: iodepth = many", "`many` is not a whole number"),
        ("; sweetspot plan: repeats = many", "repeats"),
    ],
)
def test_a_comment_of_ours_that_is_wrong_is_named_with_its_line(comment: str, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_job_file(f"[a]\nsize=1m\n{comment}\n")
    assert caught.value.message.startswith("Line 3: ")
    assert words in caught.value.message


def test_fio_accepts_the_written_file(tmp_path: Path) -> None:
    plan = document(
        part(pattern="randrw", block_split="4k/60:8k/40", size="1M", runtime="1s", scheduler="none"), repeats=1
    )
    job = tmp_path / "plan.fio"
    job.write_text(write_job_file(plan))
    argv = ["fio", "--parse-only", f"--directory={tmp_path}", str(job)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
