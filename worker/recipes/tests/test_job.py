"""The job text, and that fio takes it for what we mean."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from worker.contract.workload import (
    KIB,
    MIB,
    BlockShare,
    Buffers,
    IoEngine,
    Pattern,
    Sync,
    SyncDepth,
    TargetKind,
    UringOptions,
)
from worker.recipes import render, workload_problems
from worker.recipes.base import RecipeError, size_words
from worker.recipes.fio import path_problem
from worker.recipes.fio.option_values import OptionRefused
from worker.recipes.fio.options import ALLOWED
from worker.recipes.steps import render_prefill
from worker.recipes.tests.jobs import options, run_fio, stream


def test_it_renders_one_option_a_line_in_a_stable_order() -> None:
    work = stream(
        pattern=Pattern.RANDRW, read_percent=70, files=2, iodepth=32, uring=UringOptions(fixedbufs=True), ramp_s=2
    )
    assert render(work).job_text == (
        "[sweetspot]\nfilename=sweetspot.1048576.0:sweetspot.1048576.1\nsize=2m\nrw=randrw\nrwmixread=70\nbs=4k\n"
        "norandommap=1\nrandseed=1\nioengine=io_uring\nfixedbufs=1\niodepth=32\nnumjobs=1\ndirect=1\n"
        "scramble_buffers=1\nruntime=1s\ntime_based=1\nramp_time=2s\nlat_percentiles=1\nclat_percentiles=0\n"
        "group_reporting=1\nexitall_on_error=1\n"
    )


def test_it_names_only_options_that_are_allowed_in_job_files_or_ours() -> None:
    ours = {"offset_increment", "fadvise_hint", "fallocate", "lat_percentiles", "clat_percentiles"}
    work = stream(pattern=Pattern.WRITE, numjobs=2, direct=False, prefill=False, end_fsync=True, sync=Sync.DSYNC)
    assert set(options(render(work).job_text)) <= set(ALLOWED) | ours


def test_it_runs_psync_depth_as_threads_only_on_request() -> None:
    asked: dict[str, Any] = {"ioengine": IoEngine.PSYNC, "iodepth": 8, "numjobs": 2}
    assert "psync" in workload_problems(stream(**asked).workload, TargetKind.DIRECTORY)[0]
    told = options(render(stream(**asked, sync_depth=SyncDepth.THREADS)).job_text)
    assert (told["numjobs"], told["iodepth"]) == ("16", "1")


@pytest.mark.parametrize(
    "path", ["/a\nrw=write", "/a;b", "/a#b", "/${HOME}", "/$ncpus", "/a\\b", "/a`b`", "/a/-", "/a "]
)
def test_it_refuses_a_path_that_fio_would_change(path: str) -> None:
    assert path_problem(path)
    with pytest.raises(RecipeError, match="fio cannot use this target"):
        render(stream(TargetKind.BLOCK, path))


def test_it_escapes_colons(tmp_path: Path) -> None:
    (tmp_path / "a:b").write_bytes(bytes(MIB))
    text = render(stream(TargetKind.FILE, str(tmp_path / "a:b"), amount_bytes=4096, runtime_s=None,
                      ioengine=IoEngine.PSYNC, direct=False)).job_text  # fmt: skip
    assert "filename=a\\:b\n" in text
    run_fio(text, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a:b"]


def test_it_writes_every_file_completely_before_use(tmp_path: Path) -> None:
    recipe = render_prefill(stream(size_bytes=3 * MIB // 2, files=3))
    assert recipe is not None
    run_fio(recipe.job_text, tmp_path)
    assert [(tmp_path / name).stat().st_size for name in recipe.files] == [3 * MIB // 2] * 3
    assert all((tmp_path / name).stat().st_blocks * 512 >= 3 * MIB // 2 for name in recipe.files)


@pytest.mark.parametrize("kind", [TargetKind.BLOCK, TargetKind.FILE])
def test_it_never_prefills_a_device_or_a_file(kind: TargetKind) -> None:
    assert render_prefill(stream(kind, "/dev/x")) is None


@pytest.mark.parametrize("pattern", [Pattern.WRITE, Pattern.RANDWRITE])
def test_it_moves_the_amount_over_all_jobs_rounded_up_to_blocks(tmp_path: Path, pattern: Pattern) -> None:
    size = 18 * 64 * 1024
    work = stream(pattern=pattern, numjobs=3, files=2, amount_bytes=MIB, runtime_s=None, block_bytes=64 * 1024,
               ioengine=IoEngine.PSYNC, direct=False, size_bytes=size)  # fmt: skip
    job = run_fio(render(work).job_text, tmp_path)
    assert job["write"]["io_bytes"] == 18 * 64 * 1024  # 16 blocks for 3 jobs: 6 each
    assert {p.stat().st_size for p in tmp_path.iterdir()} == {size}


@pytest.mark.parametrize(("numjobs", "files", "block_kib"), [(1, 1, 48), (3, 4, 4), (3, 1, 48), (5, 2, 12)])
def test_sequential_jobs_read_every_byte_of_every_file_once(
    tmp_path: Path, numjobs: int, files: int, block_kib: int
) -> None:
    """Truth: the bytes that fio counts until every job is at the end of its part."""
    size = numjobs * block_kib * KIB * 20
    given: dict[str, Any] = {"pattern": Pattern.READ, "numjobs": numjobs, "block_bytes": block_kib * KIB}
    work = stream(**given, files=files, size_bytes=size, ioengine=IoEngine.PSYNC, direct=False)
    job = run_fio(until_the_end(render(work).job_text), tmp_path)
    assert job["read"]["io_bytes"] == size * files


def until_the_end(text: str) -> str:
    """The job text without its time limit: fio stops when every job has used its part once."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("runtime=", "time_based=")))


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"size_bytes": 10 * MIB, "numjobs": 3, "files": 4},
         "size 10 MiB is not a multiple of 3 jobs × 4 KiB: use 10236 KiB or 10248 KiB"),
        ({"size_bytes": 1024 * MIB, "numjobs": 3},
         "size 1 GiB is not a multiple of 3 jobs × 4 KiB: use 1048572 KiB or 1048584 KiB"),
        ({"size_bytes": 10 * MIB, "block_bytes": 1000 * KIB},
         "size 10 MiB is not a multiple of 1000 KiB blocks: use 10000 KiB or 11000 KiB"),
        ({"size_bytes": MIB, "block_split": (BlockShare(block_bytes=12 * KIB, percent=50),
                                             BlockShare(block_bytes=24 * KIB, percent=50))},
         "size 1 MiB is not a multiple of 12 KiB blocks: use 1020 KiB or 1032 KiB"),
    ],
)  # fmt: skip
def test_it_refuses_a_size_with_a_rest_and_names_the_nearest_sizes(workload: dict[str, Any], words: str) -> None:
    asked = stream(**({"pattern": Pattern.READ} | workload)).workload
    assert workload_problems(asked, TargetKind.DIRECTORY) == (words,)


