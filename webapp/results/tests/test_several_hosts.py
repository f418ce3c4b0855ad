"""Reports of several hosts: a bad one fails its own attempt and no other."""

import msgspec
import pytest

from webapp.results.models import Result, Sample, known
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, sample, say
from webapp.tests.factories.runs import a_run
from webapp.tests.threads import at_once
from worker.contract.items import Item, Sensor, SensorKind
from worker.contract.reports import AttemptReply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]

STORY = (ACCEPTED, STARTED, sample(0), sample(1), RESULT, DONE)


@pytest.fixture
def attempts() -> list[Attempt]:
    """Of one run, on three hosts."""
    hosts = [a_host() for _ in range(3)]
    a_run(*[a_target(host) for host in hosts], trials=1)
    return [attempt for host in hosts if (attempt := dispatch_host(host.pk))]


def states() -> list[str]:
    return list(Attempt.objects.exclude(kind="close_run").order_by("created_at").values_list("state", flat=True))


def test_it_takes_reports_of_several_hosts_at_the_same_time(attempts: list[Attempt]) -> None:
    def report(attempt: Attempt) -> AttemptReply:
        return say(attempt.host, attempt, (1, STORY))

    replies = at_once(*[lambda attempt=attempt: report(attempt) for attempt in attempts])
    assert [reply.confirmed_seq for reply in replies] == [1] * 3  # type: ignore[attr-defined]
    assert states() == [AttemptState.DONE] * 3
    assert (Sample.objects.count(), Result.objects.count()) == (6, 3)


def test_it_continues_streams_that_began_in_earlier_reports(attempts: list[Attempt]) -> None:
    for attempt in attempts:
        say(attempt.host, attempt, (1, (ACCEPTED, STARTED, sample(0))))
    for attempt in attempts:
        say(attempt.host, attempt, (2, (sample(1), RESULT, DONE)))
    assert states() == [AttemptState.DONE] * 3
    assert (Sample.objects.count(), Result.objects.count()) == (6, 3)
    assert not any(bytes(known(result.stream_run).directions) for result in Result.objects.all())


@pytest.mark.parametrize(
    "wrong",
    [
        (STARTED,),  # a move that is none: it never began, and says that it is done
        (STARTED, sample(0), sample(0)),
        (STARTED, msgspec.structs.replace(sample(0), at=1e300)),
        (STARTED, msgspec.structs.replace(sample(0), telemetry=(1e300,))),
        (msgspec.structs.replace(STARTED, job_text="\0"),),
    ],
)
def test_it_takes_the_others_where_one_cannot_be_true(attempts: list[Attempt], wrong: tuple[Item, ...]) -> None:
    stories = [STORY, (*wrong, DONE), STORY]
    replies = [say(attempt.host, attempt, (1, story)) for attempt, story in zip(attempts, stories, strict=True)]
    assert states() == [AttemptState.DONE, AttemptState.FAILED, AttemptState.DONE]
    assert [reply.refusal.code if reply.refusal else "" for reply in replies] == ["", "bad_item", ""]


def test_it_keeps_the_values_of_sensors(attempts: list[Attempt]) -> None:
    told = [(0.1, 2.5, -7.0), (None, 1e-3, None), (), (float(2**24 + 1), 3e38, 0.0)]
    seconds = [msgspec.structs.replace(sample(n), telemetry=values) for n, values in enumerate(told)]
    sensors = tuple(Sensor(kind=SensorKind.CPU_USER, name=f"cpu{number}") for number in range(3))
    attempt = attempts[0]
    say(attempt.host, attempt, (1, (ACCEPTED, msgspec.structs.replace(STARTED, sensors=sensors), *seconds)))
    kept = list(Sample.objects.order_by("offset_ms").values_list("telemetry", flat=True))
    assert kept == [
        [pytest.approx(0.1), 2.5, -7.0], [None, pytest.approx(1e-3), None], None,
        [pytest.approx(2**24 + 1), pytest.approx(3e38), 0.0],
    ]  # fmt: skip
