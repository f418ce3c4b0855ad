import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.document import Order, export_plan, import_plan
from webapp.plans.expand import expand
from webapp.plans.jobfile.lines import JobFileError
from webapp.plans.jobfile.reader import MAX_BYTES, read_job_file
from webapp.plans.tests.helpers import device, directory
from worker.recipes.fio.options import ALLOWED

FULL = """; a comment
[global]
ioengine=io_uring   # another
direct=1
size=64m
runtime=30s
time_based
filename=/mnt/test/file
norandommap

[random read]
rw = randread
bs=4k
iodepth=32

[mixed]
stonewall
rw=randrw
rwmixread=70
bssplit=4k/60:64K/40
numjobs=4
refill_buffers
"""


def refused(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(JobFileError) as caught:
        read_job_file(text)
    assert caught.value.code == "job_file_refused"
    return [(problem.line, problem.option, problem.message) for problem in caught.value.problems]


def test_each_stonewalled_job_becomes_a_part_with_the_global_options() -> None:
    plan = read_job_file(FULL)
    assert (plan.title, plan.order) == ("fio job random read", Order.LISTED)
    assert [part.name for part in plan.parts] == ["random read", "mixed"]
    shared = {"ioengine": "io_uring", "direct": "on", "size": "64M", "runtime": "30s"}
    assert plan.parts[0].factors == shared | {"pattern": "randread", "block_size": "4k", "iodepth": "32"}
    assert plan.parts[1].factors == shared | {
        "pattern": "randrw", "read_percent": "70", "block_split": "4k/60:64k/40", "numjobs": "4",
        "buffers": "refilled",
    }  # fmt: skip
    assert "- `filename=/mnt/test/file` is left out" in plan.note  # of both jobs
    assert "- random read" not in plan.note


def test_the_plan_can_run() -> None:
    made = expand(read_job_file(FULL), [directory()], seed=1)
    assert made.problems == ()
    assert len(made.trials) == 6
    assert made.trials[0].workload.time_s == 30


def test_what_the_file_leaves_open_is_as_in_fio() -> None:
    plan = read_job_file("[a]\nsize=1m\n")
    assert plan.parts[0].factors == {
        "pattern": "read", "ioengine": "psync", "direct": "off", "size": "1M", "amount": "1M", "fadvise_hint": "1",
    }  # fmt: skip


def test_sizes_are_shared_out_to_files_and_amounts_added_up_over_jobs() -> None:
    plan = read_job_file("[a]\nrw=randread\nsize=8m\nnrfiles=4\nnumjobs=3\nio_size=1g\n")
    factors = plan.parts[0].factors
    assert (factors["size"], factors["files"], factors["amount"]) == ("6M", "4", "3G")  # each job has its own files


def test_k_is_1024() -> None:
    for text in ("bs=4k", "bs=4K", "bs=4ki", "bs=4096", "bs=0x1000", "blocksize=4kb"):
        assert read_job_file(f"[a]\n{text}\nsize=1m").parts[0].factors["block_size"] == "4k"


def test_a_job_overrides_global_and_a_later_global_adds() -> None:
    text = "[global]\nsize=1m\nbs=4k\n[a]\nbs=8k\n[global]\ndirect=1\nstonewall\n[b]\nrw=write"
    first, second = read_job_file(text).parts
    assert (first.factors["block_size"], first.factors["direct"]) == ("8k", "off")
    assert (second.factors["block_size"], second.factors["direct"], second.factors["pattern"]) == ("4k", "on", "write")


def test_equal_names_are_numbered() -> None:
    assert [p.name for p in read_job_file("[a]\nsize=1m\n[a]\nstonewall\nsize=1m").parts] == ["a", "a 2"]


def test_it_says_where_fio_would_do_otherwise() -> None:
    note = read_job_file("[a]\nrw=randwrite\nsize=1m\nruntime=3\nnumjobs=2").note
    for words in ("without `time_based`", "visit every block once", "allocate the space", "files of their own"):
        assert words in note


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("exec_prerun=rm -rf /", "is not supported by Sweetspot"),
        ("exec_postrun=id", "is not supported"),
        ("ioengine=external:/tmp/x.so", "'external:/tmp/x.so' is not one of io_uring, libaio, psync"),
        ("mem=mmap:/etc/passwd", "is not supported"),
        ("kb_base=1023", "neither 1000 nor 1024"),
        ("bs=${BS}", "value of the variable `BS`"),
        ("numjobs=$ncpus", "value of the variable `ncpus`"),
        ("include other.fio", "needs the file `other.fio`"),
        ("include=other.fio", "needs the file `other.fio`"),
        ("bs=4k,8k,16k", "separate value for trims"),
        ("rw=erase", "is not one of"),
        ("iodepth=99999", "outside 1 to 4096"),
        ("size=1e3", "is not a size"),
        ("size=1.5g", "is not a size"),
        ("size=" + "9" * 5000, "is refused"),
        ("io_size=2m\nruntime=3", "fio ends at the first"),
        ("nrfiles=1000", "less than a block"),
        ("ramp_time=2", "needs a runtime"),
        ("zero_buffers\nrefill_buffers", "contradicts `zero_buffers`"),
        ("thp=1", "is not supported by Sweetspot: huge pages"),
        ("read_iolog=/etc/x", "it reads a file"),
        ("filename=/dev/a:/dev/b", "give each device a job of its own"),
        ("rw=write\nverify=md5\ndo_verify=0", "is read back"),
        ("startdelay=5-10", "random delay"),
        ("size=50%\nloops=2k", "are at most 1000"),
    ],
)
def test_it_names_the_line_and_the_option_that_it_refuses(option: str, words: str) -> None:
    problems = refused(f"[job]\nsize=1m\n{option}\n")
    assert any(words in message for _, _, message in problems), problems
    assert {line for line, _, _ in problems} <= {2, 3, 4, 5}


