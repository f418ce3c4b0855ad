"""A stolen token of a host cannot fill the database with samples, nor with attempts that do not exist."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from msgspec.structs import replace

from webapp.core.models import Counter
from webapp.core.services import counted
from webapp.hosts.models import Host
from webapp.results.ingest import write
from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.results.models import Configuration, Sample, StreamRun
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import STOP_LIMIT, expire_leases
from webapp.runs.models import Attempt, AttemptKind, AttemptState, Run, RunState, SettingChange, TrialState
from webapp.runs.services import cancel_run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, CANCELLED, DONE, STARTED, sample, say
from webapp.tests.factories.runs import a_run
from worker.contract.base import encode
from worker.contract.items import Item, Observed, SettingRecord
from worker.contract.reports import Batch, Report
from worker.contract.tests.examples import AT, PURGED

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def running() -> tuple[Host, Attempt]:
    host = a_host()
    a_run(a_target(host))
    attempt = dispatch_host(host.pk)
    assert attempt
    say(host, attempt, (1, (ACCEPTED, STARTED)))
    return host, attempt


def test_it_takes_no_seconds_that_the_trial_cannot_have_lasted(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    reply = say(host, attempt, (2, (sample(), sample(second=10_000_000 // 10))))
    assert reply.refusal
    assert "cannot have lasted so long" in reply.refusal.message
    assert not Sample.objects.exists()


def test_it_takes_few_samples_in_a_second(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    many = tuple(replace(sample(), offset_ms=number, length_ms=1) for number in range(1, 1900))
    reply = say(host, attempt, (2, many))
    assert reply.refusal
    assert "too many samples" in reply.refusal.message


def test_it_takes_a_last_sample_of_a_moment(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    moment = replace(sample(), offset_ms=1003, length_ms=3)
    assert say(host, attempt, (2, (sample(), moment))).refusal is None


def test_it_takes_a_limited_number_of_other_rows(
    running: tuple[Host, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_ROWS", {SettingChange: 5})
    host, attempt = running
    record = SettingRecord(at=AT, name="scheduler", device="sda", before="a", asked="b", observed="b")
    assert say(host, attempt, (2, (record,) * 5)).refusal is None
    reply = say(host, attempt, (3, (record,)))
    assert reply.refusal
    assert "more than 5" in reply.refusal.message


def refused(host: Host, attempt: Attempt, *items: Item) -> str:
    reply = say(host, attempt, (2, items))
    assert reply.refusal
    return reply.refusal.message


def test_it_stores_one_configuration_of_an_attempt(running: tuple[Host, Attempt]) -> None:
    facts = [Observed(at=AT, facts={"a": str(number)}) for number in range(2)]
    assert "another configuration" in refused(*running, *facts)
    assert not Configuration.objects.exists()


def test_it_takes_the_same_configuration_twice(running: tuple[Host, Attempt]) -> None:
    facts = Observed(at=AT, facts={"a": "b"})
    assert say(*running, (2, (facts, facts))).refusal is None
    assert say(*running, (3, (facts,))).refusal is None
    assert Configuration.objects.count() == 1


def test_it_takes_no_configuration_of_a_size_that_no_host_needs(running: tuple[Host, Attempt]) -> None:
    facts = Observed(at=AT, facts={f"a{number}": "x" * 2000 for number in range(600)})
    assert "at most" in refused(*running, facts)
    assert not Configuration.objects.exists()


def test_it_takes_no_command_of_a_size_that_no_stream_needs() -> None:
    host = a_host()
    a_run(a_target(host))
    attempt = dispatch_host(host.pk)
    assert attempt
    reply = say(host, attempt, (1, (ACCEPTED, replace(STARTED, command=("x" * 2000,) * 40))))
    assert reply.refusal
    assert "command" in reply.refusal.message
    assert not StreamRun.objects.exists()


def test_it_takes_a_limited_number_of_purged_drives(
    running: tuple[Host, Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "MAX_PURGED", 2)
    assert say(*running, (2, (PURGED, PURGED))).refusal is None
    reply = say(*running, (3, (PURGED,)))
    assert reply.refusal
    assert "purged drives" in reply.refusal.message


def test_it_works_little_for_many_unknown_attempts() -> None:
    host = a_host()
    names = [str(uuid.uuid4()) for _ in range(500)]
    report = Report(batches=tuple(Batch(attempt=name, seq=1, items=(ACCEPTED,)) for name in names))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        reply = take_report(host=host, parsed=parse_report(encode(report)))
    assert {each.refusal.code for each in reply.attempts if each.refusal} == {"unknown_attempt"}
    assert len(reply.attempts) == 500
    assert len(queries) <= 4
    assert counted(Counter.REFUSED, "unknown_attempt") == 500


def test_a_cancelled_run_ends_whatever_its_host_claims(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    run = attempt.run
    assert run is not None
    cancel_run(run=run, by=a_user())
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now() - STOP_LIMIT - timedelta(seconds=1))
    assert say(host, attempt, (2, (sample(),))).cancel
    assert expire_leases() == 1
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.LOST
    again = say(host, attempt, (3, (sample(1),)))
    assert again.refusal
    assert again.refusal.code == "superseded"
    assert attempt.trial is not None
    assert run.trials.get(pk=attempt.trial.pk).state == TrialState.CANCELLED


def test_a_cancelled_run_ends_although_its_host_restores_for_ever(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    run = attempt.run
    assert run is not None
    cancel_run(run=run, by=a_user())
    say(host, attempt, (2, (CANCELLED,)))
    Attempt.objects.filter(pk=attempt.pk).update(created_at=timezone.now() - timedelta(hours=5))
    for hours in (1, 3):
        closing = Attempt.objects.get(run=run, kind=AttemptKind.CLOSE_RUN, ended_at=None)
        ago = timezone.now() - timedelta(hours=hours, seconds=1)
        Run.objects.filter(pk=run.pk).update(cancel_requested_at=ago)
        Attempt.objects.filter(pk=closing.pk).update(created_at=timezone.now() - STOP_LIMIT - timedelta(seconds=1))
        say(host, closing, (1, (ACCEPTED,)))
        assert expire_leases() == 1
        dispatch_host(host.pk)
    run.refresh_from_db()
    assert (run.state, run.reason_code) == (RunState.FAILED, "settings_not_restored")


def test_a_host_that_was_away_restores_a_run_that_was_cancelled_long_ago(running: tuple[Host, Attempt]) -> None:
    host, attempt = running
    run = attempt.run
    assert run is not None
    cancel_run(run=run, by=a_user())
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now() - timedelta(days=3))
    say(host, attempt, (2, (CANCELLED,)))
    closing = Attempt.objects.get(run=run, kind=AttemptKind.CLOSE_RUN, ended_at=None)
    say(host, closing, (1, (ACCEPTED,)))
    assert expire_leases() == 0
    say(host, closing, (2, (DONE,)))
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
