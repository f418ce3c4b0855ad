"""fio's human-readable text."""

import pytest

from webapp.imports import formats
from webapp.imports.formats import fio_text
from webapp.imports.formats.fio_text_output import amount
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.measurement import Measurement
from webapp.imports.values import ImportRefused
from webapp.results.reading.doubts import BESIDE_JOBS, CONTRADICTION, JOB_ERROR
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE
MIB = 2**20
HEAD = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=8\n"
ENTRY = "a: (groupid=0, jobs=1): err= 0: pid=7: Mon Jan  1 00:00:10 2024\n"
FLOW = "  read: IOPS=2500, BW=10.2MiB/s (10.7MB/s)(97.7MiB/10000msec)\n"
ISSUED = "     issued rwts: total=25000,0,0,0 short=0,0,0,0 dropped=0,0,0,0\n"


def one(of: str) -> Measurement:
    (measured,) = fio_text.parse(of)
    return measured


def test_the_values_of_a_group() -> None:
    (measured,) = parsed("fio-text/3.33-group.txt")
    assert (measured.tool_version, measured.name, measured.direction) == ("3.33", "reads", READ)
    assert measured.factors == {
        "pattern": "randread", "block_size": 4096, "ioengine": "libaio", "iodepth": 8, "numjobs": 2,
    }  # fmt: skip
    assert (measured.ios, measured.runtime_ms) == (11_807, 1001)
    assert measured.iops == pytest.approx(11_807 / 1.001)  # printed as 11.8k
    assert measured.bytes_per_s == pytest.approx(46.1 * MIB)
    assert measured.bytes_per_s_step == pytest.approx(0.1 * MIB)
    latency = measured.latency
    assert (latency.kind, latency.min_ns, latency.mean_ns, latency.max_ns) == ("clat", 3e3, 1_183_030, 29_891e3)
    assert latency.step_ns == pytest.approx(10)
    assert latency.percentile_step_ns == 1000
    assert (latency.percentiles[1.0], latency.percentiles[50.0], latency.percentiles[99.99]) == (343e3, 529e3, 28_705e3)
    assert measured.metrics["slat_mean_ns"] == pytest.approx(166_200)
    assert measured.metrics["lat_mean_ns"] == pytest.approx(1_349_230)
    assert measured.metrics["usr_cpu_percent"] == pytest.approx(2 * 0.95)  # of two processes


def test_fio_2_with_different_block_sizes() -> None:
    found = parsed("fio-text/2.1-group.txt")
    read, write = only(found, READ), only(found, WRITE)
    assert read.tool_version == "2.1.11"
    assert read.factors == write.factors
    assert (read.factors["block_size"], read.factors["write_block_size"], read.factors["numjobs"]) == (4096, 8192, 2)
    for measured, size in ((read, 4096), (write, 8192)):  # so KB is 1,024 bytes
        assert measured.bytes_per_s == pytest.approx((measured.iops or 0) * size, rel=0.02)


def test_jobs_of_a_group_that_ran_together_are_doubtful() -> None:
    small, _, large = parsed("fio-text/3.33-beside.txt")
    assert (small.other[BESIDE_JOBS], large.other[BESIDE_JOBS]) == ("large", "small")


def test_a_sum_of_different_sections_has_no_options() -> None:
    for measured in parsed("fio-text/3.33-merged.txt"):
        assert measured.factors == {}
        assert any("small, large" in note for note in measured.notes)


def test_of_status_interval_the_last_output_counts() -> None:
    (measured,) = parsed("fio-text/3.33-status-interval.txt")  # of two jobs, without group_reporting
    assert (measured.factors["numjobs"], measured.repeat) == (2, 1)
    entries = text("fio-text/3.33-status-interval.txt").split("(groupid=0, jobs=1)")[-2:]
    printed = [line for entry in entries for line in entry.split("\n") if "issued rwts" in line]
    assert measured.ios == sum(int(line.split("total=0,")[1].split(",")[0]) for line in printed)


def test_an_output_that_is_cut_off_is_that_of_the_interval_before() -> None:
    whole = text("fio-text/3.33-status-interval.txt")
    last_entry = whole.rindex("each: (groupid=0")
    (before,) = fio_text.parse(whole[: whole.rindex("each: (groupid=0", 0, last_entry)])
    (cut,) = fio_text.parse(whole[:last_entry])
    assert cut.ios == before.ios


def test_a_text_with_prompts_marks_and_colours() -> None:
    found = formats.parse(text("fio-text/3.33-pasted.txt"))
    assert found.format == "fio-text"
    first, second = found.measured
    expected = parsed("fio-text/3.33-group.txt")[0]
    assert (first.iops, first.latency, first.tool_version) == (expected.iops, expected.latency, "3.33")
    assert first.factors["direct"] is True  # of the command
    assert (second.iops, second.factors) == (18_000, {})


def test_options_of_a_command_of_another_job_are_not_used() -> None:
    for command in ("fio --name=b --rw=randread --bs=4k", "fio --name=a --rw=read --bs=4k", "fio --name=a job.fio"):
        assert "direct" not in one(f"$ {command} --direct=1\n" + HEAD + ENTRY + FLOW + ISSUED).factors


