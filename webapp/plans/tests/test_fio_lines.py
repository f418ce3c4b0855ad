"""Option lines of practitioners' fio job files: each is accepted with fio's meaning, or refused with a reason."""

import subprocess

import msgspec
import pytest

from webapp.plans.expand import expand
from webapp.plans.jobfile import JobFileError, read_job_file, write_job_file
from webapp.plans.tests.helpers import GIB, device, directory
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.recipes import render

_READ = "rw=randread\nsize=1g\nruntime=10\ntime_based\n"
_WRITE = "rw=randwrite\nsize=1g\nruntime=10\ntime_based\n"
_MIX = "rw=randrw\nsize=1g\nruntime=10\ntime_based\n"
_SEQUENTIAL = "rw=read\nsize=1g\nruntime=10\ntime_based\n"
_AMOUNT = "rw=randwrite\nsize=1g\n"
_QUEUE = "rw=randread\nsize=1g\nruntime=10\nioengine=libaio\ndirect=1\niodepth=32\n"
_URING = "rw=randread\nsize=1g\nruntime=10\nioengine=io_uring\n"

# (job, line, factors that the line sets)
TAKEN: list[tuple[str, str, dict[str, str]]] = [
    ("size=1g\nbs=4k\n", "rw=read:-8k", {"pattern": "read", "reverse": "on"}),
    ("size=1g\nbs=4k\n", "rw=read:-12k", {"reverse": "on", "skip": "4k"}),
    ("size=1g\nbs=4k\n", "rw=read:60k", {"pattern": "read", "skip": "60k"}),
    ("size=1g\n", "rw=randread:8", {"pattern": "randread", "run_length": "8"}),
    ("size=1g\nrw=randread:8\n", "rw_sequencer=identical", {"rw_sequencer": "identical"}),
    ("size=1g\nruntime=9\n", "rw=trim", {"pattern": "trim"}),
    ("size=1g\nruntime=9\n", "rw=randtrim", {"pattern": "randtrim"}),
    ("size=1g\nruntime=9\n", "rw=trimwrite", {"pattern": "trimwrite"}),
    (_MIX, "rwmixread=70", {"read_percent": "70"}),
    (_MIX, "rwmixwrite=30", {"read_percent": "70"}),
    (_MIX, "bs=4k,64k", {"block_size": "4k", "write_block_size": "64k"}),
    (_MIX, "bs=,64k", {"block_size": "4k", "write_block_size": "64k"}),
    (_MIX, "bs=4k,64k,64k", {"block_size": "4k", "write_block_size": "64k"}),
    (_WRITE, "bs=4k,64k", {"block_size": "64k"}),
    (_MIX, "bssplit=4k/60:8k/40,64k/100", {"block_split": "4k/60:8k/40", "write_block_split": "64k/100"}),
    (_MIX, "bsrange=4k-64k", {"block_range": "4k-64k"}),
    (_READ, "random_distribution=zipf:1.2", {"random_distribution": "zipf:1.2"}),
    (_READ, "random_distribution=pareto:0.2", {"random_distribution": "pareto:0.2"}),
    (_READ, "random_distribution=normal:20", {"random_distribution": "normal:20"}),
    (_READ, "random_distribution=zoned:60/10:30/20:10/70", {"random_distribution": "zoned:60/10:30/20:10/70"}),
    (_READ, "random_distribution=zipf", {"random_distribution": "zipf:1.1"}),
    (_READ, "random_distribution=pareto", {"random_distribution": "pareto:0.2"}),
    (_READ, "random_distribution=normal", {"random_distribution": "normal:0"}),
    (_READ, "percentage_random=80", {"percentage_random": "80"}),
    (_READ, "ba=8k", {"blockalign": "8k"}),
    (_READ, "blockalign=64k", {"blockalign": "64k"}),
    (_READ, "file_service_type=random", {"file_service_type": "random"}),
    (_READ, "openfiles=16", {"openfiles": "16"}),
    (_READ, "pre_read=1", {"pre_read": "on"}),
    (_READ, "rate=50m", {"rate": "50M"}),
    (_MIX, "rate=50m,10m", {"rate": "50M", "write_rate": "10M"}),
    (_MIX, "rate=,10m", {"write_rate": "10M"}),
    (_READ, "rate_iops=1000", {"rate_iops": "1000"}),
    (_MIX, "rate_iops=1000,500", {"rate_iops": "1000", "write_rate_iops": "500"}),
    (_READ + "rate_iops=9\n", "rate_process=poisson", {"rate_process": "poisson"}),
    (_READ, "thinktime=1000", {"thinktime": "1ms"}),
    (_READ, "thinktime=5ms", {"thinktime": "5ms"}),
    (_READ + "thinktime=9\n", "thinktime_spin=5", {"thinktime_spin": "5us"}),
    (_READ + "thinktime=9\n", "thinktime_blocks=16", {"thinktime_blocks": "16"}),
    (_READ + "thinktime=9\n", "thinktime_iotime=2s", {"thinktime_iotime": "2s"}),
    (_READ + "thinktime=9\n", "rate_ignore_thinktime=1", {"rate_ignore_thinktime": "on"}),
    (_READ, "latency_target=10ms", {"latency_target": "10ms"}),
    (_READ + "latency_target=9\n", "latency_window=5s", {"latency_window": "5s"}),
    (_READ + "latency_target=9\n", "latency_percentile=99.9", {"latency_percentile": "99.9"}),
    (_READ + "latency_target=9\n", "latency_run=1", {"latency_run": "on"}),
    (_READ, "max_latency=2s", {"max_latency": "2s"}),
    (_QUEUE, "iodepth_batch=8", {"iodepth_batch": "8"}),
    (_QUEUE, "iodepth_batch_submit=8", {"iodepth_batch": "8"}),
    (_QUEUE, "iodepth_batch_complete_min=4", {"iodepth_batch_complete_min": "4"}),
    (_QUEUE, "iodepth_batch_complete=4", {"iodepth_batch_complete_min": "4"}),
    (_QUEUE, "iodepth_batch_complete_max=16", {"iodepth_batch_complete_max": "16"}),
    (_QUEUE, "iodepth_low=16", {"iodepth_low": "16"}),
    (_QUEUE, "io_submit_mode=offload", {"io_submit_mode": "offload"}),
    (_QUEUE, "userspace_reap=1", {"userspace_reap": "on"}),
    (_QUEUE, "serialize_overlap=1", {"serialize_overlap": "on"}),
    (_URING, "force_async=4", {"force_async": "4"}),
    (_WRITE, "fdatasync=1", {"fdatasync": "1"}),
    (_WRITE, "fsync=32", {"fsync_every": "32"}),
    (_WRITE, "end_fsync=1", {"end_fsync": "on"}),
    (_WRITE, "sync=1", {"sync": "sync"}),
    (_WRITE, "sync=dsync", {"sync": "dsync"}),
    (_WRITE, "fsync_on_close=1", {"fsync_on_close": "on"}),
    (_WRITE, "sync_file_range=wait_before,write:8", {"sync_file_range": "wait_before+write:8"}),
    (_WRITE + "refill_buffers\n", "dedupe_percentage=50", {"dedupe_percentage": "50"}),
    (_WRITE + "refill_buffers\ndedupe_percentage=9\n", "dedupe_mode=working_set", {"dedupe_mode": "working_set"}),
    (_WRITE + "refill_buffers\n", "buffer_compress_percentage=70", {"buffer_compress_percentage": "70"}),
    (_WRITE + "refill_buffers\nbuffer_compress_percentage=9\n", "buffer_compress_chunk=4k",
     {"buffer_compress_chunk": "4k"}),
    (_WRITE + "scramble_buffers=0\n", "buffer_pattern=0xdeadbeef", {"buffer_pattern": "0xdeadbeef"}),
    (_AMOUNT, "verify=crc32c", {"verify": "crc32c", "amount": "1G"}),
    (_AMOUNT + "verify=md5\n", "verify_backlog=1024", {"verify_backlog": "1024"}),
    (_AMOUNT + "verify=md5\n", "verify_fatal=1", {"verify_fatal": "on"}),
    (_AMOUNT + "verify=md5\n", "verify_async=2", {"verify_async": "2"}),
    (_AMOUNT + "verify=md5\n", "verify_interval=512", {"verify_interval": "512"}),
    (_AMOUNT + "verify=md5\n", "do_verify=1", {"verify": "md5"}),
    (_AMOUNT + "verify=md5\n", "verify_state_save=0", {"verify": "md5"}),
    (_AMOUNT, "loops=3", {"amount": "3G"}),
    (_READ, "loops=3", {"runtime": "10s"}),
    (_AMOUNT, "loops=0x2", {"amount": "2G"}),
    (_AMOUNT, "io_size=4g", {"amount": "4G"}),
    ("rw=randread\nruntime=9\n", "size=70%", {"size_percent": "70"}),
    (_READ, "offset=1g", {"offset": "1G"}),
    (_READ, "fileoffset=1g", {"offset": "1G"}),
    (_READ + "numjobs=4\n", "offset_increment=1g", {"offset_increment": "1G"}),
    (_SEQUENTIAL, "ioengine=sync", {"ioengine": "sync"}),
    (_SEQUENTIAL, "ioengine=pvsync2", {"ioengine": "pvsync2"}),
    (_SEQUENTIAL + "ioengine=pvsync2\ndirect=1\n", "hipri=1", {"hipri": "on"}),
    (_SEQUENTIAL, "ioengine=mmap", {"ioengine": "mmap"}),
    (_SEQUENTIAL, "ioengine=sg", {"ioengine": "sg"}),
    (_READ, "prio=4", {"ionice": "be/4"}),
    (_READ + "prio=2\n", "prioclass=1", {"ionice": "rt/2"}),
    (_READ, "prioclass=3", {"ionice": "idle"}),
    (_READ, "nice=10", {"nice": "10"}),
    (_READ, "cpus_allowed=0-3,8", {"cpus": "0-3+8"}),
    (_READ, "numa_cpu_nodes=1", {"numa_node": "1"}),
    (_READ, "overwrite=1", {}),
    (_READ, "fallocate=none", {}),
    (_READ, "create_on_open=1", {}),
    (_READ, "unlink=1", {}),
    (_READ, "exitall", {}),
    (_READ, "disable_slat=1", {}),
    (_READ, "clocksource=gettimeofday", {}),
    (_READ, "random_generator=tausworthe64", {}),
    (_READ, "norandommap=0", {"norandommap": "off"}),
    (_READ, "random_generator=lfsr", {"norandommap": "off"}),
    (_AMOUNT, "bs=4k", {"norandommap": "off"}),  # fio's default: every block once
    (_MIX, "percentage_random=80,20", {"percentage_random": "80", "write_percentage_random": "20"}),
    (_MIX, "percentage_random=,20", {"percentage_random": "100", "write_percentage_random": "20"}),
    (_READ, "rate_iops=10k", {"rate_iops": "10240"}),
    (_READ, "rate=0", {"size": "1G"}),
    (_READ, "bs=2300", {"block_size": "2300"}),
    (_READ, "bs=4ki", {"block_size": "4k"}),
    (_READ, "kb_base=1000\nbs=4ki", {"block_size": "4000"}),
    (_READ, "kb_base=1000\nbs=4KiB", {"block_size": "4k"}),
    (_READ, "size=1GiB", {"size": "1000000000"}),
    (_READ, "runtime=1m30s", {"runtime": "90s"}),
    (_READ, "nrfiles=100", {"files": "100", "size": "10737152"}),
    (_READ, "filename=a:b\nnrfiles=8", {"files": "2", "size": "512M"}),
    (_READ, "filesize=1m-3m", {"size": "2M"}),
    (_READ, "bsrange=4k-64k,4k-64k", {"block_range": "4k-64k"}),
    (_READ, "bsrange=512:4096", {"block_range": "512-4k"}),
    (_READ, "bssplit=4k/50:8k/:16k/", {"block_split": "4k/50:8k/25:16k/25"}),
    (_READ, "random_distribution=zoned:60/10:40/", {"random_distribution": "zoned:60/10:40/90"}),
    (_READ, "file_service_type=random:16", {"file_service_type": "random:16"}),
    (_READ, "offset=50%", {"offset_percent": "50"}),
    (_READ + "numjobs=2\n", "offset_increment=25%", {"offset_increment_percent": "25"}),
    ("rw=read\nruntime=9\nnumjobs=4\nsize=20%\n", "offset_increment=20%", {"size_percent": "80"}),
    ("rw=write\nfilename=/dev/sdx\n", "size=100%", {"passes": "1"}),
    ("rw=write\nsize=100%\n", "loops=2", {"passes": "2"}),
    ("rw=read\nsize=1g\nruntime=9\nfilename=/dev/sdx\n", "numjobs=2", {"offset_increment": "0"}),
    (_WRITE, "dedupe_percentage=50", {"buffers": "refilled"}),
    (_WRITE, "buffer_compress_percentage=50", {"buffers": "refilled"}),
    (_WRITE, "buffer_pattern=0xff", {"buffers": "repeated"}),
    (_READ, "ioengine=linuxaio", {"ioengine": "libaio"}),
    (_READ, "invalidate=0", {"invalidate": "off"}),
    (_READ, "invalidate=1", {"fadvise_hint": "1"}),
    (_READ, "fadvise_hint=0", {"direct": "off"}),
    (_READ, "fadvise_hint=random", {"fadvise_hint": "random"}),
    (_READ, "startdelay=1m", {"before": "pause 60s"}),
    (_WRITE, "overwrite=1", {"prefill": "on"}),
    (_AMOUNT, "verify=crc32c-intel", {"verify": "crc32c"}),
    (_AMOUNT, "verify=0", {"amount": "1G"}),
    (_READ, "time_based=0", {"runtime": "10s"}),
    (_READ, "time_based=30", {"runtime": "10s"}),
    (_READ, "group_reporting=0", {"runtime": "10s"}),
    (_READ, "threads=4", {"runtime": "10s"}),
    (_SEQUENTIAL + "ioengine=sg\n", "sg_write_mode=write", {"ioengine": "sg"}),
    (_READ, "zonemode=none", {"runtime": "10s"}),
    (_READ, "cpumask=0x5", {"cpus": "0+2"}),
    (_READ, "gtod_reduce=1", {"runtime": "10s"}),
    (_READ, "verify_dump=1", {"runtime": "10s"}),
    (_READ, "iodepth=32", {"ioengine": "psync"}),
    (_READ, "ioengine=libaio\niodepth=32", {"ioengine": "libaio"}),
    (_READ, "thread", {"runtime": "10s"}),
    (_READ, "write_bw_log=results/bw", {}),
    (_READ, "write_lat_log=/tmp/lat", {}),
    (_READ, "write_iolog=/tmp/trace", {}),
    (_READ, "log_avg_msec=1000", {}),
    (_READ, "log_hist_msec=1000", {}),
    (_READ, "per_job_logs=0", {}),
    (_READ, "disk_util=0", {}),
    (_READ, "unified_rw_reporting=1", {}),
]  # fmt: skip

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
    made = read_job_file(job_of(_READ, "bssplit=4k/50:64k/50\nbsrange=4k-1m"))
    assert made.parts[0].factors["block_split"] == "4k/50:64k/50"
    assert "block_range" not in made.parts[0].factors
    assert "`bsrange` without effect" in made.note


def test_the_note_says_that_older_data_is_not_verified() -> None:
    made = read_job_file(job_of(_READ, "verify=md5\nverify_fatal=1"))
    assert "`verify`, `verify_fatal` ignored" in made.note
    assert "ignored" not in read_job_file(job_of(_READ, "verify=0")).note


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
