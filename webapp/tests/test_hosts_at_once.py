"""One trial on three hosts through the whole system: a common start, and the sum of all streams."""

import pytest
from django.test import Client

from webapp.plans.document import Order, Part, PlanDocument
from webapp.results.models import Result, StreamRun
from webapp.results.reading.rows import read_rows
from webapp.results.reading.trial_streams import trial_streams
from webapp.runs.models import Attempt, RunState
from webapp.tests.conftest import SCRATCH
from webapp.tests.factories.people import operator
from webapp.tests.system import System

pytestmark = pytest.mark.pipeline
PLAN = PlanDocument(
    title="Hosts at once",
    parts=(Part(name="main", factors={"hosts_at_once": "1, 3", "pattern": "randread"}),),
    common={"size": "4M", "runtime": "1s", "iodepth": "2", "numjobs": "2", "direct": "false"},
    repeats=1,
    order=Order.LISTED,
)


def test_three_hosts_start_together(system: System) -> None:
    targets = []
    for number in (1, 2, 3):
        folder = system.folder / f"scratch{number}"
        folder.mkdir(mode=0o755)
        targets.append(system.add_host(f"client{number}", SCRATCH.format(path=folder)).target("scratch"))
    run = system.until_ended(system.start_run(PLAN, *targets), limit_s=180)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    *alone, together = run.trials.order_by("index")
    assert [each.place for each in alone] == [f"client{number}/scratch" for number in (1, 2, 3)]
    assert together.place == "client1/scratch + client2/scratch + client3/scratch"

    attempts = list(Attempt.objects.filter(trial=together))
    assert sorted(attempt.host.slug for attempt in attempts) == ["client1", "client2", "client3"]
    ended = [each.ended_at for each in Attempt.objects.filter(trial__in=alone).order_by("created_at")]
    begun = [each.created_at for each in Attempt.objects.filter(run=run, kind="trial").order_by("created_at")]
    assert all(end and end <= begin for end, begin in zip(ended, begun[1:4], strict=True))  # never two trials at once

    streams = StreamRun.objects.filter(attempt__trial=together)
    result = Result.objects.get(trial=together)
    found = trial_streams(together, read_rows(Result.objects.filter(pk=result.pk)))
    assert streams.count() == 3
    assert found
    assert sum(each.iops or 0 for each in found.figures) == pytest.approx(result.iops)
    assert found.start is not None
    assert found.start.hosts == 3

    client = Client()
    client.force_login(operator())
    page = client.get(f"/runs/{run.number}/trials/{together.number}/").content.decode()
    assert "The hosts began within" in page
