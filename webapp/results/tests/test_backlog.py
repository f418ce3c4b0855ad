"""What a host sends after an outage: a whole trial in one report, taken as a set and as exactly as bit by bit."""

from datetime import timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.hosts.models import Host
from webapp.results.models import Result, Sample, StreamRun
from webapp.results.retention import create_partitions
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptState, TargetLock, Transition
from webapp.runs.tasks import dispatch_all
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, run_to_the_end, sample, say
from webapp.tests.factories.runs import a_run
from worker.contract.items import Item

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]

SECONDS = 60
Batches = list[tuple[int, tuple[Item, ...]]]


@pytest.fixture
def attempt() -> Attempt:
    """The first attempt of a run of two trials on one host."""
    run = a_run(a_target(), trials=2)
    dispatched = dispatch_host(run.targets.get().host_id)
    assert dispatched
    return dispatched


def story(seconds: int = SECONDS) -> Batches:
    """A trial from its beginning to its end, a batch a second."""
    samples: Batches = [(3 + second, (sample(second),)) for second in range(seconds)]
    return [(1, (ACCEPTED,)), (2, (STARTED,)), *samples, (3 + seconds, (RESULT, DONE))]


def test_it_takes_a_whole_trial_in_few_statements(attempt: Attempt) -> None:
    """However long it is: as many statements for a minute as for two."""
    create_partitions()  # only the first sample of a process looks for them
    host, counts = Host.objects.get(), []
    for seconds in (SECONDS, 2 * SECONDS):
        following = Attempt.objects.latest("created_at")
        with CaptureQueriesContext(connection) as captured:
            reply = say(host, following, *story(seconds))
        assert (reply.confirmed_seq, reply.refusal) == (seconds + 3, None)
        counts.append(len(captured))
        dispatch_all()
    assert (Sample.objects.count(), Result.objects.count()) == (3 * SECONDS, 2)
    assert counts[0] == counts[1] <= 40, counts


def test_it_keeps_the_same_of_a_trial_at_once_as_of_one_bit_by_bit(attempt: Attempt) -> None:
    for batch in story(3):
        say(attempt.host, attempt, batch)
    following = Attempt.objects.latest("created_at")
    say(attempt.host, following, *story(3))
    assert [_kept(each) for each in (attempt, following)] == [_kept(attempt)] * 2
    assert not TargetLock.objects.filter(attempt__in=[attempt, following]).exists()


def _kept(attempt: Attempt) -> list[object]:
    attempt.refresh_from_db()
    streams = StreamRun.objects.filter(attempt=attempt).defer("attempt")
    moves = Transition.objects.filter(trial=attempt.trial).values_list("before", "after", "code", "fields")
    return [
        (attempt.state, attempt.confirmed_seq, attempt.phase, None in (attempt.accepted_at, attempt.started_at)),
        [(stream.stream, stream.started_at, stream.ended_at, stream.engine_version) for stream in streams],
        [bytes(stream.directions) for stream in streams],
        [attachment.content for stream in streams for attachment in stream.attachments.all()],
        list(moves),
        list(Sample.objects.filter(attempt=attempt).values_list("offset_ms", "ios", "at").order_by("offset_ms")),
        list(Result.objects.filter(stream_run__attempt=attempt).values_list("direction", "ios", "iops", "p50_ns")),
    ]


def test_it_takes_a_whole_trial_once_that_is_sent_twice(attempt: Attempt) -> None:
    replies = [say(attempt.host, attempt, *story()) for _ in range(2)]
    assert [(reply.confirmed_seq, reply.refusal) for reply in replies] == [(SECONDS + 3, None)] * 2
    assert (Sample.objects.count(), Result.objects.count()) == (SECONDS, 1)


def test_it_leaves_what_is_next_to_the_tick(attempt: Attempt) -> None:
    """After an outage that may be asked for hundreds of hosts, each in the middle of the others' reports."""
    say(attempt.host, attempt, *story())
    assert list(Attempt.objects.values_list("state", flat=True)) == [AttemptState.DONE]
    dispatch_all()
    assert Attempt.objects.latest("created_at").state == AttemptState.DISPATCHED


def test_it_gives_the_next_order_at_once_to_a_host_that_keeps_up(attempt: Attempt) -> None:
    run_to_the_end(attempt.host, attempt)
    assert Attempt.objects.latest("created_at").state == AttemptState.DISPATCHED


def test_the_tick_asks_nothing_of_hosts_that_are_busy_or_away(attempt: Attempt) -> None:
    with CaptureQueriesContext(connection) as captured:
        dispatch_all()
    assert len(captured) == 1
    run_to_the_end(attempt.host, attempt)
    say(attempt.host, Attempt.objects.latest("created_at"), *story())
    host = Host.objects.get()
    assert host.last_seen_at
    Host.objects.update(last_seen_at=host.last_seen_at - timedelta(hours=1))
    with CaptureQueriesContext(connection) as captured:
        dispatch_all()
    assert len(captured) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (sample(0), "already exists"),
        (msgspec.structs.replace(sample(99), telemetry=(1e300,)), "out of range"),
        (msgspec.structs.replace(sample(99), at=1e300), "not a valid Unix time"),
    ],
)
def test_it_refuses_one_wrong_second_among_many_in_words(attempt: Attempt, wrong: Item, words: str) -> None:
    """The batches before it are taken, it is refused by its number, and its attempt fails.

    Binary COPY would cut off a number that is too large for its column.
    """
    said = story()
    said.insert(-1, (SECONDS + 3, (wrong,)))
    said[-1] = (SECONDS + 4, said[-1][1])
    reply = say(attempt.host, attempt, *said)
    assert reply.refusal
    assert (reply.refusal.code, reply.refusal.seq) == ("bad_item", SECONDS + 3)
    assert reply.confirmed_seq == SECONDS + 2
    assert words in reply.refusal.message
    attempt.refresh_from_db()
    assert (attempt.outcome_code, attempt.confirmed_seq) == ("bad_item", SECONDS + 2)
    assert Sample.objects.count() == SECONDS
    assert not Result.objects.exists()
