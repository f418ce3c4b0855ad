"""Streams with real fio, on files of a scratch directory and on a loop device."""

import json
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worker.contract.fio_options import FioOptions, Verify
from worker.contract.items import Direction, Sample, StreamResult, StreamStarted
from worker.contract.packing import merge, unpack
from worker.contract.workload import (
    MIB,
    FioWorkload,
    IoEngine,
    Pattern,
    SteadyRounds,
    Stream,
    TargetKind,
    TargetRef,
    UringOptions,
)
from worker.engines import capabilities, fio
from worker.engines.base import StreamFailed
from worker.engines.fio import generic_path, prefill, run_stream
from worker.engines.fio.probe import is_scsi_disk, missing_features, polls, version_of
from worker.engines.tests.running import running
from worker.guard.tests import rig
from worker.kernel import counters, sysfs
from worker.kernel.targets import OpenTarget
from worker.process import supervisor
from worker.process.run import Limits, Reason
from worker.process.scope import _marker_of, open_scope
from worker.recipes import render
from worker.recipes.fio import workload_of


class Bench:
    """A scratch directory as a target, and what a stream there reports."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.data = directory / "data"
        self.data.mkdir()
        self.cwd_fd = os.open(self.data, os.O_DIRECTORY)
        self.open_target = OpenTarget(path=".", cwd_fd=self.cwd_fd, device=sysfs.device_under(str(self.data)))
        self.samples: list[Sample] = []
        self.started: list[StreamStarted] = []
        self.cancelled = threading.Event()
        self.not_before = 0.0

    def run(
        self, stream: Stream, open_target: OpenTarget | None = None, *, silence_s: float = 10, total_s: float = 20
    ) -> StreamResult:
        with open_scope(self.state, "stream") as scope:
            scope.not_before = self.not_before
            return run_stream(
                running(
                    stream,
                    open_target or self.open_target,
                    scope,
                    self.cancelled,
                    silence_s=silence_s,
                    total_s=total_s,
                    on_started=self.started.append,
                    on_sample=self.samples.append,
                )
            )

    def prefill(self, stream: Stream) -> list[float]:
        said: list[float] = []
        with open_scope(self.state, "prefill") as scope:
            prefill(running(stream, self.open_target, scope, self.cancelled), said.append)
        return said


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    os.close(made.cwd_fd)


def stream(kind: TargetKind = TargetKind.DIRECTORY, path: str = "/data", **workload: Any) -> Stream:
    given: dict[str, Any] = {"pattern": Pattern.RANDREAD, "size_bytes": 8 * MIB, "runtime_s": 2, "iodepth": 4}
    work = FioWorkload(**(given | workload))
    return Stream(number=3, target=TargetRef(id="t", kind=kind, path=path, stable_id="s"), workload=work)


def assert_samples_add_up(bench: Bench, result: StreamResult) -> None:
    assert len(bench.samples) == result.samples
    assert [s.offset_ms for s in bench.samples] == list(accumulate(s.length_ms for s in bench.samples))
    assert abs(bench.samples[-1].offset_ms - max(d.runtime_ms for d in result.directions)) <= 2
    for whole in result.directions:
        parts = [part for s in bench.samples for part in s.directions if part.direction is whole.direction]
        assert sum(part.ios for part in parts) == whole.ios
        assert sum(part.bytes for part in parts) == whole.bytes
        assert merge(unpack(part.latency) for part in parts) == unpack(whole.latency)


def test_it_measures_a_mix_with_several_jobs_and_a_ramp(bench: Bench) -> None:
    work = stream(pattern=Pattern.RANDRW, read_percent=70, numjobs=2, ramp_s=1)
    assert bench.prefill(work)
    result = bench.run(work)
    assert {d.direction for d in result.directions} == {Direction.READ, Direction.WRITE}
    assert_samples_add_up(bench, result)
    read, write = result.directions
    assert 1900 <= read.runtime_ms <= 2300
    assert 0.6 < read.ios / (read.ios + write.ios) < 0.8
    assert read.latency_min_ns <= read.latency_mean_ns <= read.latency_max_ns
    assert unpack(read.latency).total == read.ios
    assert abs(read.ios - read.bytes // 4096) <= workload_of(work).depth  # in flight when the ramp ended
    assert bench.started[0].job_text == render(work).job_text
    assert result.engine_version.startswith("fio-")
    (attachment,) = result.attachments
    assert (attachment.name, attachment.text[0]) == ("fio.json", "{")


def test_a_stop_rule_ends_it_before_its_maximum_time(bench: Bench) -> None:
    """Five rounds of 1 s that differ by less than 20 % are likely, but not certain: the rule may look again."""
    work = stream(ioengine=IoEngine.PSYNC, iodepth=1, numjobs=2, runtime_s=300, stop=SteadyRounds(round_s=1))
    bench.prefill(work)
    result = bench.run(work, total_s=400)
    stopped = result.stopped
    assert stopped is not None
    assert stopped.reached
    assert stopped.rule == SteadyRounds(round_s=1)
    assert result.exit_code == 128  # of fio after SIGINT
    assert 4000 <= stopped.to_ms - stopped.from_ms <= 6500
    assert stopped.to_ms <= stopped.at_ms <= bench.samples[-1].offset_ms
    (read,) = result.directions
    inside = [s for s in bench.samples if stopped.from_ms < s.offset_ms <= stopped.to_ms]
    assert read.ios == sum(part.ios for s in inside for part in s.directions)
    assert read.runtime_ms == sum(s.length_ms for s in inside)
    assert json.loads(result.attachments[0].text)["jobs"][0]["read"]["total_ios"] >= read.ios


def test_it_ends_an_amount_with_a_short_sample(bench: Bench) -> None:
    work = stream(
        pattern=Pattern.WRITE,
        amount_bytes=16 * MIB,
        runtime_s=None,
        block_bytes=MIB,
        ioengine=IoEngine.PSYNC,
        iodepth=1,
    )
    result = bench.run(work)
    assert (result.directions[0].bytes, result.directions[0].ios) == (16 * MIB, 16)
    assert_samples_add_up(bench, result)


def test_its_jobs_wait_before_their_first_io(bench: Bench) -> None:
    """For a common start. fio gets ready meanwhile, and leaves no file of its own behind."""
    work = stream(ioengine=IoEngine.PSYNC, iodepth=1, numjobs=3, runtime_s=1)
    bench.prefill(work)
    files = set(bench.data.iterdir())
    bench.not_before = time.monotonic() + 2.5
    moment = time.time() + 2.5
    result = bench.run(work)
    assert result.began_at is not None
    assert result.began_at >= moment - 0.02  # dumps are timed to some ms
    assert result.started_at == pytest.approx(moment, abs=0.01)
    assert "exec_prerun" in bench.started[0].job_text
    assert set(bench.data.iterdir()) == files
    assert_samples_add_up(bench, result)


@pytest.mark.parametrize("pattern", [Pattern.RANDWRITE, Pattern.RANDREAD])
def test_it_reports_the_cpu_time_of_all_jobs_together(bench: Bench, pattern: Pattern) -> None:
    """Truth: the CPU time that the kernel charged to all processes, without that of a job of one I/O: the start.

    fio itself reports the mean of its four jobs, a quarter of it.
    """
    given: dict[str, Any] = {"ioengine": IoEngine.PSYNC, "iodepth": 1, "direct": False, "pattern": pattern}
    one_io = stream(**given, numjobs=4, runtime_s=None, amount_bytes=4096)
    bench.prefill(one_io)
    start_s, _ = charged_s(lambda: bench.run(one_io))
    used_s, result = charged_s(lambda: bench.run(stream(**given, numjobs=4, runtime_s=3)))
    percent = 100 * (used_s - start_s) / (result.directions[0].runtime_ms / 1000)
    assert result.usr_cpu_percent + result.sys_cpu_percent == pytest.approx(percent, rel=0.2)


def charged_s(run: Callable[[], StreamResult]) -> tuple[float, StreamResult]:
    """CPU time of the child processes that ended in `run`, in s, and its result."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def test_it_cancels_within_a_second(bench: Bench) -> None:
    work = stream(runtime_s=30)
    set_at: list[float] = []

    def cancel() -> None:
        set_at.append(time.monotonic())
        bench.cancelled.set()

    threading.Timer(1.5, cancel).start()
    with pytest.raises(StreamFailed) as failure:
        bench.run(work)
    assert failure.value.code == "cancelled"
    assert time.monotonic() - set_at[0] < 1