def test_only_the_missing_file_is_named_if_the_size_may_be_in_it() -> None:
    assert [option for _, option, _ in refused("[global]\ninclude other.fio\n[a]\nrw=read\n")] == ["include"]


def test_it_names_everything_at_once() -> None:
    problems = refused("[a]\nsize=1m\nfoo=1\nbar\nbs=0\n")
    assert [(line, option) for line, option, _ in problems] == [(3, "foo"), (4, "bar"), (5, "bs")]


def test_a_wrong_global_line_is_named_once() -> None:
    assert len(refused("[global]\nfoo=1\nsize=1m\n[a]\n[b]\nstonewall\n")) == 1


def test_lines_before_the_first_section_are_one_problem() -> None:
    found = [
        line for line, _, words in refused("title: A\nrepeats: 2\nparts:\n") if "before the first section" in words
    ]
    assert found == [1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no job in this file"),
        ("[global]\nsize=1m", "no job in this file"),
        ("size=1m\n[a]\n", "before the first section"),
        ("[a]\nrw=read\n", "neither a size nor a file"),
        ("".join(f"[j{n}]\nsize=1m\nstonewall\n" for n in range(51)), "51 jobs exceed the maximum of 50"),
        ("#" * (MAX_BYTES + 1), "over the limit of 256 KiB"),
    ],
)
def test_it_says_why_a_file_is_no_plan(text: str, words: str) -> None:
    assert words in refused(text)[0][2]


@given(st.text(max_size=300))
def test_any_text_is_a_plan_or_refused(text: str) -> None:
    with contextlib.suppress(JobFileError):
        read_job_file(text)


_lines = st.one_of(
    st.builds(
        "{}={}".format,
        st.sampled_from(sorted(ALLOWED)),
        st.sampled_from(
            ["1", "0", "4k", "8m", "32", "read", "randrw", "psync", "io_uring", "4k/50:8k/50", "none", "30s", ""]
        )
        | st.text(max_size=12),
    ),
    st.sampled_from(["[a]", "[b]", "[global]", "stonewall", "size=1m", "time_based", "; c"]),
)


@given(st.lists(_lines, max_size=25).map("\n".join))
def test_what_is_taken_can_be_expanded_and_exported(text: str) -> None:
    try:
        plan = read_job_file("[first]\n" + text)
    except JobFileError:
        return
    assert import_plan(export_plan(plan)) == plan
    expand(plan, [device(), directory()], seed=1)
