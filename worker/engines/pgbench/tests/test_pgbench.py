"""pgbench really run on a temporary cluster in a scratch directory."""

import os
import pwd
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from worker.contract.items import Direction, Sample, StreamResult, StreamStarted
from worker.contract.packing import unpack
from worker.contract.pgbench import PgbenchWorkload, Script
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import capabilities
from worker.engines.base import StreamFailed
from worker.engines.pgbench import offer, program, run_stream
from worker.engines.tests.running import running
from worker.journal import Journal, TemporaryFolder
from worker.kernel.targets import OpenTarget
from worker.process.scope import open_scope
from worker.recipes import missing_features, render, workload_problems
from worker.recipes.base import temporary_folder as folder_name
from worker.temporary import drop_folders_in, remove_recorded, temporary_folder

installed = pytest.mark.skipif(offer() is None, reason="PostgreSQL's server is not installed here")


class Scratch:
    """A directory that PostgreSQL's user cannot enter, as a target's."""

    def __init__(self, directory: Path) -> None:
        self.state, self.data = directory / "state", directory / "data"
        self.state.mkdir()
        self.data.mkdir(mode=0o700)
        self.fd = os.open(self.data, os.O_DIRECTORY)
        self.journal = Journal(self.state / "journal")
        self.samples: list[Sample] = []
        self.started: list[StreamStarted] = []
        self.cancelled = threading.Event()

    def stream(self, **given: Any) -> Stream:
        work = PgbenchWorkload(**{"scale": 1, "clients": 2, "runtime_s": 2} | given)
        target = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path=str(self.data), stable_id="dir:scratch")
        return Stream(number=0, target=target, workload=work)

    def run(self, stream: Stream) -> StreamResult:
        target = OpenTarget(path=".", cwd_fd=self.fd)
        with (
            temporary_folder(folder_name(stream), self.fd, self.journal),
            open_scope(self.state, "stream") as scope,
        ):
            return run_stream(
                running(
                    stream,
                    target,
                    scope,
                    self.cancelled,
                    silence_s=60,
                    total_s=120,
                    on_started=self.started.append,
                    on_sample=self._sampled,
                )
            )

    def _sampled(self, sample: Sample) -> None:
        self.samples.append(sample)

    @property
    def left(self) -> list[str]:
        return [path.name for path in self.data.iterdir()]


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    made = Scratch(tmp_path)
    yield made
    made.journal.close()
    os.close(made.fd)


@installed
def test_it_measures_transactions_and_leaves_nothing(scratch: Scratch) -> None:
    result = scratch.run(scratch.stream(threads=2))
    (measured,) = result.directions
    assert measured.direction is Direction.TRANSACTION
    assert measured.ios == unpack(measured.latency).total == sum(part.ios for part in _parts(scratch.samples)) > 0
    assert sum(sample.length_ms for sample in scratch.samples) == measured.runtime_ms >= 2000
    assert len(scratch.samples) == result.samples >= 2
    assert measured.latency_min_ns <= measured.latency_mean_ns <= measured.latency_max_ns
    assert f"number of transactions actually processed: {measured.ios}\n" in result.attachments[0].text
    assert result.metrics["tps"] == pytest.approx(measured.iops)
    assert (result.metrics["load_s"] > 0, result.metrics["failed_transactions"]) == (True, 0)
    assert {metric.name for metric in scratch.started[0].metrics} == set(result.metrics)
    assert result.engine_version == capabilities(settings=()).engines["pgbench"].version
    assert result.usr_cpu_percent + result.sys_cpu_percent > 0
    assert (scratch.left, scratch.journal.folders()) == ([], ())


def _parts(samples: list[Sample]) -> list[Any]:
    return [part for sample in samples for part in sample.directions]