@pytest.mark.parametrize(("code", "limits"), [("fio_timeout", {"total_s": 1.0}), ("fio_silent", {"silence_s": 0.5})])
def test_it_kills_a_fio_that_takes_too_long(bench: Bench, code: str, limits: Any) -> None:
    before = time.monotonic()
    with pytest.raises(StreamFailed) as failure:
        bench.run(stream(runtime_s=30), **limits)
    assert failure.value.code == code
    assert time.monotonic() - before < 4


def test_it_says_why_a_fio_with_endless_errors_was_killed() -> None:
    words = fio._reason(Reason.TOO_MUCH_OUTPUT, Limits(total_s=1, error_bytes=2 * MIB))
    assert words == ("fio_error", "fio printed more than 2 MiB of errors and was killed.")


def test_a_frozen_device_ends_with_what_was_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """fio's jobs are stopped after 2.5 s, and the device's counters with them, as if the drive had frozen."""
    at_first = counters.Counters(0.0, 0, 0, 0, 0, 0, 0, in_flight=1)
    frozen_at = time.monotonic() + 2.5

    def counted(_device: str) -> counters.Counters:
        now = time.monotonic()
        return msgspec.structs.replace(at_first, at_s=now, read_ios=round(1000 * min(now, frozen_at)))

    monkeypatch.setattr("worker.engines.running.read_counters", counted)
    threading.Timer(2.5, signal_jobs, [bench.state, signal.SIGSTOP]).start()
    result = bench.run(stream(runtime_s=30), silence_s=4)
    assert (result.stalled_s, result.exit_code) == (4, 137)
    assert_samples_add_up(bench, result)
    (read,) = result.directions
    assert read.runtime_ms == bench.samples[-1].offset_ms >= 4500
    assert [sample.directions[0].ios for sample in bench.samples[-3:]] == [0, 0, 0]
    assert all(sample.estimated for sample in bench.samples[-3:-1])


