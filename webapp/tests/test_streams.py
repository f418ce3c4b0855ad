"""A reader beside a writer, and a copy beside a reader, through the whole system: each stream has its own results."""

import json
from typing import Any

import pytest
from django.test import Client

from webapp.plans.document import Order, Part, PartStream, PlanDocument
from webapp.results.models import Result, StreamRun
from webapp.runs.models import RunState, Trial
from webapp.tests.factories.people import operator
from webapp.tests.system import StorageHost, System

pytestmark = pytest.mark.pipeline
READER = PartStream(name="reader", factors={"pattern": "randread", "iodepth": "4"})
WRITER = PartStream(name="writer", factors={"pattern": "randwrite", "iodepth": "2"})
COPIER = PartStream(name="copier", factors={"engine": "file_copy", "size": "8M", "block_size": "1M"})
PLAN = PlanDocument(
    title="Beside",
    parts=(
        Part(name="writing", factors={"streams": "alone, together"}, streams=(READER, WRITER)),
        Part(name="copying", factors={}, streams=(READER, COPIER)),
    ),
    common={"size": "16M", "runtime": "2s"},
    repeats=1,
    order=Order.LISTED,
)


def counted(trial: Trial, name: str, direction: str) -> int:
    """The I/Os that fio's own JSON counts for a stream."""
    number = trial.stream_names.index(name)
    stream = StreamRun.objects.get(attempt__trial=trial, stream=number)
    jobs: list[dict[str, Any]] = json.loads(stream.attachments.get().content)["jobs"]
    return sum(job[direction]["total_ios"] for job in jobs)


def test_streams_beside_each_other_on_one_directory(system: System, storage: StorageHost) -> None:
    run = system.until_ended(system.start_run(PLAN, storage.target("scratch")), limit_s=180)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    trials = {(trial.part, *trial.stream_names): trial for trial in run.trials.all()}
    assert {*trials} == {
        ("writing", "reader"), ("writing", "writer"), ("writing", "reader", "writer"), ("copying", "reader", "copier"),
    }  # fmt: skip
    together = trials["writing", "reader", "writer"]
    found = {(result.point["stream"], result.direction): result for result in Result.objects.filter(trial=together)}
    assert {*found} == {("reader", "read"), ("writer", "write")}
    for (name, direction), result in found.items():
        assert result.ios == counted(together, name, direction)
    assert found["reader", "read"].point["iodepth"] == 4
    assert found["writer", "write"].point["iodepth"] == 2
    jobs = [stream.job_text for stream in StreamRun.objects.filter(attempt__trial=together).order_by("stream")]
    assert "filename=sweetspot.reader.16777216.0\n" in jobs[0]
    assert "filename=sweetspot.writer.16777216.0\n" in jobs[1]
    copied = Result.objects.filter(trial=trials["copying", "reader", "copier"], point__stream="copier")
    assert {result.direction for result in copied} == {"read", "write"}
    assert ["copy_s" in result.metrics for result in copied.order_by("id")] == [False, True]

    client = Client()
    client.force_login(operator())
    page = client.get(f"/runs/{run.number}/trials/{together.number}/").content.decode()
    assert "reader: read" in page
    assert "writer: write" in page
    explored = client.get(f"/explore/?run={run.number}", follow=True).content.decode()
    exported = client.get(f"/results.csv?run={run.number}&factor.stream=writer").getvalue().decode()
    edited = client.get("/plans/beside/edit/").content.decode()
    assert "One chart per" in explored
    assert "Single-factor" in explored  # the streams beside each other are the only difference
    assert "levels_of_streams" in exported.splitlines()[0]
    assert len(exported.splitlines()) == 3  # the writer alone and beside the reader
    assert "reader.iodepth=4" in exported
    assert "reader: pattern=randread; iodepth=4" in edited
    of_run = client.get(f"/runs/{run.number}/").content.decode()
    assert "no share: too few repeats (n = 1)" in of_run
    compared = client.get(f"/explore.csv?run={run.number}&x=streams&series=stream&metric=iops")
    lines = compared.getvalue().decode().splitlines()
    assert len(lines) > 1
