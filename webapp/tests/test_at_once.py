"""Two loop devices measured alone and together, through the whole system: the sums are of what fio said of each."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from webapp.plans.document import Order, Part, PlanDocument
from webapp.results.models import Result, Sample, StreamRun
from webapp.runs.models import RunState, TargetLock, Trial
from webapp.tests.drives import MIB, loop_device
from webapp.tests.factories.people import operator
from webapp.tests.system import StorageHost, System

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
]
DRIVE = """
[[target]]
id = "{name}"
kind = "block"
path = "{path}"
stable_id = "loop:{image}"
settings = ["*"]
"""
PLAN = PlanDocument(
    title="At once",
    parts=(Part(name="main", factors={"at_once": "1, 2", "pattern": "randread", "read_ahead_kb": "0"}),),
    common={"size": "16M", "runtime": "2s", "iodepth": "4"},
    repeats=1,
    order=Order.LISTED,
)


@pytest.fixture(scope="module")
def pair(system: System) -> Iterator[StorageHost]:
    """A host with two loop devices."""
    folder = system.folder
    with loop_device(folder, "one", size_bytes=32 * MIB) as one, loop_device(folder, "two", size_bytes=32 * MIB) as two:
        named = (("one", one), ("two", two))
        policy = "".join(DRIVE.format(name=name, path=path, image=folder / f"{name}.img") for name, path in named)
        host = system.add_host("storage2", policy)
        try:
            yield host
        finally:
            host.stop()


def said(stream: StreamRun) -> dict[str, Any]:
    """What fio's own JSON says of all its jobs' reads."""
    jobs = [job["read"] for job in json.loads(stream.attachments.get().content)["jobs"]]
    return {name: sum(job[name] for job in jobs) for name in ("total_ios", "io_bytes", "iops")}


def test_two_drives_alone_and_together(system: System, pair: StorageHost) -> None:
    one, two = pair.target("one"), pair.target("two")
    run = system.start_run(PLAN, two, one)
    both = {*one.lock_keys, *two.lock_keys}
    held = TargetLock.objects.filter(attempt__trial__point__at_once=2)
    system.until(lambda: {lock.lock_key for lock in held.all()} == both, limit_s=60, what="the drives of both are held")
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    alone, other, together = run.trials.order_by("index")
    assert [each.target_names for each in (alone, other, together)] == ["two", "one", "two + one"]

    streams = list(StreamRun.objects.filter(attempt__trial=together).order_by("stream"))
    assert [
        stream.job_text.count(f"filename={drive.path}") for stream, drive in zip(streams, (two, one), strict=True)
    ] == [1, 1]
    result, told = Result.objects.get(trial=together), [said(stream) for stream in streams]
    assert result.ios == sum(each["total_ios"] for each in told)
    assert result.bytes == sum(each["io_bytes"] for each in told)
    assert result.iops == pytest.approx(sum(each["iops"] for each in told), rel=0.01)
    for number, stream in enumerate(streams):
        seconds = Sample.objects.filter(attempt__trial=together, stream=number)
        assert sum(second.ios for second in seconds) == told[number]["total_ios"]
        assert len({sample.offset_ms for sample in seconds}) == stream.samples_sent
    assert Result.objects.get(trial=alone).ios == said(StreamRun.objects.get(attempt__trial=alone))["total_ios"]
    changed = Trial.objects.get(pk=together.pk).attempts.get().setting_changes
    assert set(changed.values_list("device", flat=True)) <= {one.device, two.device}

    client = Client()
    client.force_login(operator())
    page = client.get(f"/runs/{run.number}/trials/{together.number}/").content.decode()
    assert f"{pair.slug}/two + one" in page
    assert "The last stream started" in page
    assert not TargetLock.objects.exists()
