"""Further options of fio: the job text, what fio does with it, and what is refused."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from worker.contract.fio_options import FadviseHint, FioOptions, RwSequencer, Verify
from worker.contract.workload import (
    KIB,
    MIB,
    BlockShare,
    Buffers,
    IoEngine,
    Pattern,
    SyncDepth,
    TargetKind,
    UringOptions,
)
from worker.recipes import render, workload_problems
from worker.recipes.fio.option_values import in_bytes, misread_time, read_seconds
from worker.recipes.fio.options import ALLOWED, REFUSED
from worker.recipes.fio.options_page import options_page
from worker.recipes.steps import render_prefill
from worker.recipes.tests.jobs import options, run_fio, stream

AMOUNT: dict[str, Any] = {"runtime_s": None, "amount_bytes": 16 * 4 * KIB}
# For each option of the contract, a workload that uses it.
EXAMPLES: dict[str, dict[str, Any]] = {
    "offset": {"offset": 4096},
    "offset_increment": {"offset_increment": MIB},
    "blockalign": {"blockalign": 8192},
    "random_distribution": {"random_distribution": "zoned:60/10:40/90"},
    "norandommap": {"norandommap": False},
    "percentage_random": {"percentage_random": 50},
    "write_percentage_random": {
        "percentage_random": 50, "write_percentage_random": 20, "pattern": Pattern.RANDRW, "read_percent": 50,
    },
    "rw_sequencer": {"rw_sequencer": RwSequencer.IDENTICAL, "run_length": 4},
    "file_service_type": {"file_service_type": "random"},
    "own_files": {"own_files": True, "numjobs": 2, "files": 2},
    "openfiles": {"openfiles": 2},
    "pre_read": {"pre_read": True, "direct": False},
    "invalidate": {"invalidate": False, "direct": False},
    "fadvise_hint": {"fadvise_hint": FadviseHint.PATTERN, "direct": False},
    "rate": {"rate": 10 * MIB},
    "write_rate": {"write_rate": MIB, "pattern": Pattern.RANDRW, "read_percent": 50},
    "rate_iops": {"rate_iops": 1000},
    "write_rate_iops": {"rate_iops": 9, "write_rate_iops": 8, "pattern": Pattern.RANDRW, "read_percent": 50},
    "rate_process": {"rate_iops": 1000, "rate_process": "poisson"},
    "rate_ignore_thinktime": {"thinktime": 100, "rate_ignore_thinktime": True},
    "thinktime": {"thinktime": 100},
    "thinktime_spin": {"thinktime": 100, "thinktime_spin": 50},
    "thinktime_blocks": {"thinktime": 100, "thinktime_blocks": 4},
    "thinktime_iotime": {"thinktime": 100, "thinktime_iotime": 2000},
    "latency_target": {"latency_target": 1000},
    "latency_window": {"latency_target": 1000, "latency_window": 100_000},
    "latency_percentile": {"latency_target": 1000, "latency_percentile": "99.9"},
    "latency_run": {"latency_target": 1000, "latency_run": True},
    "max_latency": {"max_latency": 10_000_000},
    "iodepth_batch": {"iodepth": 8, "iodepth_batch": 4},
    "iodepth_batch_complete_min": {"iodepth": 8, "iodepth_batch_complete_min": 2},
    "iodepth_batch_complete_max": {"iodepth": 8, "iodepth_batch_complete_max": 8},
    "iodepth_low": {"iodepth": 8, "iodepth_low": 2},
    "serialize_overlap": {"serialize_overlap": True},
    "io_submit_mode": {"io_submit_mode": "offload", "ioengine": IoEngine.LIBAIO},
    "force_async": {"force_async": 4},
    "userspace_reap": {"userspace_reap": True, "ioengine": IoEngine.LIBAIO},
    "fdatasync": {"fdatasync": 4, "pattern": Pattern.WRITE},
    "fsync_on_close": {"fsync_on_close": True, "pattern": Pattern.WRITE},
    "sync_file_range": {"sync_file_range": "wait_before+write:8", "pattern": Pattern.WRITE},
    "dedupe_percentage": {"dedupe_percentage": 50, "buffers": Buffers.REFILLED},
    "dedupe_mode": {"dedupe_percentage": 50, "dedupe_mode": "working_set", "buffers": Buffers.REFILLED},
    "dedupe_working_set_percentage": {
        "dedupe_percentage": 50, "dedupe_working_set_percentage": 10, "buffers": Buffers.REFILLED,
    },
    "buffer_compress_percentage": {"buffer_compress_percentage": 50, "buffers": Buffers.REFILLED},
    "buffer_compress_chunk": {
        "buffer_compress_percentage": 50, "buffer_compress_chunk": 4096, "buffers": Buffers.REFILLED,
    },
    "buffer_pattern": {"buffer_pattern": "0xdeadbeef", "buffers": Buffers.REPEATED},
    "verify": {"verify": Verify.CRC32C, "pattern": Pattern.RANDWRITE, **AMOUNT},
    "verify_pattern": {
        "verify": Verify.PATTERN, "verify_pattern": "0xff", "pattern": Pattern.WRITE, **AMOUNT,
    },
    "verify_interval": {"verify": Verify.MD5, "verify_interval": 512, "pattern": Pattern.WRITE, **AMOUNT},
    "verify_backlog": {"verify": Verify.MD5, "verify_backlog": 8, "pattern": Pattern.WRITE, **AMOUNT},
    "verify_backlog_batch": {
        "verify": Verify.MD5, "verify_backlog": 8, "verify_backlog_batch": 4, "pattern": Pattern.WRITE, **AMOUNT,
    },
    "verify_async": {"verify": Verify.MD5, "verify_async": 2, "pattern": Pattern.WRITE, **AMOUNT},
    "verify_fatal": {"verify": Verify.MD5, "verify_fatal": True, "pattern": Pattern.WRITE, **AMOUNT},
    # The versions of fio whose latencies are right are newer than Debian's: only parsed.
    "sqthread_poll_cpu": {"sqthread_poll_cpu": 0},
}  # fmt: skip


def using(kind: TargetKind = TargetKind.FILE, **given: Any) -> Any:
    """A stream; options of FioOptions by their names."""
    own = {name: given.pop(name) for name in FioOptions.__struct_fields__ if name in given}
    return stream(kind, "/data/x", options=FioOptions(**own), **({"pattern": Pattern.RANDWRITE} | given))


def test_fio_parses_every_option(tmp_path: Path) -> None:
    assert set(EXAMPLES) == set(FioOptions.__struct_fields__)
    examples = {name: given for name, given in EXAMPLES.items() if name != "sqthread_poll_cpu"}
    texts = [render(using(kind_for(name), **given)).job_text for name, given in examples.items()]
    done = subprocess.run(
        ("fio", "--parse-only", "-"), input="\n".join(texts), capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kind_for(name: str) -> TargetKind:
    return TargetKind.DIRECTORY if name == "own_files" else TargetKind.FILE


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"sqthread_poll_cpu"}))
def test_it_renders(name: str) -> None:
    work = using(kind_for(name), **EXAMPLES[name])
    assert workload_problems(work.workload, kind_for(name)) == ()
    fio_name = {"own_files": "filename_format"}.get(name, name.removeprefix("write_"))
    assert fio_name in options(render(work).job_text)
    if name.startswith(("dedupe", "buffer")):  # read data is the same as written data
        directory = using(TargetKind.DIRECTORY, **EXAMPLES[name])
        recipe = render_prefill(directory)
        assert recipe is not None
        assert name in options(recipe.job_text)


def offsets(tmp_path: Path, bs: int = 4 * KIB, **given: Any) -> list[int]:
    """The offsets of the first 8 I/Os on a file of 64 KiB, in blocks."""
    (tmp_path / "x").write_bytes(bytes(64 * KIB))
    work = using(block_bytes=bs, ioengine=IoEngine.PSYNC, direct=False, runtime_s=None, amount_bytes=8 * bs, **given)
    run_fio(render(work).job_text + "write_iolog=log\n", tmp_path)
    moved = [line.split() for line in (tmp_path / "log").read_text().splitlines() if f" {bs}" in line]
    return [int(words[-2]) // bs for words in moved]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"pattern": Pattern.READ, "skip_bytes": 8 * KIB}, [0, 3, 6, 9, 12, 15, 0, 3]),
        ({"pattern": Pattern.READ, "reverse": True}, [0, 14, 13, 12, 11, 10, 9, 8]),
        ({"pattern": Pattern.WRITE, "reverse": True, "skip_bytes": 4 * KIB}, [0, 13, 11, 9, 7, 5, 3, 1]),
        ({"pattern": Pattern.READ, "offset": 16 * KIB, "size_bytes": 8 * KIB}, [4, 5, 4, 5, 4, 5, 4, 5]),
    ],
)
def test_it_uses_these_offsets(tmp_path: Path, given: dict[str, Any], expected: list[int]) -> None:
    assert offsets(tmp_path, **({"size_bytes": 64 * KIB} | given)) == expected


def test_runs_continue_from_a_random_offset(tmp_path: Path) -> None:
    same = offsets(tmp_path, pattern=Pattern.RANDREAD, size_bytes=64 * KIB, run_length=4, rw_sequencer="identical")
    assert (len(set(same[:4])), len(set(same[4:]))) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"pattern": Pattern.WRITE, "reverse": True},
        {"pattern": Pattern.WRITE, "skip_bytes": 4 * KIB},
        {"pattern": Pattern.RANDWRITE},
        {"pattern": Pattern.RANDWRITE, "random_distribution": "zipf:1.2"},
        {"pattern": Pattern.RANDWRITE, "percentage_random": 30},
        {"pattern": Pattern.RANDWRITE, "run_length": 7},
        {"pattern": Pattern.RANDWRITE, "blockalign": 8 * KIB},
    ],
)
def test_writes_stay_in_the_used_part(tmp_path: Path, given: dict[str, Any]) -> None:
    """3 jobs from 4 KiB on, 8 KiB apart, 16 KiB each: the used part ends at 36 KiB."""
    (tmp_path / "x").write_bytes(b"\xee" * 64 * KIB)
    work = using(
        **given, size_bytes=16 * KIB, offset=4 * KIB, offset_increment=8 * KIB, numjobs=3, ioengine=IoEngine.PSYNC,
        direct=False, runtime_s=None, amount_bytes=MIB, buffers=Buffers.ZEROES,
    )  # fmt: skip
    assert work.workload.end_bytes == 36 * KIB
    run_fio(render(work).job_text, tmp_path)
    data = (tmp_path / "x").read_bytes()
    assert (data[: 4 * KIB], data[36 * KIB :]) == (b"\xee" * 4 * KIB, b"\xee" * 28 * KIB)
    assert data[4 * KIB : 36 * KIB] != b"\xee" * 32 * KIB


def test_verification_reads_everything_back_and_writes_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(MIB))
    work = using(
        pattern=Pattern.WRITE, verify=Verify.CRC32C, runtime_s=None, amount_bytes=MIB, ioengine=IoEngine.PSYNC,
        direct=False,
    )  # fmt: skip
    job = run_fio(render(work).job_text, tmp_path)
    assert (job["write"]["io_bytes"], job["read"]["io_bytes"]) == (MIB, MIB)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_shares_of_written_bytes_follow_the_block_sizes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(8 * MIB))
    work = using(
        pattern=Pattern.RANDRW, read_percent=75, write_block_bytes=64 * KIB, runtime_s=None, amount_bytes=64 * MIB,
        size_bytes=8 * MIB, ioengine=IoEngine.PSYNC, direct=False,
    )  # fmt: skip
    job = run_fio(render(work).job_text, tmp_path)
    assert options(render(work).job_text)["bs"] == "4k,64k"
    written = job["write"]["io_bytes"] / (job["write"]["io_bytes"] + job["read"]["io_bytes"])
    assert written == pytest.approx(work.workload.write_share, abs=0.03)


def test_separate_splits_are_separated_by_a_comma() -> None:
    split = (BlockShare(block_bytes=4096, percent=60), BlockShare(block_bytes=8192, percent=40))
    work = using(
        pattern=Pattern.RANDRW, read_percent=50, block_split=split, write_block_split=split[:1], size_bytes=MIB
    )
    assert "60" in "".join(workload_problems(work.workload, TargetKind.FILE))
    whole = (BlockShare(block_bytes=8192, percent=100),)
    work = using(pattern=Pattern.RANDRW, read_percent=50, block_split=split, write_block_split=whole, size_bytes=MIB)
    assert options(render(work).job_text)["bssplit"] == "4k/60:8k/40,8k/100"


@pytest.mark.parametrize("pattern", [pattern for pattern in Pattern if pattern.trims])
def test_trims_destroy_data_and_need_a_block_device(pattern: Pattern) -> None:
    work = using(pattern=pattern).workload
    assert work.writes
    assert not work.reads
    assert work.write_share == float(pattern in (Pattern.TRIMWRITE, Pattern.RANDTRIMWRITE))
    assert "needs a block device" in workload_problems(work, TargetKind.FILE)[0]
    assert workload_problems(work, TargetKind.BLOCK) == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"random_distribution": "zipf:1.0"}, "does not support zipf:1"),
        ({"random_distribution": "zoned:50/10:40/90"}, "add up to 100 %"),
        ({"random_distribution": "zipf:1.1", "pattern": Pattern.READ}, "only for random patterns"),
        ({"reverse": True}, "only for sequential"),
        ({"reverse": True, "pattern": Pattern.RANDRW, "read_percent": 5, "write_block_bytes": 8192}, "single block"),
        ({"skip_bytes": 512, "pattern": Pattern.READ}, "multiple of the block size"),
        ({"run_length": 2, "pattern": Pattern.READ}, "only for random"),
        ({"write_block_bytes": 8192}, "only for mixed patterns"),
        ({"block_range": (4096, 6144)}, "multiple of its start"),
        ({"iodepth_batch": 4}, "larger than the queue depth"),
        ({"io_submit_mode": "offload"}, "fio cannot offload"),
        ({"force_async": 4, "ioengine": IoEngine.LIBAIO}, "needs I/O engine io_uring"),
        ({"thinktime_spin": 5}, "thinktime_spin needs thinktime"),
        ({"rate": MIB, **AMOUNT}, "rate needs a runtime"),
        ({"dedupe_percentage": 50}, "needs? buffers=refilled"),
        ({"verify": Verify.MD5}, "verify needs an amount"),
        ({"verify": Verify.MD5, "pattern": Pattern.RANDREAD, **AMOUNT}, "only writes"),
        ({"verify": Verify.MD5, "numjobs": 2, **AMOUNT}, "needs offset_increment"),
        (
            {"verify": Verify.MD5, "pattern": Pattern.WRITE, "runtime_s": None, "amount_bytes": 2 * MIB},
            "up to the size",
        ),
        ({"verify_pattern": "0xff"}, "verify_pattern needs verify"),
        ({"ioengine": IoEngine.MMAP}, "disable direct"),
        ({"ioengine": IoEngine.SG}, "needs a SCSI drive"),
        ({"ioengine": IoEngine.IO_URING_CMD}, "needs an NVMe drive"),
        ({"ioengine": IoEngine.SYNC, "iodepth": 2}, "one I/O in flight"),
        ({"offset": 4096, "size_bytes": None}, "need a size"),
        ({"block_bytes": 2300}, "multiples of 512 bytes"),
        ({"norandommap": False, "random_distribution": "zipf:1.2"}, "keeps no map"),
        ({"norandommap": False, "pattern": Pattern.WRITE}, "needs a random pattern"),
        ({"write_percentage_random": 20, "percentage_random": 50}, "only for mixed patterns"),
    ],
)
def test_it_says_why_it_refuses(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        render(using(**given))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"direct": False}, "enable direct"),
        ({"end_fsync": True}, "cannot sync"),
        ({"fdatasync": 4}, "cannot sync"),
        ({"pattern": Pattern.TRIM}, "trims need another I/O engine than io_uring_cmd"),
        ({"io_submit_mode": "offload"}, "fio cannot offload"),
        ({"block_bytes": 2300}, "multiples of 512 bytes"),
    ],
)
def test_nvme_commands_have_limits(given: dict[str, Any], words: str) -> None:
    work = using(TargetKind.BLOCK, ioengine=IoEngine.IO_URING_CMD, **given).workload
    assert words in " ".join(workload_problems(work, TargetKind.BLOCK))


def test_fio_parses_nvme_commands_without_o_direct(tmp_path: Path) -> None:
    """The kernel refuses O_DIRECT for the character device."""
    uring = UringOptions(fixedbufs=True, hipri=True)
    work = using(TargetKind.BLOCK, ioengine=IoEngine.IO_URING_CMD, uring=uring, pattern=Pattern.RANDREAD, iodepth=32)
    assert workload_problems(work.workload, TargetKind.BLOCK) == ()
    text = render(work).job_text
    given = options(text)
    assert (given["ioengine"], given["direct"], given["fixedbufs"]) == ("io_uring_cmd", "0", "1")
    command = ("fio", "--parse-only", "-")
    subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=True)


def test_files_of_a_directory_have_no_offset() -> None:
    with pytest.raises(ValueError, match="need a device or a file"):
        render(using(TargetKind.DIRECTORY, offset=4096))


@pytest.mark.parametrize("engine", [IoEngine.SYNC, IoEngine.PVSYNC2, IoEngine.MMAP])
def test_engines_without_a_queue_move_the_amount(tmp_path: Path, engine: IoEngine) -> None:
    (tmp_path / "x").write_bytes(bytes(MIB))
    work = using(ioengine=engine, iodepth=2, sync_depth=SyncDepth.THREADS, direct=False, **AMOUNT)
    assert run_fio(render(work).job_text, tmp_path)["write"]["io_bytes"] == 16 * 4 * KIB


def test_every_option_of_fio_is_supported_or_refused_with_a_reason() -> None:
    done = subprocess.run(("fio", "--cmdhelp"), capture_output=True, text=True, check=True)
    known = {line.split(":")[0].strip() for line in done.stdout.splitlines() if ":" in line}
    assert known - set(ALLOWED) - set(REFUSED) == set()
    assert not set(ALLOWED) & set(REFUSED)


def test_the_documentation_lists_every_option_as_it_is() -> None:
    words = "run `python -m worker.recipes.fio.options_page > docs/reference/fio-options.md`"
    assert (Path(__file__).parents[3] / "docs/reference/fio-options.md").read_text() == options_page(), words


@pytest.mark.parametrize("text", ["4k", "4ki", "4kib", "4KiB", "4kb", "1GiB", "1g", "10k", "2300", "0x1000", "1T"])
@pytest.mark.parametrize("kb_base", [1000, 1024])
def test_sizes_are_those_that_fio_reads(text: str, kb_base: int) -> None:
    assert int(in_bytes(text, kb_base)) == read_by_fio(f"--kb_base={kb_base}", f"--size={text}")


@pytest.mark.parametrize("text", ["30", "30s", "5m", "2h", "1d", "2000ms", "3000000us"])
def test_times_are_those_that_fio_reads(text: str) -> None:
    assert read_seconds(text) * 10**6 == read_by_fio(f"--runtime={text}")
    assert misread_time(text) is None


@pytest.mark.parametrize(("text", "seconds"), [("90sec", 90), ("1m30s", 90), ("1min", 60), ("2hours", 7200)])
def test_times_with_units_that_fio_does_not_know_are_seconds(text: str, seconds: int) -> None:
    assert read_seconds(text) == seconds
    assert misread_time(text) == read_by_fio(f"--runtime={text}")


def read_by_fio(*arguments: str) -> int:
    """The number as which fio reads the last option."""
    argv = ("fio", "--parse-only", "--debug=parse", "--name=a", *arguments)
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return int(re.findall(r"out=(\d+)", done.stdout)[-1])


def test_jobs_with_an_increment_of_0_use_the_same_offsets(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(64 * KIB))
    given: dict[str, Any] = {"pattern": Pattern.READ, "size_bytes": 64 * KIB, "numjobs": 2, "direct": False}
    given |= {"ioengine": IoEngine.PSYNC, "runtime_s": None, "amount_bytes": 2 * 64 * KIB}
    apart, together = render(using(**given)), render(using(**given, offset_increment=0))
    assert options(apart.job_text)["size"] == "32k"
    assert (options(together.job_text)["size"], options(together.job_text)["offset_increment"]) == ("64k", "0")
    assert run_fio(together.job_text, tmp_path)["read"]["io_bytes"] == 2 * 64 * KIB


@pytest.mark.parametrize(
    ("files", "kind", "words"),
    [(3, TargetKind.DIRECTORY, "2 files, not 3"), (2, TargetKind.BLOCK, "own_files needs a directory target")],
)
def test_each_job_has_one_file_in_a_directory(files: int, kind: TargetKind, words: str) -> None:
    work = using(kind, own_files=True, numjobs=2, files=files, pattern=Pattern.READ).workload
    assert words in " ".join(workload_problems(work, kind))


@pytest.mark.parametrize("pattern", [Pattern.WRITE, Pattern.RANDWRITE])
def test_each_job_goes_through_its_own_file(tmp_path: Path, pattern: Pattern) -> None:
    work = using(
        TargetKind.DIRECTORY, pattern=pattern, own_files=True, numjobs=3, files=3, ioengine=IoEngine.PSYNC,
        direct=False, runtime_s=None, amount_bytes=3 * MIB, norandommap=False if pattern.random else None,
    )  # fmt: skip
    recipe = render(work)
    assert run_fio(recipe.job_text, tmp_path)["write"]["io_bytes"] == 3 * MIB
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(recipe.files)
    assert [(tmp_path / name).stat().st_blocks * 512 for name in recipe.files] == [MIB] * 3


def test_new_files_are_not_those_that_are_filled_before() -> None:
    created, filled = (render(using(TargetKind.DIRECTORY, prefill=prefill)).files for prefill in (False, True))
    assert (created, filled) == (("sweetspot.1048576.new.0",), ("sweetspot.1048576.0",))
    read = render(using(TargetKind.DIRECTORY, prefill=False, pattern=Pattern.RANDREAD))
    assert read.files == filled


@pytest.mark.parametrize("options_given", [{"pre_read": True, "invalidate": False}, {}])
def test_a_second_read_reads_the_cache_only_if_it_is_not_dropped(tmp_path: Path, options_given: dict[str, Any]) -> None:
    """Truth: the pages of the file that are in the page cache when fio has just opened it and reads one block."""
    (tmp_path / "x").write_bytes(bytes(16 * MIB))
    with (tmp_path / "x").open("rb") as file:
        os.fsync(file.fileno())
    work = using(
        **options_given, pattern=Pattern.RANDREAD, size_bytes=16 * MIB, ioengine=IoEngine.PSYNC, direct=False,
        runtime_s=None, amount_bytes=4 * KIB, fadvise_hint=FadviseHint.RANDOM,
    )  # fmt: skip
    run_fio(render(work).job_text, tmp_path)
    done = subprocess.run(("fincore", "--bytes", "--raw", "--noheadings", "--output=RES", tmp_path / "x"),
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert (int(done.stdout) == 16 * MIB) is bool(options_given)


def test_with_a_map_every_block_is_visited_once(tmp_path: Path) -> None:
    found = offsets(tmp_path, bs=8 * KIB, pattern=Pattern.RANDREAD, size_bytes=64 * KIB, norandommap=False)
    assert sorted(found) == list(range(8))
