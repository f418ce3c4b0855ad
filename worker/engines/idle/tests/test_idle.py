"""Idle streams: samples without I/O, on every kind of target."""

import threading
from pathlib import Path

import pytest

from worker.contract.idle import IdleWorkload
from worker.contract.items import Sample, StreamStarted
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import idle
from worker.engines.base import StreamFailed
from worker.engines.idle import run_stream
from worker.engines.tests.running import running
from worker.kernel.targets import OpenTarget
from worker.process.scope import open_scope
from worker.recipes import workload_problems

TARGET = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path="/srv", stable_id="dir:scratch")


def run(tmp_path: Path, seconds: int, cancelled: threading.Event) -> tuple[list[Sample], list[StreamStarted], object]:
    samples: list[Sample] = []
    started: list[StreamStarted] = []
    work = IdleWorkload(runtime_s=seconds)
    with open_scope(tmp_path, "stream") as scope:
        result = run_stream(
            running(
                Stream(number=0, target=TARGET, workload=work),
                OpenTarget(path="."),
                scope,
                cancelled,
                on_started=started.append,
                on_sample=samples.append,
            )
        )
    assert (result.directions, result.samples) == ((), len(samples))
    return samples, started, result


def test_it_samples_without_io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "SAMPLE_S", 0.01)
    samples, started, _ = run(tmp_path, 3, threading.Event())
    assert [sample.directions for sample in samples] == [(), (), ()]
    assert sum(sample.length_ms for sample in samples) == samples[-1].offset_ms
    assert len(started) == 1


def test_it_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(StreamFailed, match="cancelled"):
        run(tmp_path, 600, cancelled)


def test_it_works_on_every_target_and_writes_nothing() -> None:
    assert all(workload_problems(IdleWorkload(), kind) == () for kind in TargetKind)
    assert not IdleWorkload().writes
