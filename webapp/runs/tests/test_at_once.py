"""Trials that use several targets at once: what is planned, locked, ordered, taken in, and shown."""

from typing import Any

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from webapp.hosts.models import Host, Target
from webapp.plans.document import Order, Part
from webapp.results.models import Result, Sample, StreamRun, known
from webapp.results.reading.rows import read_rows
from webapp.results.reading.trial_streams import trial_streams
from webapp.runs.actions.run_actions import run_again
from webapp.runs.arming import overwritten
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.dispatch.locks import free, keys_of, wanting
from webapp.runs.dispatch.orders import order_for, total_limit_s
from webapp.runs.models import Attempt, Run, TargetLock, Trial
from webapp.runs.services import StartRefused, start_run
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, queued_orders, run_to_the_end, sample, say
from worker.contract.items import Direction, Item
from worker.contract.orders import TrialOrder
from worker.contract.reports import AttemptReply
from worker.contract.tests.examples import STREAM

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
SECOND_RESULT = replace(
    RESULT, stream=1, started_at=RESULT.started_at + 0.25, ended_at=RESULT.ended_at + 1,
    directions=tuple(replace(each, ios=3 * each.ios, iops=3 * each.iops) for each in RESULT.directions),
)  # fmt: skip
BEGUN: tuple[Item, ...] = (ACCEPTED, STARTED, replace(STARTED, stream=1), sample(), sample(stream=1))


@pytest.fixture
def host() -> Host:
    return a_host()


@pytest.fixture
def drives(host: Host) -> list[Target]:
    """Not in the order of their names."""
    return [a_drive(host, slug=name, device=name) for name in ("nvme2", "nvme0", "nvme1", "nvme3")]


def started(targets: list[Target], at_once: str = "2", **changes: Any) -> Run:
    given: dict[str, Any] = {"by": None, "seed": 1}
    names = ("armed", "by", "seed")
    given |= {name: changes.pop(name) for name in names if name in changes}
    factors = {"pattern": "randread", "at_once": at_once} | changes
    parts = (Part(name="p", factors=factors),)
    document = msgspec.structs.replace(DOCUMENT, parts=parts, repeats=1, order=Order.LISTED)
    return start_run(version=a_version(document), targets=targets, **given)


def names(run: Run) -> list[str]:
    return [trial.target_names for trial in run.trials.order_by("index")]


def dispatched(run: Run) -> Attempt:
    return Attempt.objects.get(run=run, kind="trial")


def to_the_end(host: Host, attempt: Attempt, *results: Item) -> AttemptReply:
    return say(host, attempt, (1, BEGUN), (2, (*results, DONE)))


# ---- planned and ordered


def test_groups_are_made_as_targets_were_chosen_and_made_again(host: Host, drives: list[Target]) -> None:
    run = started(drives)
    assert names(run) == ["nvme2 + nvme0", "nvme1 + nvme3"]
    assert str(Trial.objects.get(run=run, index=0).place) == f"{host}/nvme2 + nvme0"
    assert names(run_again(run=run, by=None)) == names(run)


def test_the_order_has_a_stream_for_each_target(host: Host, drives: list[Target]) -> None:
    run = started(drives[:2])
    (order,) = queued_orders(host)
    assert isinstance(order, TrialOrder)
    assert [(stream.number, stream.target.id) for stream in order.streams] == [(0, "nvme2"), (1, "nvme0")]
    assert order.streams[0].workload == order.streams[1].workload
    assert order.total_limit_s == total_limit_s(order.streams[0].workload, 2)
    assert set(TargetLock.objects.values_list("lock_key", flat=True)) == keys_of(run.trials.get())


def test_settings_are_requested_for_every_stream_and_those_of_the_host_once(host: Host, drives: list[Target]) -> None:
    attempt = dispatched(started(drives[:2]))
    assert attempt.trial
    Trial.objects.filter(pk=attempt.trial.pk).update(settings={"scheduler": "none", "vm.dirty_ratio": "20"})
    order = order_for(Attempt.objects.get(pk=attempt.pk))
    assert isinstance(order, TrialOrder)
    requested = [(request.name, request.stream) for request in order.settings]
    assert requested == [("scheduler", 0), ("scheduler", 1), ("vm.dirty_ratio", 0)]


def test_how_long_a_stream_may_take_reckons_with_a_drive_that_all_share() -> None:
    work = replace(STREAM.workload, amount_bytes=10**9, runtime_s=None, size_bytes=10**9, prefill=True)
    assert total_limit_s(work, 2) - total_limit_s(work) == 2000


# ---- drives in use


