"""Parts of other engines than fio: their own factors, points and workloads."""

import pytest

from webapp.core.errors import Refusal
from webapp.plans.document import Part
from webapp.plans.estimate import estimate, written_most
from webapp.plans.expand import expand
from webapp.plans.grids import part_grid
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.tests.helpers import GIB, device, directory, document
from worker.contract.file_copy import CopyMethod
from worker.contract.workload import CopyWorkload

COPY = {"engine": "file_copy", "size": "1G", "files": "4", "copy_method": "buffered, direct, reflink"}


def copying(**factors: str) -> Part:
    return Part(name="copy", factors=COPY | factors)


def test_a_part_of_file_copy_has_its_own_factors_and_workload() -> None:
    made = expand(document(copying(), repeats=1), [directory(size_bytes=100 * GIB)], seed=1)
    assert made.problems == ()
    works = [trial.workload for trial in made.trials]
    assert {work.method for work in works if isinstance(work, CopyWorkload)} == set(CopyMethod) - {CopyMethod.KERNEL}
    points = {trial.point["copy_method"]: trial.point for trial in made.trials}
    assert points["direct"] == {
        "engine": "file_copy", "copy_method": "direct", "block_size": 1024**2, "copy_fsync": True, "size": GIB,
        "files": 4, "buffers": "incompressible", "drop_caches": False,
    }  # fmt: skip
    assert "block_size" not in points["reflink"]


def test_common_factors_of_fio_do_not_reach_it() -> None:
    plan = document(
        Part(name="random", factors={"pattern": "randread"}), copying(), common={"iodepth": "8", "size": "1G"}
    )
    assert [part_grid(plan, part).problems for part in plan.parts] == [(), ()]


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({"iodepth": "8"}, "`iodepth` is not a factor of File copy; remove it."),
        ({"engine": "fio, file_copy"}, "a part has one engine; create one part per engine."),
        ({"engine": "bonnie"}, "not one of fio, file_copy"),
    ],
)
def test_it_refuses_what_no_engine_can_do(factors: dict[str, str], words: str) -> None:
    problems = part_grid(document(copying()), copying(**factors)).problems
    assert any(words in problem for problem in problems), problems


def test_it_needs_a_directory_with_space_for_sources_and_copies() -> None:
    plan = document(copying(), repeats=1)
    assert any("needs a directory target" in text for text in expand(plan, [device(destroy=True)], seed=1).problems)
    assert any("8 GiB are needed" in text for text in expand(plan, [directory(size_bytes=7 * GIB)], seed=1).problems)


def test_it_writes_each_byte_once_and_its_files_first() -> None:
    made = expand(document(copying(copy_method="direct"), repeats=2), [directory(size_bytes=100 * GIB)], seed=1)
    assert sum(written_most(made).values()) == 2 * 4 * GIB + 4 * GIB
    assert estimate(made).unknown_trials == 2


def test_a_job_file_cannot_hold_it() -> None:
    with pytest.raises(Refusal, match="only parts of fio, not of copy"):
        write_job_file(document(copying()))
