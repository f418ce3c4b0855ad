"""Rounds end when their tracked points are steady, part by part."""

import msgspec
import pytest
from django.test import Client

from webapp.core.models import AuditEntry, User
from webapp.hosts.models import Host
from webapp.plans.document import Order, Part, PartStream, PlanDocument
from webapp.results.rounds import tracked_points
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, Run
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, run_to_the_end, say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
FALLING = (200e6, 150e6, 110e6, 101e6, 99e6, 100e6, 101e6)  # the last five are the first that are steady


def measure(host: Host, bytes_per_s: float) -> None:
    dispatch_host(host.pk)
    attempt = Attempt.objects.filter(host=host, ended_at=None).get()
    (read,) = RESULT.directions
    result = msgspec.structs.replace(RESULT, directions=(msgspec.structs.replace(read, bytes_per_s=bytes_per_s),))
    run_to_the_end(host, attempt, result=result)


@pytest.fixture
def run() -> Run:
    """Part one tracks its points of 4 KiB, of two block sizes; part two has no rounds. Both have eight repeats."""
    document = PlanDocument(
        title="Rounds", order=Order.LISTED, repeats=8, common={"size": "64M", "runtime": "3s", "pattern": "randread"},
        parts=(
            Part(name="one", factors={"block_size": "4k, 1M"}, rules=("rounds until steady block_size=4k",),
                 before=("once flush",)),
            Part(name="two", factors={"block_size": "8k"}),
        ),
    )  # fmt: skip
    return start_run(version=a_version(document), targets=[a_target()], by=None)


def states(run: Run, part: str) -> list[str]:
    return list(run.trials.filter(part=part).order_by("index").values_list("state", flat=True))


def test_the_rounds_of_a_part_end_once_its_tracked_point_is_steady(run: Run, client: Client) -> None:
    host = run.targets.get().host
    for number, rate in enumerate(FALLING, start=1):
        assert "cancelled" not in states(run, "one"), number
        measure(host, rate)
        measure(host, 1e6 * number)  # 1M is not steady, and not tracked
    assert states(run, "one") == ["done"] * 14 + ["cancelled"] * 2
    assert "cancelled" not in states(run, "two")
    words = "Not needed: after 7 rounds, the tracked points are steady after SNIA PTS 2.0."
    assert run.trials.filter(part="one").order_by("-index")[0].reason == words
    assert AuditEntry.objects.filter(action="run.skip_rounds").count() == 1
    (tracked,) = tracked_points(run)
    assert (tracked.part, tracked.count, tracked.point["block_size"]) == ("one", 7, 4096)
    assert tracked.verdict
    assert tracked.verdict.steady
    client.force_login(User.objects.create(username="o"))
    (told,) = client.get(f"/api/v1/runs/{run.number}/rounds").json()
    assert (told["part"], told["rounds"], told["steady"]) == ("one", 7, True)
    assert (told["point"]["block_size"], told["target"]) == (4096, str(run.targets.get()))
    assert 0 < told["range_percent"] < 20
    compared = client.get(f"/api/v1/compare?x=block_size&run={run.number}").json()
    assert any("1 of 1 tracked points are steady" in note for note in compared["notes"]), compared["notes"]
    page = client.get(f"/runs/{run.number}/").content.decode()
    assert "Steady state over rounds" in page
    assert "<td>steady</td>" in page


def test_rounds_that_never_become_steady_are_all_measured_and_said_so(run: Run) -> None:
    host = run.targets.get().host
    for rate in (100e6, 130e6) * 4:
        measure(host, rate)
        measure(host, 1e6)
    assert states(run, "one") == ["done"] * 16
    (tracked,) = tracked_points(run)
    assert tracked.verdict
    assert not tracked.verdict.steady


def test_results_of_named_streams_count_in_rounds() -> None:
    streams = tuple(PartStream(name=name, factors={"iodepth": depth}) for name, depth in (("a", "1"), ("b", "8")))
    part = Part(name="p", factors={"streams": "together", "block_size": "4k"}, streams=streams,
                rules=("rounds until steady block_size=4k",))  # fmt: skip
    common = {"size": "64M", "runtime": "3s", "pattern": "randread"}
    document = PlanDocument(title="Rounds", order=Order.LISTED, repeats=5, common=common, parts=(part,))
    run = start_run(version=a_version(document), targets=[a_target()], by=None)
    host = run.targets.get().host
    dispatch_host(host.pk)
    attempt = Attempt.objects.get(host=host, ended_at=None)
    started = tuple(msgspec.structs.replace(STARTED, stream=number) for number in range(2))
    results = tuple(msgspec.structs.replace(RESULT, stream=number, samples=0) for number in range(2))
    say(host, attempt, (1, (ACCEPTED, *started)), (2, (*results, DONE)))
    (tracked,) = tracked_points(run)
    assert tracked.count == 1
