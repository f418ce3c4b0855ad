"""Jobs that fio runs at the same time become streams; included files, variables, and what an import says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.document import PlanDocument
from webapp.plans.expand import expand
from webapp.plans.grids import document_problems, part_grid
from webapp.plans.jobfile.lines import MAX_BYTES, MAX_FILES, JobFileError
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.tests.helpers import directory
from worker.recipes.fio.options import ALLOWED, DEFAULTS

TWO = """[global]
ioengine=libaio
direct=1
runtime=10
time_based
bs=8k
size=1g
[data]
rw=randread
iodepth=16
[log]
rw=write
iodepth=1
"""


def refused(text: str) -> list[tuple[int, str]]:
    with pytest.raises(JobFileError) as caught:
        read_job_file(text)
    return [(problem.line, problem.message) for problem in caught.value.problems]


def streams_of(plan: PlanDocument) -> list[list[str]]:
    return [[stream.name for stream in part.streams] for part in plan.parts]


def points(plan: PlanDocument) -> list[tuple[str, list[dict[str, object]]]]:
    """The points of each part, without the names of parts that an export may change."""
    return [(",".join(part.on), [dict(point) for point in part_grid(plan, part).points]) for part in plan.parts]


def test_jobs_at_the_same_time_are_streams_of_one_part() -> None:
    plan = read_job_file(TWO)
    (part,) = plan.parts
    assert part.name == "data + log"
    assert part.factors == {
        "ioengine": "libaio", "direct": "on", "runtime": "10s", "block_size": "8k", "size": "1G",
    }  # fmt: skip
    assert {stream.name: stream.factors for stream in part.streams} == {
        "data": {"pattern": "randread", "iodepth": "16"},
        "log": {"pattern": "write", "iodepth": "1", "prefill": "off"},
    }
    made = expand(plan, [directory()], seed=1)
    assert made.problems == ()
    assert [(stream.name, stream.workload.time_s) for stream in made.trials[0].streams] == [("data", 10), ("log", 10)]


def test_stonewall_begins_the_next_part() -> None:
    text = "[global]\nsize=1m\n[a]\n[b]\nrw=write\n[c]\nstonewall\n[d]\nstonewall=0\nrw=write\n[e]\nwait_for_previous\n"
    assert streams_of(read_job_file(text)) == [["a", "b"], ["c", "d"], []]


def test_a_job_that_waits_for_all_before_it_begins_the_next_part() -> None:
    assert streams_of(read_job_file("[global]\nsize=1m\n[a]\n[b]\nwait_for=a\n[c]\nrw=write\n")) == [[], ["b", "c"]]
    (line, words), = refused("[global]\nsize=1m\n[a]\n[b]\n[c]\nwait_for=a\n")  # fmt: skip
    assert (line, "while [b] may still run" in words) == (6, True)
    assert "not before it" in refused("[a]\nsize=1m\nwait_for=b\n[b]\nsize=1m\n")[0][1]


def test_names_of_streams_are_valid_and_different() -> None:
    text = "[global]\nsize=1m\n[4k Reads]\n[4K reads]\n[alone]\n[" + "x" * 30 + "]\n[" + "x" * 31 + "]\n"
    assert streams_of(read_job_file(text)) == [
        ["job-4k-reads", "job-4k-reads-2", "job-alone", "x" * 20, "x" * 18 + "-2"]
    ]
    assert document_problems(read_job_file(text)) == ()


def test_jobs_on_devices_of_their_own_use_a_target_each() -> None:
    each = read_job_file("[global]\nruntime=1\n[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sdb\nbs=8k\n")
    assert each.parts[0].factors["streams_on"] == "each"
    same = read_job_file("[global]\nruntime=1\nfilename=/dev/sda\n[a]\n[b]\nbs=8k\n")
    assert "streams_on" not in same.parts[0].factors
    mixed = "[global]\nruntime=1\n[a]\nfilename=/dev/sda\n[b]\nfilename=/dev/sda\n[c]\nfilename=/dev/sdb\n"
    assert "share one target, or have one each" in refused(mixed)[0][1]


def test_a_shared_file_is_a_difference() -> None:
    shared = read_job_file(TWO.replace("[global]", "[global]\nfilename=/data/file"))
    assert "in a directory, each stream has files of its own" in shared.note
    assert "on a device, streams share its blocks" in read_job_file(TWO).note


def test_many_equal_jobs_are_one_job_with_more_processes_or_targets() -> None:
    jobs = "".join(f"[j{n}]\n" for n in range(12))
    own = read_job_file("[global]\nrw=randread\nsize=1m\nnumjobs=2\n" + jobs).parts[0]
    assert (own.factors["numjobs"], own.factors["size"], own.factors["amount"]) == ("24", "24M", "24M")
    shared = read_job_file("[global]\nsize=1m\nfilename=x\n" + jobs).parts[0]
    assert (shared.factors["numjobs"], shared.factors["size"]) == ("12", "1M")
    assert (shared.factors["offset_increment"], shared.factors["amount"]) == ("0", "12M")
    disks = "".join(f"[j{n}]\nfilename=/dev/sd{n}\n" for n in range(12))
    assert read_job_file("[global]\nruntime=9\n" + disks).parts[0].factors["at_once"] == "12"
    different = "".join(f"[j{n}]\nbs={n + 1}k\n" for n in range(9))
    assert (
        "9 jobs would run at the same time, but a trial has at most 8 streams"
        in refused("[global]\nsize=1m\n" + different)[0][1]
    )


def test_delays_and_ends_of_streams() -> None:
    """A common delay is a pause before the trial; different ones cannot be measured."""
    assert read_job_file(TWO.replace("[data]", "startdelay=5\n[data]")).parts[0].factors["before"] == "pause 5s"
    assert "start together" in refused(TWO + "startdelay=5\n")[0][1]
    assert "the same end" in read_job_file(TWO + "exitall\n").note
    assert "each stream ends by itself" in refused(TWO + "exitall\nruntime=5\n")[0][1]


def test_groups_of_reports_are_a_difference() -> None:
    assert "`new_group` ignored: each stream is reported by itself" in read_job_file(TWO + "new_group\n").note


def test_flow_is_refused_with_what_to_do() -> None:
    assert "Use `rate_iops` in each job" in refused(TWO + "flow=2\n")[0][1]
    assert read_job_file(TWO + "flow=0\n") == read_job_file(TWO)


def test_variables_get_the_values_given_with_the_file() -> None:
    text = "[a]\nrw=randread\nsize=${SIZE}\nbs=$BS\nnumjobs=$ncpus*2\nfilename=${DEV}\n"
    with pytest.raises(JobFileError) as caught:
        read_job_file(text)
    assert caught.value.variables == ("SIZE", "BS", "ncpus")  # the target is chosen when a run starts
    assert [problem.line for problem in caught.value.problems] == [3, 4, 5]
    factors = read_job_file(text, variables={"SIZE": "1g", "BS": "8k", "ncpus": "4"}).parts[0].factors
    assert (factors["size"], factors["block_size"], factors["numjobs"]) == ("1G", "8k", "8")


@pytest.mark.parametrize(
    ("value", "expected"), [("2+3", "5"), ("7/2", "3"), ("$ncpus*-1", ""), ("2**9", ""), ("x", "")]
)
def test_calculations_are_those_of_whole_numbers(value: str, expected: str) -> None:
    text = f"[a]\nsize=1m\nnumjobs=$ncpus*0+{value}\n" if expected else f"[a]\nsize=1m\nnumjobs=$ncpus{value}\n"
    if expected:
        assert read_job_file(text, variables={"ncpus": "4"}).parts[0].factors["numjobs"] == expected
    else:
        with pytest.raises(JobFileError):
            read_job_file(text, variables={"ncpus": "4"})


def test_included_files_are_read_in_their_place() -> None:
    files = {"common.fio": "size=1m ; as in fio\ninclude more.fio\n", "more.fio": "bs=8k\n"}
    text = "[global]\ninclude lib/common.fio\n[a]\n[b]\nstonewall\nbs=16k\n"
    first, second = read_job_file(text, files=files).parts
    assert (first.factors["size"], first.factors["block_size"], second.factors["block_size"]) == ("1M", "8k", "16k")
    with pytest.raises(JobFileError) as caught:
        read_job_file(text, files=files | {"more.fio": "\nbs=-3\n[c]\n"})
    assert "line 3 begins a section" in caught.value.message
    assert "(more.fio, line 2)" in caught.value.message


@pytest.mark.parametrize(
    "files",
    [
        {"a": "include a\n"},  # itself
        {"a": "x=1\n" * 30_000 + "include b\n", "b": "y=1\n" * 40_000},
        {f"f{n}": "" for n in range(MAX_FILES + 1)},
        {},
    ],
)
def test_included_files_are_bounded(files: dict[str, str]) -> None:
    assert all(len(text) < MAX_BYTES for text in files.values())
    with pytest.raises(JobFileError):
        read_job_file("[j]\nsize=1m\ninclude a\n", files=files)


def test_an_option_that_needs_another_has_no_effect_without_it() -> None:
    plan = read_job_file("[a]\nrw=write\nsize=1m\nverify_fatal=1\nverify_backlog_batch=2\nthinktime_blocks=4\n")
    assert expand(plan, [directory()], seed=1).problems == ()
    for name in ("verify_fatal", "verify_backlog_batch", "thinktime_blocks"):
        assert f"`{name}` without effect" in plan.note


def test_a_default_that_is_written_out_is_no_difference() -> None:
    assert "allocate the space" not in read_job_file("[a]\nrw=write\nsize=1m\nfallocate=none\n").note
    assert "gtod_reduce" not in read_job_file("[a]\nsize=1m\ngtod_reduce=0\n").note
    assert "fio would report no such values" in read_job_file("[a]\nsize=1m\ngtod_reduce=1\n").note


def test_a_section_whose_name_begins_with_global_is_for_all() -> None:
    assert read_job_file("[global-defaults]\nsize=1m\n[a]\n").parts[0].factors["size"] == "1M"


def test_descriptions_and_names_are_kept() -> None:
    plan = read_job_file("[a]\nname=better\ndescription=What it does\nsize=1m\n")
    assert plan.parts[0].name == "better"
    assert "better: What it does" in plan.note


_SAMPLES = {
    "rw": ["read", "randwrite", "randrw:4", "write:8k", "read:-16k"],
    "bs": ["8k", "4k,16k", "2300"],
    "bssplit": ["4k/60:8k/40"],
    "bsrange": ["4k-64k"],
    "verify": ["crc32c", "0"],
    "buffer_pattern": ["0xdeadbeef"],
    "random_distribution": ["zipf:1.2"],
    "ioengine": ["libaio", "psync", "io_uring", "mmap"],
    "sync": ["dsync"],
    "filename": ["/dev/sdx", "/data/a:/data/b", "x"],
    "cpus_allowed": ["0-1"],
    "prioclass": ["2"],
    "numa_mem_policy": ["bind:0", "interleave:0-1"],
    "loops": ["2"],
    "size": ["64m", "100%", "20%"],
    "offset": ["1m", "50%"],
    "offset_increment": ["1m", "20%"],
    "io_size": ["1m"],
    "percentage_random": ["80,20"],
    "wait_for": ["first"],
    "description": ["text"],
    "name": ["other"],
    "kb_base": ["1000"],
    "file_service_type": ["random"],
    "rate_process": ["poisson"],
    "sync_file_range": ["write:8"],
    "fadvise_hint": ["0", "1", "random"],
}  # fmt: skip
_names = sorted({option.name for option in ALLOWED.values()} | {*DEFAULTS})
_line = st.sampled_from(_names).flatmap(
    lambda name: st.tuples(st.just(name), st.sampled_from(_SAMPLES.get(name, ["1", "0", "2"])))
)
_jobs = st.lists(st.lists(_line, max_size=6, unique_by=lambda one: one[0]), min_size=1, max_size=3)


def text_of(jobs: list[list[tuple[str, str]]]) -> str:
    sections = [
        "\n".join([f"[job{number}]", *(f"{name}={value}" for name, value in lines)])
        for number, lines in enumerate(jobs)
    ]
    return "[global]\nsize=64m\n" + "\n".join(sections) + "\n"


@given(_jobs)
def test_an_imported_plan_comes_back_from_its_export(jobs: list[list[tuple[str, str]]]) -> None:
    try:
        plan = read_job_file(text_of(jobs))
    except JobFileError:
        return
    if document_problems(plan):
        return
    back = read_job_file(write_job_file(plan))
    assert points(back) == points(plan)
    assert (back.title, back.note, back.order, back.repeats) == (plan.title, plan.note, plan.order, plan.repeats)
    assert streams_of(back) == streams_of(plan)
    assert read_job_file(write_job_file(back)) == back


@given(_line, st.sampled_from(["read", "randwrite", "randrw"]), st.sampled_from(["psync", "libaio"]))
def test_every_option_is_in_the_plan_or_a_difference_or_refused(line: tuple[str, str], rw: str, engine: str) -> None:
    name, value = line
    job = f"[global]\nrw={rw}\nioengine={engine}\nsize=64m\nnumjobs=2\n[a]\n"
    text = f"{job}{name}={value}\n[b]\nstonewall\n"
    try:
        plan = read_job_file(text)
    except JobFileError as refusal:
        named = name in refusal.message
    else:
        named = f"`{name}" in plan.note or f"a: {value}" in plan.note or plan.parts[0] != read_job_file(job).parts[0]
    if named:
        return
    assert value in AS_ALWAYS.get(name, ()) or DEFAULTS.get(name) == value, text


# Values with which a job does what every trial does, or what fio does without the option.
AS_ALWAYS = {
    **dict.fromkeys(
        (
            "rate", "rate_iops", "verify", "invalidate", "offset", "offset_increment", "thinktime", "thinktime_spin",
            "thinktime_iotime", "latency_target", "max_latency", "force_async", "fdatasync", "verify_interval",
            "verify_backlog", "verify_backlog_batch", "verify_async", "iodepth_low", "verify_pattern", "blockalign",
            "openfiles", "runtime", "ramp_time", "startdelay", "filesize", "io_size", "refill_buffers", "zero_buffers",
            "loops", "stonewall", "time_based", "group_reporting", "do_verify", "thread", "create_only", "exitall",
            "continue_on_error", "overwrite", "percentage_random", "cpus_allowed",
        ),
        ("0",),
    ),
    **dict.fromkeys(
        ("disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "disable_bw", "gtod_reduce"), ("0",)
    ),
    "norandommap": ("0", "1"),  # sequential jobs have no map
    "stats": ("1",),
    "invalidate": ("1",),
    "scramble_buffers": ("1",),
    "buffered": ("1",),
    "direct": ("0",),
    "numjobs": ("2",),
    "loops": ("1",),
    "stonewall": ("0", "1", "2"),  # of the first job
    "group_reporting": ("1", "2"),
    "do_verify": ("1", "0"),  # without verify
    "size": ("64m",),
    "rw": ("read", "randwrite"),
    "ioengine": ("libaio", "psync"),
    "fadvise_hint": ("1",),
    "time_based": ("0", "1", "2"),  # without runtime
}  # fmt: skip
