"""Parts of other engines than fio: their own factors, points and workloads."""

import pytest

from webapp.plans.document import Part
from webapp.plans.engines import ENGINES
from webapp.plans.estimate import estimate
from webapp.plans.expand import expand
from webapp.plans.factors import FACTORS
from webapp.plans.grids import document_problems, part_grid
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.preview import preview
from webapp.plans.tests.helpers import GIB, device, directory, document
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_scratch
from webapp.tests.refusals import refuses
from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import FileSystem
from worker.contract.workload import CopyWorkload
from worker.recipes import ENGINES as RECIPES

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
        ({"engine": "bonnie"}, "not one of fio, file_copy, pgbench, sysbench, sysbench_oltp, idle"),
    ],
)
def test_it_refuses_combinations_that_no_engine_supports(factors: dict[str, str], words: str) -> None:
    problems = part_grid(document(copying()), copying(**factors)).problems
    assert any(words in problem for problem in problems), problems


def test_it_needs_a_directory_with_space_for_sources_and_copies() -> None:
    plan = document(copying(), repeats=1)
    assert any("needs a directory target" in text for text in expand(plan, [device(destroy=True)], seed=1).problems)
    assert any("8 GiB are needed" in text for text in expand(plan, [directory(size_bytes=7 * GIB)], seed=1).problems)


def test_it_writes_each_byte_once_and_its_files_first() -> None:
    made = expand(document(copying(copy_method="direct"), repeats=2), [directory(size_bytes=100 * GIB)], seed=1)
    assert estimate(made).bytes_written_max == 2 * 4 * GIB + 4 * GIB
    assert estimate(made).unknown_trials == 2


def test_a_job_file_cannot_hold_it() -> None:
    with refuses("not_fio"):
        write_job_file(document(copying()))


def test_a_common_factor_that_no_engine_of_the_plan_has_is_refused() -> None:
    copies = document(copying(), common={"runtime": "4s"})
    assert [str(problem) for problem in document_problems(copies)] == [
        "`runtime` is not a factor of File copy, the engine of all parts. Remove it."
    ]
    both = document(copying(), Part(name="random", factors={"pattern": "randread"}), common={"runtime": "4s"})
    assert document_problems(both) == ()


def test_levels_are_those_that_the_part_s_engine_allows() -> None:
    assert part_grid(document(), copying(block_size="64M")).levels["block_size"] == (64 * 2**20,)
    assert "512 B is outside 4 KiB to 64 MiB" in part_grid(document(), copying(block_size="512")).problems[0]
    assert part_grid(document(), Part(name="fio", factors={"pattern": "read", "block_size": "512"})).problems == ()


def test_a_factor_without_effect_does_not_multiply_the_points_and_is_refused_if_it_never_has_one() -> None:
    assert part_grid(document(), copying(block_size="4k, 1M")).count == 2 + 2 + 1
    problems = part_grid(document(), copying(copy_method="reflink", block_size="4k")).problems
    assert problems == ("Part copy: `block_size` has no effect at any level of `copy_method` in this part. Remove it.",)


def test_every_engine_names_its_own_factors() -> None:
    for name, engine in ENGINES.items():
        own = {factor.name for factor in engine.FACTORS}
        named = {engine.REQUIRED, engine.SERIES_BY, *engine.NAMED_BY, *engine.PHRASES}
        optional = {engine.SILENT_BY, engine.CHART_BY, engine.DIRECTIONS_BY} - {""}
        assert named | optional | {factor for pair in engine.ALTERNATIVES for factor in pair} <= own, name
        assert FACTORS[engine.REQUIRED].example, name
        recipe = RECIPES[engine.WORKLOAD]
        assert (recipe.LABEL, recipe.DEFAULT_METRIC) == (engine.LABEL, engine.DEFAULT_METRIC)
        assert engine.DEFAULT_METRIC in {"iops", "bytes_per_s", *(metric.name for metric in recipe.METRICS)}


def test_files_that_each_trial_prepares_count_as_written_even_if_it_only_reads() -> None:
    factors = {"engine": "sysbench", "file_test": "rndrd", "size": "64M", "files": "4"}
    made = expand(document(Part(name="main", factors=factors), repeats=2), [directory(size_bytes=GIB)], seed=1)
    assert made.problems == ()
    assert estimate(made).bytes_written_max == 2 * GIB // 4


def test_memory_bandwidth_writes_nothing_and_runs_on_every_kind_of_target() -> None:
    factors = {"engine": "memory_bandwidth", "memory_access": "read, write", "memory_threads": "1, 2"}
    plan = document(Part(name="main", factors=factors), repeats=1)
    for target in (device(), directory()):
        made = expand(plan, [target], seed=1)
        assert (made.problems, len(made.trials), estimate(made).bytes_written_max) == ((), 4, 0)


def test_factors_of_writes_have_no_effect_on_reads() -> None:
    def of(engine: str, **factors: str) -> tuple[str, ...]:
        return part_grid(document(), Part(name="main", factors={"engine": engine} | factors)).problems

    assert "`write_fsync` has no effect" in of("sysbench", file_test="rndrd, seqrd", write_fsync="on")[0]
    assert of("sysbench", file_test="rndwr", write_fsync="on") == ()
    read_only = of("sysbench_oltp", oltp_test="oltp_read_only", synchronous_commit="off")
    assert "`synchronous_commit` has no effect" in read_only[0]
    assert of("sysbench_oltp", oltp_test="oltp_read_write", synchronous_commit="off") == ()


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "warned"), [("ext4", True), ("xfs", False), ("unheard of", False)])
def test_a_preview_warns_of_reflinks_on_a_file_system_without_them(kind: str, warned: bool) -> None:
    host = a_host("storage1", capabilities={})
    mounted = FileSystem(kind=kind, devices=("nvme0n1",), points=("/srv",), options="rw")
    an_inventory(host, file_systems=(mounted,))
    target = storage1_scratch(host)
    words = "storage1/scratch: copies by reflink fail: its file system ext4 has no reflinks."
    assert preview(document(copying(copy_method="reflink")), [target]).target_warnings == (words,) * warned
    assert preview(document(copying(copy_method="kernel")), [target]).target_warnings == ()
