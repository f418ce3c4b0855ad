"""pgbench really run on a temporary cluster in a directory that PostgreSQL's user cannot enter."""

import os
import pwd
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from worker.contract.items import Direction, Sample, StreamStarted
from worker.contract.packing import unpack
from worker.contract.pgbench import PgbenchWorkload, Script
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import capabilities, pgbench
from worker.engines.base import StreamFailed
from worker.engines.pgbench import offer, program
from worker.engines.tests.running import run_in_folder
from worker.recipes import missing_features, render, workload_problems

TARGET = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path="/srv", stable_id="dir:scratch")
installed = pytest.mark.skipif(offer() is None, reason="PostgreSQL's server is not installed here")


def stream_of(**given: Any) -> Stream:
    work = PgbenchWorkload(**{"scale": 1, "clients": 2, "runtime_s": 2} | given)
    return Stream(number=0, target=TARGET, workload=work)


@installed
def test_it_measures_transactions_and_leaves_nothing(tmp_path: Path) -> None:
    samples: list[Sample] = []
    started: list[StreamStarted] = []
    result = run_in_folder(pgbench, tmp_path, stream_of(threads=2), threading.Event(), samples.append, started.append)
    (measured,) = result.directions
    assert measured.direction is Direction.TRANSACTION
    assert measured.ios == unpack(measured.latency).total == sum(part.ios for part in _parts(samples)) > 0
    assert sum(sample.length_ms for sample in samples) == measured.runtime_ms >= 2000
    assert len(samples) == result.samples >= 2
    assert measured.latency_min_ns <= measured.latency_mean_ns <= measured.latency_max_ns
    assert f"number of transactions actually processed: {measured.ios}\n" in result.attachments[0].text
    assert result.metrics["tps"] == pytest.approx(measured.iops)
    assert (result.metrics["load_s"] > 0, result.metrics["failed_transactions"]) == (True, 0)
    assert {metric.name for metric in started[0].metrics} == set(result.metrics)
    assert result.engine_version == capabilities(settings=()).engines["pgbench"].version
    assert result.usr_cpu_percent + result.sys_cpu_percent > 0


def _parts(samples: list[Sample]) -> list[Any]:
    return [part for sample in samples for part in sample.directions]


@installed
def test_a_cancelled_trial_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    cancelled, stream = threading.Event(), stream_of(script=Script.SELECT, runtime_s=600)
    with pytest.raises(StreamFailed) as failure:
        run_in_folder(pgbench, tmp_path, stream, cancelled, lambda _: cancelled.set())
    assert failure.value.code == "cancelled"
    assert "temporary.0" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


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


def test_its_job_states_the_exact_commands() -> None:
    stream = stream_of(scale=7, clients=4, threads=2, runtime_s=30, fsync=False, script=Script.SELECT)
    text = render(stream).job_text
    for words in (
        '"--scale=7"', '"--client=4"', '"--jobs=2"', '"--time=30"', '"--builtin=select-only"', '"fsync=off"',
        '"synchronous_commit=on"', '"shared_buffers=131072kB"', '"max_wal_size=1024MB"', '"listen_addresses="',
    ):  # fmt: skip
        assert words in text


def test_it_refuses_devices_and_more_threads_than_clients() -> None:
    assert "needs a directory target" in workload_problems(PgbenchWorkload(), TargetKind.BLOCK)[0]
    assert "cannot share 2 clients" in workload_problems(PgbenchWorkload(clients=2, threads=3), TargetKind.DIRECTORY)[0]