@installed
def test_a_cancelled_trial_leaves_no_process_and_no_folder(scratch: Scratch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "_sampled", lambda sample: scratch.cancelled.set())
    with pytest.raises(StreamFailed) as failure:
        scratch.run(scratch.stream(script=Script.SELECT, runtime_s=600))
    assert failure.value.code == "cancelled"
    assert scratch.left == []
    assert "temporary.0" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def test_a_folder_that_a_killed_worker_left_is_removed_at_the_next_start(scratch: Scratch) -> None:
    with temporary_folder("temporary.0", scratch.fd, scratch.journal):
        (recorded,) = scratch.journal.folders()
    assert recorded.path == str(scratch.data / "temporary.0")
    (scratch.data / "temporary.0" / "data").mkdir(parents=True)
    scratch.journal.save_folder(recorded)
    assert [item.restored for item in remove_recorded(scratch.journal)] == [True]
    assert (scratch.left, scratch.journal.folders()) == ([], ())


def test_a_folder_is_remembered_until_its_file_system_is_mounted(scratch: Scratch) -> None:
    with temporary_folder("temporary.0", scratch.fd, scratch.journal):
        (recorded,) = scratch.journal.folders()
    (scratch.data / "temporary.0").mkdir()
    scratch.journal.save_folder(recorded)
    mounted = scratch.data.rename(scratch.data.with_name("elsewhere"))
    for mount_point in (None, scratch.data):
        if mount_point:
            mount_point.mkdir()
        (item,) = remove_recorded(scratch.journal)
        assert (item.restored, scratch.journal.folders()) == (False, (recorded,))
        assert item.note.endswith("if it is gone for good.")
    other = os.open(scratch.data, os.O_RDONLY | os.O_DIRECTORY)
    with temporary_folder("temporary.0", other, scratch.journal):
        assert len(scratch.journal.folders()) == 2
    os.close(other)
    assert scratch.journal.folders() == (recorded,)
    scratch.data.rmdir()
    mounted.rename(scratch.data)
    assert [item.restored for item in remove_recorded(scratch.journal)] == [True]
    assert (scratch.left, scratch.journal.folders()) == ([], ())


def test_a_folder_goes_with_the_layout_that_contains_it(scratch: Scratch) -> None:
    for directory in ("/run/layout-1/mnt", "/run/layout-10/mnt"):
        scratch.journal.save_folder(TemporaryFolder(f"{directory}/temporary.0", "1:2"))
    drop_folders_in("/run/layout-1/mnt", scratch.journal)
    assert [folder.path for folder in scratch.journal.folders()] == ["/run/layout-10/mnt/temporary.0"]


def test_a_host_without_postgresql_does_not_offer_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program, "PLACES", ())
    assert offer() is None
    assert missing_features(PgbenchWorkload(), {}) == ["engine pgbench"]


def test_a_host_without_its_user_does_not_offer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    assert offer() is None


def test_the_newest_of_several_versions_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("9.6", "16", "15"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        for name in program.PROGRAMS:
            (folder / name).touch(0o755)
    (tmp_path / "16" / "bin" / "pgbench").unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(program, "PLACES", (f"{tmp_path}/*/bin",))
    assert program.bin_folder() == f"{tmp_path}/15/bin"


def test_its_job_states_the_exact_commands(scratch: Scratch) -> None:
    stream = scratch.stream(scale=7, clients=4, threads=2, runtime_s=30, fsync=False, script=Script.SELECT)
    text = render(stream).job_text
    for words in (
        '"--scale=7"', '"--client=4"', '"--jobs=2"', '"--time=30"', '"--builtin=select-only"', '"fsync=off"',
        '"synchronous_commit=on"', '"shared_buffers=131072kB"', '"max_wal_size=1024MB"', '"listen_addresses="',
    ):  # fmt: skip
        assert words in text


def test_it_refuses_devices_and_more_threads_than_clients() -> None:
    assert "needs a directory target" in workload_problems(PgbenchWorkload(), TargetKind.BLOCK)[0]
    assert "cannot share 2 clients" in workload_problems(PgbenchWorkload(clients=2, threads=3), TargetKind.DIRECTORY)[0]
