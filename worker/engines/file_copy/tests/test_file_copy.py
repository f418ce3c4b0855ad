"""Files really copied in a scratch directory."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worker.contract import packing
from worker.contract.file_copy import CopyMethod
from worker.contract.items import Direction, Sample, StreamResult, StreamStarted
from worker.contract.packing import unpack
from worker.contract.workload import MIB, CopyWorkload, Stream, TargetKind, TargetRef
from worker.engines import capabilities
from worker.engines.base import StreamFailed
from worker.engines.file_copy import Line, Reader, run_stream
from worker.engines.file_copy.program import bucket_ns
from worker.engines.fio import prefill
from worker.engines.running import Sampler
from worker.engines.tests.running import running
from worker.guard.tests import rig
from worker.kernel.targets import OpenTarget
from worker.process.scope import open_scope
from worker.recipes import render


class Scratch:
    def __init__(self, directory: Path) -> None:
        self.state, self.data = directory / "state", directory / "data"
        self.data.mkdir()
        self.fd = os.open(self.data, os.O_DIRECTORY)
        self.samples: list[Sample] = []
        self.started: list[StreamStarted] = []
        self.cancelled = threading.Event()

    def stream(self, **given: Any) -> Stream:
        work = CopyWorkload(**{"size_bytes": 4 * MIB, "files": 2} | given)
        target = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path=str(self.data), stable_id="dir:scratch")
        return Stream(number=0, target=target, workload=work)

    def prefill(self, stream: Stream) -> None:
        with open_scope(self.state, "prefill") as scope:
            prefill(running(stream, self.target, scope, self.cancelled, total_s=30), lambda _: None)

    def copy(self, stream: Stream, *, total_s: float = 30) -> StreamResult:
        with open_scope(self.state, "stream") as scope:
            return run_stream(
                running(
                    stream,
                    self.target,
                    scope,
                    self.cancelled,
                    total_s=total_s,
                    on_started=self.started.append,
                    on_sample=self.samples.append,
                )
            )

    def run(self, stream: Stream) -> StreamResult:
        self.prefill(stream)
        return self.copy(stream)

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.data.iterdir())

    @property
    def target(self) -> OpenTarget:
        return OpenTarget(path=".", cwd_fd=self.fd)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    made = Scratch(tmp_path)
    yield made
    os.close(made.fd)


@pytest.mark.parametrize("method", [CopyMethod.BUFFERED, CopyMethod.DIRECT, CopyMethod.KERNEL])
def test_it_copies_every_byte_and_counts_them(scratch: Scratch, method: CopyMethod) -> None:
    result = scratch.run(scratch.stream(method=method, block_bytes=MIB))
    read, write = result.directions
    assert (read.direction, write.direction) == (Direction.READ, Direction.WRITE)
    assert read.bytes == write.bytes == 8 * MIB
    assert write.ios == unpack(write.latency).total >= 8
    assert write.latency_min_ns <= write.latency_mean_ns <= write.latency_max_ns
    assert result.metrics["copy_s"] > 0
    assert result.metrics["copy_bytes_per_s"] == pytest.approx(8 * MIB / result.metrics["copy_s"])
    unknown = {"shared_percent"} if "shared_percent" not in result.metrics else set()  # tmpfs does not tell
    assert {metric.name for metric in scratch.started[0].metrics} - unknown == set(result.metrics)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
@pytest.mark.parametrize(("kind", "shared"), [("xfs", 100), ("btrfs", 100), ("ext4", 0)])
def test_a_copy_in_the_kernel_that_is_a_reflink_is_told_apart(tmp_path: Path, kind: str, shared: int) -> None:
    with rig.loop(rig.sparse(tmp_path / "image", 400 * MIB)) as device:
        rig.run(f"mkfs.{kind}", "-q", device)
        (tmp_path / "mnt").mkdir()
        rig.run("mount", device, str(tmp_path / "mnt"))
        scratch = Scratch(tmp_path / "mnt")
        try:
            result = scratch.run(scratch.stream(method=CopyMethod.KERNEL))
        finally:
            os.close(scratch.fd)
            rig.unmount(tmp_path / "mnt")
    assert result.metrics["shared_percent"] == shared


def test_an_fsync_that_was_not_requested_is_not_measured(scratch: Scratch) -> None:
    result = scratch.run(scratch.stream(fsync=False))
    assert set(result.metrics) == {"copy_s", "copy_bytes_per_s"}
    assert {metric.name for metric in scratch.started[0].metrics} == set(result.metrics)
    assert scratch.copy(scratch.stream()).metrics["fsync_s"] > 0


def test_its_samples_add_up_to_its_result(scratch: Scratch) -> None:
    result = scratch.run(scratch.stream(size_bytes=64 * MIB, files=4))
    assert result.samples == len(scratch.samples) >= 1
    for direction in result.directions:
        parts = [
            part for sample in scratch.samples for part in sample.directions if part.direction is direction.direction
        ]
        assert sum(part.bytes for part in parts) == direction.bytes
        assert sum(part.ios for part in parts) == direction.ios
    assert sum(sample.length_ms for sample in scratch.samples) == result.directions[0].runtime_ms


def test_it_leaves_its_sources_and_no_copies(scratch: Scratch) -> None:
    stream = scratch.stream()
    scratch.run(stream)
    assert scratch.names == sorted(render(stream).files)


def test_a_file_system_without_reflinks_is_reported(scratch: Scratch) -> None:
    stream = scratch.stream(method=CopyMethod.REFLINK)
    if file_system_of(scratch.data) in ("xfs", "btrfs"):
        parts = scratch.run(stream).directions
        assert [(part.direction, part.ios, part.bytes) for part in parts] == [(Direction.WRITE, 2, 8 * MIB)]
        return
    with pytest.raises(StreamFailed, match="errno") as failure:
        scratch.run(stream)
    assert failure.value.code == "copy_error"
    assert "has no reflinks. Use btrfs or XFS, or another copy method" in str(failure.value)
    assert scratch.names == sorted(render(stream).files)


def file_system_of(path: Path) -> str:
    return subprocess.check_output(["stat", "--file-system", "--format=%T", path], text=True).strip()


def test_a_missing_source_is_named(scratch: Scratch) -> None:
    with pytest.raises(StreamFailed, match=r"sweetspot\.4194304\.0: No such file or directory") as failure:
        scratch.copy(scratch.stream())
    assert failure.value.code == "copy_error"


def test_a_link_in_place_of_a_copy_is_not_followed(scratch: Scratch, tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_bytes(b"keep")
    (scratch.data / "sweetspot.4194304.0.copy").symlink_to(other)
    scratch.run(scratch.stream())
    assert other.read_bytes() == b"keep"


def test_it_is_stopped_when_it_takes_too_long(scratch: Scratch) -> None:
    stream = scratch.stream(size_bytes=64 * MIB)
    scratch.prefill(stream)
    with pytest.raises(StreamFailed) as failure:
        scratch.copy(stream, total_s=0)
    assert failure.value.code == "engine_timeout"


def test_every_host_offers_it() -> None:
    assert set(capabilities(settings=()).engines["file_copy"].features) == set(CopyMethod)


def test_its_buckets_are_those_of_fio() -> None:
    """fio 3.33, stat.c: the midpoints that plat_idx_to_val gives for these values."""
    assert [bucket_ns(ns) for ns in (0, 1, 127, 128, 129, 200, 1000, 65535)] == [0, 1, 127, 129, 129, 201, 1004, 65280]


def test_all_engines_use_the_same_buckets() -> None:
    assert all(bucket_ns(ns) == packing.bucket_ns(ns) for ns in (*range(1000), 65535, 10**6, 10**9))


def test_a_copy_that_is_cancelled_leaves_no_file(scratch: Scratch) -> None:
    """The program is killed, so it cannot remove them itself."""
    stream = scratch.stream(size_bytes=512 * MIB, files=1)
    scratch.prefill(stream)
    threading.Timer(0.2, scratch.cancelled.set).start()
    with pytest.raises(StreamFailed, match="cancelled"):
        scratch.copy(stream)
    assert scratch.names == sorted(render(stream).files)


def test_a_last_sample_within_the_same_millisecond_is_not_lost() -> None:
    samples: list[Sample] = []
    reader = Reader(Sampler(0, (), samples.append))
    nothing: dict[str, Any] = {
        "ios": 0,
        "bytes": 0,
        "sum_ns": 0,
        "sum2_ns2": 0,
        "min_ns": None,
        "max_ns": 0,
        "buckets": [],
    }
    write = nothing | {"ios": 3, "bytes": 3 * MIB, "min_ns": 100, "max_ns": 100, "buckets": [[100, 3]]}
    for moved in (write, write, nothing):
        line = {"event": "sample", "end_ms": 1000, "read": nothing, "write": moved}
        text = msgspec.json.encode(line)
        reader.take(msgspec.json.decode(text, type=Line), text)
    assert [sample.directions[1].bytes for sample in samples] == [3 * MIB, 3 * MIB]
    assert [sample.offset_ms for sample in samples] == [1000, 1001]