def signal_jobs(state: Path, number: signal.Signals) -> None:
    """Stop or continue the processes of the stream's scope."""
    ours = f"{supervisor.MARK}={_marker_of(state)}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if ours in (entry / "environ").read_bytes() and (entry / "comm").read_text().strip() == "fio":
                os.kill(int(entry.name), number)


def test_it_names_an_io_error_in_fios_words(bench: Bench) -> None:
    name = render(stream()).files[0]
    (bench.data / name).mkdir()  # no file can be opened where a directory is
    with pytest.raises(StreamFailed) as failure:
        bench.run(stream())
    assert failure.value.code == "fio_error"
    assert name in str(failure.value) or "irectory" in str(failure.value)


def test_it_refuses_what_it_cannot_render_before_it_starts(bench: Bench) -> None:
    with pytest.raises(StreamFailed) as failure:
        bench.run(stream(runtime_s=None))
    assert failure.value.code == "option_refused"
    assert not bench.started


def test_it_names_a_missing_feature_and_does_not_start(bench: Bench) -> None:
    if polls(bench.open_target.device):
        pytest.skip("this device has poll queues")
    work = stream(uring=UringOptions(hipri=True))
    with pytest.raises(StreamFailed, match="hipri") as failure:
        bench.run(work)
    assert failure.value.code == "uring_feature_missing"
    assert "hipri" in missing_features(workload_of(work), str(bench.data))[0]
    assert not bench.started