def test_fio_skips_the_rest_of_a_size(tmp_path: Path) -> None:
    """The reason for the refusal: fio reports no error, but never reads the last 240 KiB."""
    (tmp_path / "file").write_bytes(bytes(10 * MIB))
    text = "[job]\nfilename=file\nrw=read\nbs=1000k\nsize=10m\nioengine=psync\n"
    assert run_fio(text, tmp_path)["read"]["io_bytes"] == 10 * 1000 * KIB


def split(*kib: int) -> tuple[BlockShare, ...]:
    return tuple(BlockShare(block_bytes=each * KIB, percent=100 // len(kib)) for each in kib)


def test_fio_ends_the_parts_of_a_split_with_its_smallest_blocks(tmp_path: Path) -> None:
    """So a size that 12 KiB do not divide is accepted."""
    work = stream(pattern=Pattern.READ, block_split=split(4, 12), size_bytes=MIB, numjobs=2,
                  ioengine=IoEngine.PSYNC, direct=False)  # fmt: skip
    assert not workload_problems(work.workload, TargetKind.DIRECTORY)
    assert run_fio(until_the_end(render(work).job_text), tmp_path)["read"]["io_bytes"] == MIB


def test_fio_rounds_the_blocks_of_a_split_down(tmp_path: Path) -> None:
    """The reason for the refusal of splits like 4k/50:6k/50: fio reports no error, but all blocks have 4 KiB."""
    (tmp_path / "file").write_bytes(bytes(3 * MIB))
    text = "[job]\nfilename=file\nrw=read\nbssplit=4k/50:6k/50\nsize=3m\nioengine=psync\n"
    read = run_fio(text, tmp_path)["read"]
    assert read["io_bytes"] == read["total_ios"] * 4 * KIB


@pytest.mark.parametrize(("numjobs", "words"), [(3, "would use only 99 %"), (8, "96 %"), (101, "less than 1 %")])
def test_it_refuses_sequential_jobs_that_cannot_share_a_whole_device(numjobs: int, words: str) -> None:
    work = stream(pattern=Pattern.READ, size_bytes=None, numjobs=numjobs).workload
    (problem,) = workload_problems(work, TargetKind.BLOCK)
    assert words in problem
    assert not workload_problems(msgspec.structs.replace(work, numjobs=4), TargetKind.BLOCK)


def test_sequential_jobs_share_a_file(tmp_path: Path) -> None:
    work = stream(
        pattern=Pattern.WRITE, numjobs=4, amount_bytes=MIB, runtime_s=None, ioengine=IoEngine.PSYNC, prefill=False
    )
    run_fio(render(work).job_text, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_blocks * 512 == MIB  # each wrote its own quarter; all at the start would leave three holes


def test_it_renders_all_amounts_and_buffers() -> None:
    for kind, line in zip(
        Buffers, ("scramble_buffers=1", "refill_buffers=1", "scramble_buffers=0", "zero_buffers=1"), strict=True
    ):
        assert line in render(stream(pattern=Pattern.WRITE, buffers=kind)).job_text


def test_it_requests_completion_latency_only_if_there_is_no_total() -> None:
    job = options(render(stream(uring=UringOptions(sqthread_poll=True))).job_text)
    assert (job["lat_percentiles"], job["clat_percentiles"]) == ("0", "1")


PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"pattern": Pattern.RANDRW}, "needs read_percent"),
    ({"read_percent": 5}, "is only for mixed patterns"),
    ({"runtime_s": None}, "the workload never ends"),
    ({"amount_bytes": 4096}, "exclude each other"),
    ({"amount_bytes": 4096, "runtime_s": None, "ramp_s": 1}, "a ramp needs a runtime"),
    ({"ioengine": IoEngine.LIBAIO, "iodepth": 4, "direct": False}, "libaio is asynchronous only"),
    ({"ioengine": IoEngine.PSYNC, "uring": UringOptions(hipri=True)}, "need I/O engine io_uring"),
    ({"uring": UringOptions(hipri=True), "direct": False}, "needs direct"),
    ({"block_split": (BlockShare(block_bytes=4096, percent=60),)}, "add up to 60"),
    (
        {"block_split": (BlockShare(block_bytes=4096, percent=50), BlockShare(block_bytes=6144, percent=50))},
        "fio would round blocks of 6 KiB down to a multiple of the smallest, 4 KiB",
    ),
    ({"block_bytes": 2 * MIB}, "smaller than a block"),
    ({"pattern": Pattern.READ, "numjobs": 512}, "less than a block"),
    ({"size_bytes": None}, "needs the size"),
    ({"seed": 0}, "seed 0"),
    ({"ioengine": IoEngine.PSYNC, "numjobs": 512, "iodepth": 4, "sync_depth": SyncDepth.THREADS}, "exceed the limit"),
]