@pytest.mark.parametrize(
    ("printed", "value", "step"),
    [
        ("97.7MiB", 97.7 * MIB, 0.1 * MIB),
        ("102MB", 102e6, 1e6),
        ("25.1k", 25_100, 100),
        ("25.0k", 25_000, 1000),  # 25.96 before fio 3.26
        ("1053Mibit", 1053 * MIB / 8, MIB / 8),
    ],
)
def test_amounts(printed: str, value: float, step: float) -> None:
    assert float(amount(printed)) == pytest.approx(value)
    assert amount(printed).step == pytest.approx(step)


def test_amounts_of_fio_before_2_17() -> None:
    """lib/num2str.c: without T in its list of prefixes, and with a rest instead of tenths."""
    assert float(amount("24035KB", old=True)) == 24_035 * 1024
    assert amount("1.2PB", old=True) == pytest.approx(1.2 * 2**40)
    assert amount("1234.5KB", old=True).step == 1024


def test_without_counts_the_printed_digits_count() -> None:
    measured = one(HEAD + ENTRY + FLOW.replace("2500", "25.1k").replace("10.2MiB", "98.0MiB"))
    assert (measured.ios, measured.iops, measured.iops_step) == (None, 25_100, 100)


def test_counts_that_contradict_the_iops_are_a_doubt() -> None:
    measured = one(HEAD + ENTRY + FLOW + ISSUED.replace("25000", "99999"))
    assert measured.iops == 2500
    assert measured.other[CONTRADICTION]


def test_an_error_of_the_job_is_a_doubt() -> None:
    failed = ENTRY.replace("err= 0", "err= 5 (file:io_u.c:1834, func=io_u error, error=Input/output error)")
    assert "Input/output error" in one(HEAD + failed + FLOW + ISSUED).other[JOB_ERROR]
    assert JOB_ERROR not in one(HEAD + ENTRY + FLOW + ISSUED).other


def test_a_block_size_that_contradicts_the_rates_is_left_out() -> None:
    assert one(HEAD.replace("4096B", "64.0KiB") + ENTRY + FLOW + ISSUED).factors == {}


def test_runs_in_one_file_are_repeats() -> None:
    first, second = fio_text.parse(
        2 * (HEAD + "fio-3.28\n" + ENTRY + FLOW + ISSUED + "Run status group 0 (all jobs):\n")
    )
    assert [first.repeat, second.repeat] == [1, 2]
    assert BESIDE_JOBS not in second.other


def test_results_without_options_are_no_repeats() -> None:
    """They may be of different tests, such as of other block sizes."""
    found = fio_text.parse(FLOW + "with a larger queue depth:\n" + FLOW.replace("2500", "4000"))
    assert [(one.repeat, one.other) for one in found] == [
        (1, {"place in the text": "line 1"}), (1, {"place in the text": "line 3"}),
    ]  # fmt: skip


def test_the_sum_of_a_group_alone() -> None:
    new = (
        "   READ: bw=97.7MiB/s (102MB/s), 97.7MiB/s-97.7MiB/s (102MB/s-102MB/s), io=977MiB (1024MB), run=9-10000msec\n"
    )
    old = "  WRITE: io=73624KB, aggrb=73403KB/s, minb=73403KB/s, maxb=73403KB/s, mint=1003msec, maxt=1004msec\n"
    read, write = fio_text.parse("Run status group 0 (all jobs):\n" + new + old)
    assert (read.direction, read.bytes_per_s, read.runtime_ms, read.iops) == (READ, 97.7 * MIB, 10_000, None)
    assert (write.direction, write.bytes_per_s, write.runtime_ms) == (WRITE, 73_403 * 1024, 1004)
    assert one(HEAD + ENTRY + FLOW + "Run status group 0 (all jobs):\n" + new).iops == 2500  # only if it is alone


def test_text_beside_json_is_the_same_result() -> None:
    """--output-format=normal,json."""
    json = text("fio-json/3.33-group.json")
    (measured,) = formats.parse(json)[1][:1]
    printed = ENTRY.replace("a:", f"{measured.name}:") + FLOW.replace("10000msec", f"{measured.runtime_ms}msec")
    printed = printed.replace("read:", f"{measured.direction}:")
    assert len(formats.parse(printed + json).measured) == len(formats.parse(json).measured)
    assert len(formats.parse(HEAD + ENTRY + FLOW + json).measured) == len(formats.parse(json).measured) + 1


def test_a_text_without_results_is_refused_with_the_reason() -> None:
    with pytest.raises(ImportRefused, match="before its results"):
        formats.parse(HEAD + "fio-3.28\nStarting 1 process\nJobs: 1 (f=1): [r(1)][50.0%][r=1MiB/s][eta 00m:01s]\n")
    with pytest.raises(ImportRefused, match="without I/O"):
        formats.parse(ENTRY.replace("err= 0", "err=22 (file:x.c:1, func=io, error=Invalid argument)"))
