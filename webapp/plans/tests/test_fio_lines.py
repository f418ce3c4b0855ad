"""Option lines of practitioners' fio job files: each is accepted with fio's meaning, or refused with a reason."""

import subprocess

import msgspec
import pytest

from webapp.plans.expand import expand
from webapp.plans.jobfile.lines import JobFileError
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.tests.fio_lines import READ, TAKEN
from webapp.plans.tests.helpers import GIB, device, directory
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.recipes import render

REFUSED = [
    ("exec_prerun=echo 3 > /proc/sys/vm/drop_caches", "runs a program"),
    ("exec_postrun=sync", "runs a program"),
    ("read_iolog=trace.log", "reads a file"),
    ("replay_redirect=/dev/sdb", "cannot be replayed"),
    ("opendir=/home", "reads a file"),
    ("verify_state_load=1", "reads a file"),
    ("buffer_pattern='/etc/shadow'", "write it like `0xdeadbeef`"),
    ("mem=mmaphuge:/mnt/huge/x", "default memory"),
    ("allow_mounted_write=1", "guard decides"),
    ("cgroup=fast", "limits of fio's processes"),
    ("uid=1000", "limits of fio's processes"),
    ("flow=8", "the streams of a trial run freely"),
    ("fill_device=1", "until the device is full"),
    ("file_append=1", "past the end"),
    ("rate_min=10m", "a slow drive is a result"),
    ("ratemin=10m", "a slow drive is a result"),
    ("continue_on_error=all", "an I/O error ends the trial"),
    ("zonemode=zbd", "zoned drives are not supported"),
    ("ioscheduler=none", "Use the factor `scheduler`"),
    ("steadystate=iops:1%", "a stop rule of the plan"),
    ("bs_unaligned", "multiples of the smallest block"),
    ("ioengine=posixaio", "not one of"),
    ("ioengine=null", "not one of"),
    ("sg_write_mode=verify", "the plain commands READ and WRITE"),
    ("readfua=1", "the plain commands READ and WRITE"),
    ("thp=1", "huge pages"),
    ("rbdname=image", "an I/O engine that Sweetspot does not run"),
    ("io_engine=libaio", "Did you mean `ioengine`?"),
    ("fdp_pli=4", "is not an option of fio 3.33. Remove it."),
    ("rw=read:-4k", "would read blocks twice"),
    ("numa_cpu_nodes=0-1", "several nodes"),
    ("cmdprio_percentage=10", "single I/Os"),
]


def job_of(job: str, line: str) -> str:
    return f"[a]\n{job}{line}\n"


@pytest.mark.parametrize(("job", "line", "factors"), TAKEN, ids=[line for _, line, _ in TAKEN])
def test_a_plan_takes(job: str, line: str, factors: dict[str, str]) -> None:
    made = read_job_file(job_of(job, line))
    assert factors.items() <= made.parts[0].factors.items()
    if line.startswith(("write_", "log_", "per_job", "disk_util", "unified")):
        assert f"`{line.partition('=')[0]}` ignored" in made.note
    target = directory() if "files" in factors else device()
    first = expand(made, [target], seed=1)
    assert first.problems == ()
    again = expand(read_job_file(write_job_file(made)), [target], seed=1)
    assert [trial.workload for trial in again.trials] == [trial.workload for trial in first.trials]


@pytest.mark.parametrize(("line", "why"), REFUSED, ids=[line for line, _ in REFUSED])
def test_a_plan_refuses(line: str, why: str) -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file(job_of("size=1g\n", line))
    assert why in caught.value.problems[0].message


def test_as_in_fio_a_split_overrides_a_range_of_sizes() -> None:
    made = read_job_file(job_of(READ, "bssplit=4k/50:64k/50\nbsrange=4k-1m"))
    assert made.parts[0].factors["block_split"] == "4k/50:64k/50"
    assert "block_range" not in made.parts[0].factors
    assert "`bsrange` without effect" in made.note


def test_the_note_says_that_older_data_is_not_verified() -> None:
    made = read_job_file(job_of(READ, "verify=md5\nverify_fatal=1"))
    assert "`verify`, `verify_fatal` ignored" in made.note
    assert "ignored" not in read_job_file(job_of(READ, "verify=0")).note


def test_the_options_of_a_refused_engine_are_not_problems_of_their_own() -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file(job_of("pool=rbd\nspdk_json_conf=/config\nflow=8\nsize=1g\n", "ioengine=rbd"))
    assert [problem.option for problem in caught.value.problems] == ["flow", "ioengine"]


def test_fio_parses_the_jobs_of_all_these_plans() -> None:
    target = TargetRef(id="t", kind=TargetKind.BLOCK, path="/dev/null", stable_id="s")
    texts = []
    for job, line, factors in TAKEN:
        if "files" in factors:
            continue
        made = expand(read_job_file(job_of(job, line)), [device(size_bytes=100 * GIB)], seed=1)
        texts.append(render(Stream(number=0, target=target, workload=made.trials[0].workload)).job_text)
    done = subprocess.run(
        ("fio", "--parse-only", "-"), input="\n".join(texts), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guard_knows_of_every_line_that_writes() -> None:
    for job, line, factors in TAKEN:
        target = directory() if "files" in factors else device()
        work = expand(read_job_file(job_of(job, line)), [target], seed=1).trials[0].workload
        reads_only = msgspec.to_builtins(work)["pattern"] in ("read", "randread")
        assert work.writes is not reads_only, line