@pytest.mark.parametrize(("workload", "words"), PROBLEMS)
def test_it_explains_problems_of_a_workload(workload: dict[str, Any], words: str) -> None:
    assert any(words in problem for problem in workload_problems(stream(**workload).workload, TargetKind.DIRECTORY))
    with pytest.raises(RecipeError, match="This workload cannot run"):
        render(stream(**workload))


def test_it_has_several_files_only_in_directories() -> None:
    assert "directory" in workload_problems(stream(files=2).workload, TargetKind.BLOCK)[0]


def test_it_reads_allowed_options_back_to_factors() -> None:
    assert ALLOWED["blocksize"].read("64k") == {"block_size": 65536}
    assert ALLOWED["rwmixwrite"].read("30") == {"read_percent": 70}
    assert ALLOWED["buffered"].read("1") == {"direct": False}
    assert ALLOWED["runtime"].read("2m") == {"runtime": 120}
    for refused in ("include", "exec_prerun", "mem", "ioscheduler"):
        assert refused not in ALLOWED
    for name, value in (("ioengine", "external:/x.so"), ("norandommap", "2"), ("bs", "4k,8k,16k"), ("rw", "erase")):
        with pytest.raises(OptionRefused):
            ALLOWED[name].read(value)


@pytest.mark.parametrize(("pattern", "numjobs"), [(Pattern.RANDREAD, 1), (Pattern.READ, 2)])
def test_it_refuses_a_split_of_blocks_on_a_very_small_file(pattern: Pattern, numjobs: int) -> None:
    """fio takes only blocks that fit before the end, so the shares would change."""
    enough = 40 * numjobs * 64 * KIB
    given: dict[str, Any] = {"pattern": pattern, "numjobs": numjobs, "block_split": split(4, 64)}
    small = stream(**given, size_bytes=enough - 64 * KIB).workload
    (problem,) = workload_problems(small, TargetKind.DIRECTORY)
    assert "is too small for block_split" in problem
    assert problem.endswith(f"use {size_words(enough)} or more")
    assert not workload_problems(stream(**given, size_bytes=enough).workload, TargetKind.DIRECTORY)


def test_fio_changes_the_shares_of_a_split_on_a_very_small_file(tmp_path: Path) -> None:
    """The reason for the refusal: half of the I/Os should have 64 KiB."""
    (tmp_path / "file").write_bytes(bytes(128 * KIB))
    text = "[job]\nfilename=file\nrw=randread\nnorandommap=1\nbssplit=4k/50:64k/50\nsize=128k\nioengine=psync\n"
    read = run_fio(text + "number_ios=20000\ntime_based=1\nruntime=10s\n", tmp_path)["read"]
    mean = read["io_bytes"] / read["total_ios"]
    share = (mean - 4 * KIB) / (60 * KIB)
    assert share < 0.35
