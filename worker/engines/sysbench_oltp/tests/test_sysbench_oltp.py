"""sysbench really run on a temporary PostgreSQL cluster in a scratch directory."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.contract.items import Direction, Sample, StreamResult
from worker.contract.packing import unpack
from worker.contract.sysbench_oltp import OltpTest, OltpWorkload
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.engines import pgbench, sysbench_oltp
from worker.engines.base import State, StreamFailed
from worker.engines.sysbench import following
from worker.engines.tests.running import run_in_folder
from worker.recipes import missing_features, render, workload_problems

TARGET = TargetRef(id="scratch", kind=TargetKind.DIRECTORY, path="/srv", stable_id="dir:scratch")
installed = pytest.mark.skipif(sysbench_oltp.offer() is None, reason="sysbench or PostgreSQL is not installed here")


def run(
    tmp_path: Path, work: OltpWorkload, cancelled: threading.Event, on_sample: Callable[[Sample], None]
) -> StreamResult:
    return run_in_folder(sysbench_oltp, tmp_path, Stream(number=0, target=TARGET, workload=work), cancelled, on_sample)


@installed
def test_it_counts_each_transaction_and_leaves_nothing(tmp_path: Path) -> None:
    samples: list[Sample] = []
    work = OltpWorkload(tables=2, rows=500, threads=2, runtime_s=2)
    result = run(tmp_path, work, threading.Event(), samples.append)
    (measured,) = result.directions
    assert measured.direction is Direction.TRANSACTION
    assert measured.ios == sum(part.ios for sample in samples for part in sample.directions) > 0
    assert abs(unpack(measured.latency).total - measured.ios) <= work.threads  # one that the end interrupts
    assert measured.latency_min_ns <= measured.latency_mean_ns <= measured.latency_max_ns
    assert result.metrics["oltp_tps"] == pytest.approx(measured.iops)
    assert result.metrics["oltp_load_s"] > 0
    assert result.usr_cpu_percent > 0
    assert result.engine_version == f"{following.version()}, {pgbench.version()}"
    assert f"transactions:                        {measured.ios} " in result.attachments[0].text


@installed
def test_it_counts_conflicts_and_the_server_does_not_log_them(tmp_path: Path) -> None:
    work = OltpWorkload(test=OltpTest.WRITE_ONLY, rows=2, threads=8, runtime_s=2)
    result = run(tmp_path, work, threading.Event(), lambda _: None)
    assert result.metrics["oltp_errors"] > 0
    assert "ERROR" not in result.stderr


@installed
def test_a_cancelled_trial_leaves_no_process(tmp_path: Path) -> None:
    cancelled = threading.Event()
    work = OltpWorkload(test=OltpTest.POINT_SELECT, rows=100, threads=1, runtime_s=597)
    with pytest.raises(StreamFailed) as failure:
        run(tmp_path, work, cancelled, lambda _: cancelled.set())
    assert failure.value.code == "cancelled"
    assert "--time=597" not in subprocess.run(["ps", "axww"], capture_output=True, text=True, check=True).stdout


def test_a_host_without_sysbench_does_not_offer_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "version", lambda: "")
    assert sysbench_oltp.offer() is None
    (check,) = sysbench_oltp.check()
    assert check.state is State.NOTE
    assert "package sysbench" in check.advice
    assert missing_features(OltpWorkload(), {}) == ["engine sysbench OLTP"]


def test_its_job_states_the_exact_commands() -> None:
    work = OltpWorkload(tables=3, rows=700, threads=5, runtime_s=30, synchronous_commit=False)
    text = render(Stream(number=0, target=TARGET, workload=work)).job_text
    for words in (
        '"oltp_read_write"', '"--tables=3"', '"--table-size=700"', '"--threads=5"', '"--time=30"', '"initdb"',
        '"max_connections=15"', '"synchronous_commit=off"',
    ):  # fmt: skip
        assert words in text
    assert "needs a directory target" in workload_problems(work, TargetKind.BLOCK)[0]