def test_it_holds_the_drives_of_all_its_targets(drives: list[Target]) -> None:
    """Another host that sees the second one waits; the two may share a drive themselves."""
    first, second = drives[:2]
    Target.objects.filter(pk=second.pk).update(lock_keys=[*first.lock_keys, *second.lock_keys])
    run = started([first, second])
    assert set(TargetLock.objects.values_list("lock_key", flat=True)) == {*first.lock_keys, *second.lock_keys}
    elsewhere = started([a_drive(a_host(), lock_keys=second.lock_keys)], at_once="1")
    assert not free(elsewhere.trials.get())
    assert not Attempt.objects.filter(run=elsewhere).exists()
    assert set(wanting(Trial.objects.all(), second.lock_keys)) == {run.trials.get(), elsewhere.trials.get()}


def test_it_waits_for_a_drive_of_any_of_its_targets(drives: list[Target]) -> None:
    other = a_drive(a_host(), lock_keys=drives[1].lock_keys)
    busy = started([other], at_once="1")
    waiting = started(drives[:2])
    assert not free(waiting.trials.get())
    assert dispatch_host(drives[0].host_id) is None
    assert wanting(waiting.trials.all(), other.lock_keys).count() == 1
    (entry,) = next(queue.entries for queue in queues() if queue.host == drives[0].host)
    assert entry.waits_for == f"its drive is in use by run {busy.number} on {other.host}"


def test_all_its_drives_are_to_be_armed(drives: list[Target]) -> None:
    first, second = drives[:2]
    with pytest.raises(StartRefused, match=second.serial):
        started([first, second], pattern="randwrite", armed=[first.serial])
    run = started([first, second], pattern="randwrite", armed=[first.serial, second.serial], by=a_user())
    assert set(overwritten(run.trials.all())) == {first, second}
    assert run.trials.get().attempts_left <= 1


# ---- taken in


def test_its_result_is_the_sum_of_its_streams(host: Host, drives: list[Target]) -> None:
    run = started(drives[:2])
    attempt = dispatched(run)
    assert to_the_end(host, attempt, RESULT, SECOND_RESULT).refusal is None
    trial = Trial.objects.get(run=run)
    assert trial.state == "done"
    (measured,) = RESULT.directions
    result = Result.objects.get(trial=trial)
    assert (result.ios, result.iops) == (4 * measured.ios, 4 * measured.iops)
    assert result.bytes == 2 * measured.bytes
    assert result.latency_mean_ns == pytest.approx(measured.latency_mean_ns)
    assert (result.target, known(result.stream_run).stream) == (drives[0], 0)
    assert result.measured_at.timestamp() == pytest.approx(SECOND_RESULT.ended_at)
    assert read_rows(Result.objects.filter(trial=trial))[0].target_name == f"{host}/nvme2 + nvme0"
    assert set(Sample.objects.filter(attempt=attempt).values_list("stream", flat=True)) == {0, 1}
    assert not TargetLock.objects.exists()


def test_what_each_stream_measured_stays(host: Host, drives: list[Target]) -> None:
    run = started(drives[:2])
    to_the_end(host, dispatched(run), SECOND_RESULT, RESULT)
    trial = Trial.objects.get(run=run)
    table = trial_streams(trial, read_rows(Result.objects.filter(trial=trial)))
    assert table
    assert [(row.stream, row.target, row.share_percent) for row in table.figures] == [
        (0, f"{host}/nvme2", 25.0),
        (1, f"{host}/nvme0", 75.0),
    ]
    assert (table.figures[1].started_s, table.last_start_s) == (0.25, 0.25)
    assert table.total_s == pytest.approx(table.overlap_s + 1.25)
    assert table.mostly_overlap


def test_a_trial_of_one_target_keeps_its_figures_once(host: Host, drives: list[Target]) -> None:
    run = started(drives[:1], at_once="1")
    run_to_the_end(host, dispatched(run))
    assert bytes(StreamRun.objects.get(attempt__run=run).directions) == b""
    assert trial_streams(run.trials.get(), read_rows(run.results.all())) is None


@pytest.mark.parametrize("stream", [2, 15])
def test_a_stream_that_is_not_in_the_order_is_refused(host: Host, drives: list[Target], stream: int) -> None:
    attempt = dispatched(started(drives[:2]))
    reply = say(host, attempt, (1, (ACCEPTED, STARTED, replace(STARTED, stream=stream))))
    assert reply.refusal
    assert f"Stream {stream} is not in the order" in reply.refusal.message


