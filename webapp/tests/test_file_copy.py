"""File copy through the whole system: from a plan to results and the trial's page."""

import pytest
from django.test import Client

from webapp.core.models import Role
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import StreamRun
from webapp.runs.models import RunState
from webapp.tests.factories.people import a_user
from webapp.tests.system import StorageHost, System
from worker.contract.workload import MIB

pytestmark = pytest.mark.pipeline
FILES, SIZE = 2, 8 * MIB


def plan(**factors: str) -> PlanDocument:
    part = Part(name="copies", factors={"engine": "file_copy", "size": "8M", "files": str(FILES)} | factors)
    return PlanDocument(title="Copies", parts=(part,), repeats=1)


def test_it_measures_copies_in_a_directory(system: System, storage: StorageHost) -> None:
    target = storage.target("scratch")
    run = system.until_ended(system.start_run(plan(copy_method="buffered, direct, kernel"), target), limit_s=120)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    results = run.results.order_by("trial__index", "direction")
    assert [(result.direction, result.bytes) for result in results] == [
        ("read", FILES * SIZE), ("write", FILES * SIZE),
    ] * 3  # fmt: skip
    for stream in StreamRun.objects.filter(attempt__run=run):
        measured = {metric["name"]: metric["value"] for metric in stream.metrics}
        assert measured["copy_bytes_per_s"] == pytest.approx(FILES * SIZE / measured["copy_s"])
        assert stream.engine_version.startswith("Python 3")
    client = Client()
    client.force_login(a_user("somebody", Role.VIEWER))
    page = client.get(f"/runs/{run.number}/trials/1/").content.decode()
    assert "<dt>Copy time</dt>" in page
    assert "Copy method" in page
    assert "File copy" in page
    compared = client.get(f"/explore/?run={run.number}&x=copy_method&metric=copy_s").content.decode()
    assert "Copy time" in compared
    assert all(f"{result.metrics['copy_s']:.3g}" in compared for result in results if result.direction == "write")
    exported = client.get(f"/results.csv?run={run.number}").getvalue().decode()
    assert ",copy_s,copy_bytes_per_s,fsync_s" in exported.splitlines()[0]


def test_a_failed_copy_says_why(system: System, storage: StorageHost) -> None:
    """The scratch directory of the tests has no reflinks; where it has, there is nothing to fail."""
    run = system.until_ended(system.start_run(plan(copy_method="reflink"), storage.target("scratch")), limit_s=120)
    trial = run.trials.get()
    if run.state == RunState.DONE:
        pytest.skip("this file system has reflinks")
    assert trial.reason_code == "copy_error"
    assert "errno" in trial.reason
