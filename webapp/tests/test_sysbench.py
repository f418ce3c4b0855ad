"""sysbench through the whole system: from a plan to results."""

import pytest
from django.test import Client

from webapp.core.models import Role
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Sample
from webapp.runs.models import RunState
from webapp.tests.factories.people import a_user
from webapp.tests.system import StorageHost, System
from worker.engines import sysbench, sysbench_oltp

pytestmark = pytest.mark.pipeline
FACTORS = {
    "engine": "sysbench", "file_test": "rndrd, rndwr", "size": "4M", "files": "2", "numjobs": "2", "runtime": "2s",
}  # fmt: skip


@pytest.mark.skipif(sysbench.offer() is None, reason="sysbench is not installed here")
def test_its_results_are_stored_and_shown_as_those_of_reads_and_writes(system: System, storage: StorageHost) -> None:
    plan = PlanDocument(title="Files", parts=(Part(name="files", factors=FACTORS),), repeats=1)
    run = system.until_ended(system.start_run(plan, storage.target("scratch")), limit_s=120)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    results = {result.direction: result for result in run.results.all()}
    assert set(results) == {"read", "write"}
    for result in results.values():
        samples = Sample.objects.filter(attempt__trial=result.trial)
        assert sum(sample.ios for sample in samples) == result.ios
        assert (result.ios or 0) > 0
        assert result.bytes == (result.ios or 0) * 16384
        assert result.p50_ns is not None
    client = Client()
    client.force_login(a_user("somebody", Role.VIEWER))
    page = client.get(f"/runs/{run.number}/trials/1/").content.decode()
    assert "sysbench fileio" in page
    assert "sysbench.txt" in page
    assert client.get(f"/explore/?run={run.number}", follow=True).status_code == 200


@pytest.mark.skipif(sysbench_oltp.offer() is None, reason="sysbench or PostgreSQL is not installed here")
def test_its_transactions_are_stored_and_shown(system: System, storage: StorageHost) -> None:
    factors = {
        "engine": "sysbench_oltp", "oltp_test": "oltp_read_write", "table_rows": "1000", "oltp_threads": "2",
        "runtime": "2s", "max_wal_size": "32M",
    }  # fmt: skip
    plan = PlanDocument(title="Transactions", parts=(Part(name="oltp", factors=factors),), repeats=1)
    run = system.until_ended(system.start_run(plan, storage.target("scratch")), limit_s=180)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    (result,) = run.results.all()
    assert (result.direction, result.iops, result.bytes) == ("transaction", None, None)
    assert result.metrics["oltp_tps"] > 0
    assert result.latency_mean_ns is not None
    client = Client()
    client.force_login(a_user("another", Role.VIEWER))
    page = client.get(f"/runs/{run.number}/trials/1/").content.decode()
    assert "<dt>OLTP transactions per second</dt>" in page