@pytest.mark.parametrize(("said", "missing"), [((RESULT,), 1), ((SECOND_RESULT,), 0)], ids=["the second", "the first"])
def test_it_is_not_done_without_a_result_of_every_stream(
    host: Host, drives: list[Target], said: tuple[Item, ...], missing: int
) -> None:
    run = started(drives[:2])
    reply = to_the_end(host, dispatched(run), *said)
    assert reply.refusal
    assert f"no result of stream {missing}" in reply.refusal.message
    assert not Result.objects.filter(run=run).exists()


def test_a_stream_that_never_started_is_missed(host: Host, drives: list[Target]) -> None:
    reply = run_to_the_end(host, dispatched(started(drives[:2])))
    assert reply.refusal
    assert "no result of stream 1" in reply.refusal.message


# ---- shown


def test_pages_and_lists_name_all_its_targets(host: Host, drives: list[Target]) -> None:
    Target.objects.filter(pk__in=[each.pk for each in drives]).update(model="M")
    run = started(drives[:2], at_once="1, 2")
    for trial in run.trials.order_by("index"):
        attempt = trial.attempts.get()
        if trial.stream_count == 1:
            run_to_the_end(host, attempt)
        else:
            to_the_end(host, attempt, RESULT, SECOND_RESULT)
    rows = read_rows(Result.objects.filter(run=run).order_by("trial__index"))
    serials = [each.serial for each in drives[:2]]
    assert [(row.target, row.model, row.serial) for row in rows] == [
        ("nvme2", "M", serials[0]),
        ("nvme0", "M", serials[1]),
        ("nvme2 + nvme0", "M", " + ".join(serials)),
    ]
    client = Client()
    client.force_login(a_user())
    whole = f"{host}/nvme2 + nvme0"
    page = client.get(f"/runs/{run.number}/trials/3/").content.decode()
    assert whole in page
    assert "one per target, started together" in page
    assert "75" in page
    assert "The last stream started 0.250 s after the first" in page
    assert "a stream each" not in client.get(f"/runs/{run.number}/trials/1/").content.decode()
    assert "nvme2 + nvme0" in client.get(f"/runs/{run.number}/").content.decode()
    assert whole in client.get("/results/").content.decode()
    compared = client.get(f"/explore/?run={run.number}", follow=True)
    assert "x=at_once" in compared.redirect_chain[-1][0]
    assert "Targets at once" in compared.content.decode()
    told = client.get(f"/api/v1/trials/{run.trials.get(index=2).pk}").json()
    assert (told["target"], told["results"][0]["target"]) == (whole, whole)
    assert [stream["target"] for stream in told["streams"]] == [f"{host}/nvme2", f"{host}/nvme0"]
    assert "nvme2 + nvme0" in client.get(f"/results.csv?run={run.number}").getvalue().decode()


@pytest.mark.parametrize(
    ("direction", "told"),
    [(Direction.TRANSACTION, ("iops", "bytes_per_s")), (Direction.RESYNC, ("iops", "latency_mean_ns"))],
)
def test_the_api_tells_null_for_what_a_stream_cannot_have(
    host: Host, drives: list[Target], direction: Direction, told: tuple[str, str]
) -> None:
    run = started(drives[:2])
    beside = replace(SECOND_RESULT, directions=(replace(SECOND_RESULT.directions[0], direction=direction),))
    to_the_end(host, dispatched(run), RESULT, beside)
    client = Client()
    client.force_login(a_user())
    first, second = client.get(f"/api/v1/trials/{run.trials.get().pk}").json()["streams"]
    assert first["iops"] == RESULT.directions[0].iops
    assert second["direction"] == direction
    assert {name for name in ("iops", "bytes_per_s", "latency_mean_ns") if second[name] is None} >= set(told)


def test_an_ordinary_second_of_two_streams_needs_as_many_statements_as_of_one(host: Host, drives: list[Target]) -> None:
    attempt = dispatched(started(drives[:2]))
    say(host, attempt, (1, BEGUN))
    say(host, attempt, (2, (sample(1), sample(1, stream=1))))
    with CaptureQueriesContext(connection) as queries:
        say(host, attempt, (3, (sample(2), sample(2, stream=1))))
    assert len(queries) == 5, [query["sql"] for query in queries]  # begin, lock, copy, update, commit
    assert Sample.objects.filter(attempt=attempt).count() == 6


def test_a_second_of_a_stream_that_has_not_started_is_refused(host: Host, drives: list[Target]) -> None:
    attempt = dispatched(started(drives[:2]))
    say(host, attempt, (1, (ACCEPTED, STARTED, sample())))
    reply = say(host, attempt, (2, (sample(1), sample(1, stream=1))))
    assert reply.refusal
    assert "stream 1, which has not started" in reply.refusal.message
