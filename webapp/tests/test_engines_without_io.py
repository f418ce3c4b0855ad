"""Engines without IOPS, through the whole system: pgbench counts transactions, memory and idle have no I/O."""

import csv
import io
import json

import pytest
from django.test import Client

from webapp.core.models import Role
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Result, Sample, StreamRun
from webapp.runs.models import Run, RunState
from webapp.tests.factories.people import a_user
from webapp.tests.system import StorageHost, System
from worker.engines import memory_bandwidth
from worker.engines.pgbench import offer

pytestmark = pytest.mark.pipeline
PLAN = PlanDocument(
    title="Database and idle",
    parts=(
        Part(
            name="database",
            factors={
                "engine": "pgbench", "script": "tpcb-like", "scale": "1", "clients": "2", "runtime": "2s",
                "max_wal_size": "32M",
            },
        ),
        Part(name="idle", factors={"engine": "idle", "runtime": "2s"}),
    ),
    repeats=1,
)  # fmt: skip


@pytest.mark.skipif(offer() is None, reason="PostgreSQL's server is not installed here")
def test_their_results_are_stored_and_shown_without_iops(system: System, storage: StorageHost) -> None:
    run = system.until_ended(system.start_run(PLAN, storage.target("scratch")), limit_s=180)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    database, idle = (run.results.get(trial__part=part) for part in ("database", "idle"))
    assert (database.direction, idle.direction) == ("transaction", "none")
    for result in (database, idle):
        assert (result.ios, result.iops, result.bytes, result.bytes_per_s) == (None,) * 4
        assert result.steadiness == ""
    assert database.metrics["tps"] > 0
    assert (database.p50_ns is not None, idle.latency_mean_ns) == (True, None)
    assert (idle.runtime_ms or 0) >= 2000
    _check_samples(database, idle)
    _check_pages(run, database, idle)


def _check_samples(database: Result, idle: Result) -> None:
    rows = Sample.objects.filter(attempt__trial=database.trial)
    told = json.loads(json.dumps(StreamRun.objects.get(attempt__trial=database.trial).metrics))
    assert {metric["name"] for metric in told} == {"tps", "load_s", "failed_transactions"}
    assert sum(row.ios for row in rows) == pytest.approx(database.metrics["tps"] * (database.runtime_ms or 0) / 1000)
    quiet = Sample.objects.filter(attempt__trial=idle.trial)
    assert {(row.direction, row.ios) for row in quiet} == {("none", 0)}
    assert all(row.telemetry for row in quiet)


def _check_pages(run: Run, database: Result, idle: Result) -> None:
    client = Client()
    client.force_login(a_user("somebody", Role.VIEWER))
    for result in (database, idle):
        assert result.trial is not None
        page = client.get(f"/runs/{run.number}/trials/{result.trial.number}/").content.decode()
        assert "0 IOPS" not in page
        assert "<dt>IOPS</dt>" not in page
        tile = "Transactions per second" if result is database else "Drive temperature"
        assert f"<dt>{tile}</dt>" in page
        assert "stalled" not in page
        assert "froze" not in page
    for address in (f"/runs/{run.number}/", f"/results/?run={run.number}", f"/api/v1/results?run={run.number}"):
        assert client.get(address).status_code == 200
    explored = client.get(f"/explore/?run={run.number}", follow=True)
    assert "metric=power" in explored.redirect_chain[-1][0]
    compared = client.get(f"/explore/?run={run.number}&x=clients&metric=tps").content.decode()
    assert "Transactions per second" in compared
    exported = client.get(f"/results.csv?run={run.number}").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(exported)))
    assert {row["direction"]: row["iops"] for row in rows} == {"transaction": "", "none": ""}


@pytest.mark.skipif(memory_bandwidth.offer() is None, reason="sysbench is not installed here")
def test_the_bandwidth_of_memory_is_stored_and_shown(system: System, storage: StorageHost) -> None:
    factors = {"engine": "memory_bandwidth", "memory_access": "read, write", "memory_buffer": "32M", "runtime": "2s"}
    plan = PlanDocument(title="Memory", parts=(Part(name="memory", factors=factors),), repeats=1)
    run = system.until_ended(system.start_run(plan, storage.target("scratch")), limit_s=60)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    results = list(run.results.order_by("trial__index"))
    assert [(result.direction, result.iops, result.bytes_per_s) for result in results] == [("none", None, None)] * 2
    assert all(result.metrics["memory_bytes_per_s"] > 100e6 for result in results)
    client = Client()
    client.force_login(a_user("another", Role.VIEWER))
    explored = client.get(f"/explore/?run={run.number}", follow=True)
    assert "metric=memory_bytes_per_s" in explored.redirect_chain[-1][0]
    assert "Memory bandwidth" in explored.content.decode()
    assert client.get(f"/runs/{run.number}/").status_code == 200
    assert results[0].trial is not None
    page = client.get(f"/runs/{run.number}/trials/{results[0].trial.number}/").content.decode()
    assert "<dt>Memory bandwidth</dt>" in page
    assert "B/s" in page.partition("<dt>Memory bandwidth</dt>")[2][:200]