def test_it_refuses_latencies_that_this_fio_gets_wrong(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.engines.fio.probe.fio_version", lambda: "fio-3.35")
    with pytest.raises(StreamFailed, match=r"fio 3\.36 or newer"):
        bench.run(stream(uring=UringOptions(sqthread_poll=True)))


def test_files_do_not_grow(bench: Bench) -> None:
    (bench.data / "mine").write_bytes(bytes(MIB))
    open_target = OpenTarget(path="mine", cwd_fd=bench.cwd_fd)
    with pytest.raises(StreamFailed, match="use a smaller size"):
        bench.run(stream(TargetKind.FILE, str(bench.data / "mine"), pattern=Pattern.WRITE), open_target)
    assert (bench.data / "mine").stat().st_size == MIB


def test_it_detects_the_features_of_this_host() -> None:
    fio = capabilities(settings=("scheduler",)).engines["fio"]
    assert fio.version.startswith("fio-")
    assert "psync" in fio.features
    assert ("fixedbufs" in fio.features) == ("io_uring" in fio.features)
    if version_of(fio.version) < (3, 34):
        assert "sqthread_poll" not in fio.features  # it runs, but its latency is wrong: every such stream is refused


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "disk"
    file.write_bytes(os.urandom(32 * MIB))
    command = ("losetup", "--find", "--show", "--direct-io=on", str(file))
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    yield path
    subprocess.run(("losetup", "--detach", path), check=True)


def _held(loop: str) -> OpenTarget:
    return OpenTarget(path=loop, device=Path(loop).name, size_bytes=32 * MIB)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_it_agrees_with_the_devices_own_counters(bench: Bench, loop: str) -> None:
    open_target = _held(loop)
    result = bench.run(stream(TargetKind.BLOCK, "/dev/disk/by-id/other-name", size_bytes=None, numjobs=2), open_target)
    assert f"filename={loop}\n" in bench.started[0].job_text
    (read,) = result.directions
    assert result.device is not None
    assert abs(result.device.read_ios - read.ios) < 100  # udev and partition scans may look at it as well
    assert 10 < result.device.utilisation_percent <= 100
    assert result.device.queue_depth > 0.5
    with pytest.raises(StreamFailed, match="use a smaller size"):
        bench.run(stream(TargetKind.BLOCK, loop, size_bytes=64 * MIB), open_target)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_the_io_of_another_program_is_not_counted_while_fio_is_silent(bench: Bench, loop: str) -> None:
    """fio's jobs are stopped for 5 s near the end, and something else reads from their drive meanwhile."""
    ended = threading.Event()

    def disturb() -> None:
        while len(bench.samples) < 3 and not ended.wait(0.05):
            pass
        signal_jobs(bench.state, signal.SIGSTOP)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            subprocess.run(("dd", f"if={loop}", "of=/dev/null", "bs=64k", "iflag=direct"), capture_output=True)
        signal_jobs(bench.state, signal.SIGCONT)

    other = threading.Thread(target=disturb)
    other.start()
    try:
        work = stream(TargetKind.BLOCK, loop, size_bytes=None, iodepth=1, runtime_s=10)
        result = bench.run(work, OpenTarget(path=loop, device=Path(loop).name))
    finally:
        ended.set()
        other.join()
    assert_samples_add_up(bench, result)
    (silence,) = (sample for sample in bench.samples if sample.length_ms >= 4000)
    assert silence.device is not None
    assert silence.device.read_bytes > 2 * silence.directions[0].bytes  # the other program's I/O is telemetry


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_it_measures_trims(bench: Bench, loop: str) -> None:
    open_target = _held(loop)
    given: dict[str, Any] = {"pattern": Pattern.TRIMWRITE, "block_bytes": MIB, "runtime_s": None, "prefill": False}
    result = bench.run(stream(TargetKind.BLOCK, loop, size_bytes=16 * MIB, amount_bytes=8 * MIB, **given), open_target)
    moved = {each.direction: (each.ios, each.bytes) for each in result.directions}
    assert moved == {Direction.WRITE: (8, 8 * MIB), Direction.TRIM: (8, 8 * MIB)}
    assert [unpack(each.latency).total for each in result.directions] == [8, 8]
    assert len({each.latency_mean_ns for each in result.directions}) == 2  # each direction has its own
    sampled = [part for sample in bench.samples for part in sample.directions]
    assert sum(part.ios for part in sampled if part.direction is Direction.TRIM) == 8


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_a_drive_with_sectors_of_4_kib(bench: Bench, tmp_path: Path) -> None:
    """It measures whole sectors; for others, which the server refuses before the run, the failure is the kernel's."""
    file = tmp_path / "disk"
    file.write_bytes(bytes(32 * MIB))
    with rig.loop(file, "--sector-size", "4096") as device:
        result = bench.run(stream(TargetKind.BLOCK, device, block_bytes=4096), _held(device))
        assert result.directions[0].ios > 0
        with pytest.raises(StreamFailed, match="Invalid argument"):
            bench.run(stream(TargetKind.BLOCK, device, block_bytes=512), _held(device))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_scsi_commands_need_a_whole_scsi_drive(bench: Bench, loop: str) -> None:
    """SCSI commands to a partition or volume would reach the drive below it."""
    work = stream(TargetKind.BLOCK, loop, ioengine=IoEngine.SG, size_bytes=MIB)
    with pytest.raises(StreamFailed, match="not a whole SCSI drive"):
        bench.run(work, _held(loop))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_nvme_commands_need_a_whole_nvme_drive(bench: Bench, loop: str) -> None:
    work = stream(TargetKind.BLOCK, loop, ioengine=IoEngine.IO_URING_CMD, size_bytes=MIB)
    with pytest.raises(StreamFailed, match="not a whole NVMe drive"):
        bench.run(work, _held(loop))


def test_a_generic_device_is_a_character_device_with_the_numbers_of_sysfs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("null", "shm", "no-such-device"):  # character device of another driver, folder, absent
        monkeypatch.setattr(sysfs, "nvme_generic", lambda _device, name=name: name)
        with pytest.raises(StreamFailed, match="io_uring_cmd"):
            generic_path("nvme0n1")


def test_features_are_those_of_the_partition_and_not_of_its_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands to a partition of a drive would reach all of it."""
    devices = []

    def check(_work: FioWorkload, device: str) -> None:
        devices.append(device)
        raise StreamFailed("option_refused", "checked")

    monkeypatch.setattr("worker.engines.fio.check_features", check)
    monkeypatch.setattr(sysfs, "name_of", lambda numbers: {"8:1": "sda1"}[numbers])
    partition = OpenTarget(path="/dev/sda1", numbers="8:1", device="sda", size_bytes=MIB)
    with pytest.raises(StreamFailed, match="checked"):
        bench.run(stream(TargetKind.BLOCK, "/dev/sda1", size_bytes=MIB), partition)
    assert devices == ["sda1"]


def test_a_partition_is_not_a_whole_scsi_drive(tmp_path: Path) -> None:
    (tmp_path / "sda" / "device" / "scsi_disk" / "0:0:0:0").mkdir(parents=True)
    (tmp_path / "sda1").mkdir()
    assert is_scsi_disk("sda", tmp_path)
    assert not any(is_scsi_disk(name, tmp_path) for name in ("sda1", "dm-0", ""))


def test_a_verified_write_has_samples_of_both_directions(bench: Bench) -> None:
    options = FioOptions(verify=Verify.CRC32C)
    given: dict[str, Any] = {"pattern": Pattern.WRITE, "runtime_s": None, "amount_bytes": MIB, "options": options}
    result = bench.run(stream(size_bytes=MIB, **given))
    assert {each.direction: each.bytes for each in result.directions} == {Direction.READ: MIB, Direction.WRITE: MIB}
    sampled = [part for sample in bench.samples for part in sample.directions]
    assert sum(part.bytes for part in sampled) == 2 * MIB


def test_it_says_that_the_verified_data_differ(bench: Bench) -> None:
    work = stream(
        pattern=Pattern.WRITE, size_bytes=MIB, runtime_s=None, amount_bytes=MIB,
        options=FioOptions(verify=Verify.CRC32C),
    )  # fmt: skip
    bench.prefill(work)
    (file,) = bench.data.iterdir()
    ended = threading.Event()

    def overwrite() -> None:
        while not ended.is_set():
            with file.open("r+b") as opened:
                opened.write(bytes(MIB))

    other = threading.Thread(target=overwrite)
    other.start()
    try:
        with pytest.raises(StreamFailed, match="The data that fio read differ from the data that it wrote") as failure:
            bench.run(work)
    finally:
        ended.set()
        other.join()
    assert failure.value.code == "fio_error"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_it_refuses_an_offset_beyond_the_device(bench: Bench, loop: str) -> None:
    work = stream(TargetKind.BLOCK, loop, size_bytes=16 * MIB, options=FioOptions(offset=2**40))
    with pytest.raises(StreamFailed, match="use a smaller size"):
        bench.run(work, _held(loop))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_it_shows_no_counters_of_a_device_that_does_not_count(bench: Bench, loop: str) -> None:
    counting = Path(f"/sys/block/{Path(loop).name}/queue/iostats")
    counting.write_text("0")
    try:
        result = bench.run(stream(TargetKind.BLOCK, loop, size_bytes=None), _held(loop))
    finally:
        counting.write_text("1")
    assert result.device is None
    assert {sample.device for sample in bench.samples} == {None}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a loop device")
def test_it_says_when_the_device_went_away(bench: Bench, loop: str) -> None:
    file = Path(Path(f"/sys/block/{Path(loop).name}/loop/backing_file").read_text().strip())

    def take_away(sample: Sample) -> None:
        os.truncate(file, 0)
        subprocess.run(("losetup", "--set-capacity", loop), check=True)  # size 0: what an unplugged drive has
        bench.samples.append(sample)

    work = stream(TargetKind.BLOCK, loop, runtime_s=10)
    with pytest.raises(StreamFailed) as failure, open_scope(bench.state, "stream") as scope:
        run_stream(running(work, _held(loop), scope, bench.cancelled, on_sample=take_away))
    assert failure.value.code == "device_gone"
    assert len(bench.samples) < 5


def test_it_reads_device_counters_as_the_kernel_documents_them(tmp_path: Path) -> None:
    (tmp_path / "sdx").mkdir()
    stat = tmp_path / "sdx" / "stat"
    stat.write_text(" 100 0 800 5 200 0 1600 7 1 50 60 0 0 0 0 0 0\n")
    before = counters.read_counters("sdx", tmp_path)
    time.sleep(0.05)  # the interval between two readings
    stat.write_text(" 110 0 880 5 220 0 1760 7 1 60 80 0 0 0 0 0 0\n")
    sample = counters.sample_between("sdx", before, counters.read_counters("sdx", tmp_path))
    assert sample is not None
    assert (sample.read_ios, sample.read_bytes, sample.write_ios, sample.write_bytes) == (10, 40960, 20, 81920)
    assert sample.queue_depth == pytest.approx(2 * sample.utilisation_percent / 100)
    assert counters.read_counters("none", tmp_path) is None
