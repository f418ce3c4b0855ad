"""Reports of several hosts that come at the same moment: one transaction, and none spoils another's."""

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from django.db import connection, transaction

from webapp.core.tests.factories import a_host, a_run, a_target
from webapp.core.tests.worker import ACCEPTED, DONE, RESULT, STARTED, failed, run_to_the_end, sample, say
from webapp.results import combining, together
from webapp.results.models import Result, Sample
from webapp.results.together import Piece, take
from webapp.runs.dispatch import dispatch_host
from webapp.runs.models import Attempt, AttemptState
from worker.contract.items import Item, Sensor, SensorKind
from worker.contract.reports import AttemptReply, Batch

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]

STORY = (ACCEPTED, STARTED, sample(0), sample(1), RESULT, DONE)


@pytest.fixture
def attempts() -> list[Attempt]:
    """Of one run, on three hosts."""
    hosts = [a_host() for _ in range(3)]
    a_run(*[a_target(host) for host in hosts], trials=1)
    return [attempt for host in hosts if (attempt := dispatch_host(host.pk))]


def piece(attempt: Attempt, *items: Item, seq: int = 1) -> Piece:
    batch = Batch(attempt=str(attempt.pk), seq=seq, items=items or STORY)
    return Piece(attempt.host.token_hash, attempt.pk, [batch], 0)


def states() -> list[str]:
    return list(Attempt.objects.exclude(kind="close_run").order_by("created_at").values_list("state", flat=True))


def test_it_takes_what_several_hosts_say_in_one_transaction(attempts: list[Attempt]) -> None:
    pieces = [piece(attempts[0]), piece(attempts[1], ACCEPTED, STARTED, sample(0)), piece(attempts[2], failed())]
    take(pieces)
    assert states() == [AttemptState.DONE, AttemptState.RUNNING, AttemptState.FAILED]
    assert [(each.finished is not None, each.answer and each.answer.confirmed_seq) for each in pieces] == [
        (True, 1), (False, 1), (True, 1)
    ]  # fmt: skip
    assert (Sample.objects.count(), Result.objects.count(), _transactions()) == (3, 1, 1)
    kept = Result.objects.get()
    assert (kept.stream_run.attempt_id, kept.target_id) == (
        attempts[0].pk,
        attempts[0].trial and attempts[0].trial.target_id,
    )


def test_it_goes_on_with_streams_that_began_in_earlier_reports(attempts: list[Attempt]) -> None:
    take([piece(attempt, ACCEPTED, STARTED, sample(0)) for attempt in attempts])
    take([piece(attempt, sample(1), RESULT, DONE, seq=2) for attempt in attempts])
    assert states() == [AttemptState.DONE] * 3
    assert (Sample.objects.count(), Result.objects.count()) == (6, 3)
    assert not any(bytes(result.stream_run.directions) for result in Result.objects.all())


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
    """None of them together; then each alone, and only the wrong one fails."""
    stories = [STORY, (*wrong, DONE), STORY]
    pieces = [piece(attempt, *story) for attempt, story in zip(attempts, stories, strict=True)]
    take(pieces)
    assert [each.answer for each in pieces] == [None] * 3
    assert states() == [AttemptState.DISPATCHED] * 3
    replies = [say(attempt.host, attempt, (1, story)) for attempt, story in zip(attempts, stories, strict=True)]
    assert states() == [AttemptState.DONE, AttemptState.FAILED, AttemptState.DONE]
    assert [reply.refusal.code if reply.refusal else "" for reply in replies] == ["", "bad_item", ""]


def test_it_leaves_alone_what_needs_more_than_to_be_written(attempts: list[Attempt]) -> None:
    ended, locked, foreign = attempts
    run_to_the_end(ended.host, ended)
    stranger = Piece(ended.host.token_hash, foreign.pk, piece(foreign).batches, 0)
    twice = [piece(locked), piece(locked)]
    with _locked_elsewhere(locked):
        take([piece(ended), stranger, *twice])
        assert [twice[0].answer, twice[1].answer, stranger.answer] == [None] * 3
    assert states() == [AttemptState.DONE, AttemptState.DISPATCHED, AttemptState.DISPATCHED]
    take([*(again := [piece(locked), piece(locked)]), piece(ended)])
    assert [each.answer is not None for each in again] == [True, False]
    assert states() == [AttemptState.DONE, AttemptState.DONE, AttemptState.DISPATCHED]


class _locked_elsewhere:  # noqa: N801 - read as a phrase
    """Another connection holds the attempt's row."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt, self._held, self._done = attempt, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with transaction.atomic():
            Attempt.objects.select_for_update(no_key=True).get(pk=self._attempt.pk)
            self._held.set()
            self._done.wait(60)
        connection.close()

    def __enter__(self) -> None:
        self._thread.start()
        assert self._held.wait(60)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def test_it_writes_together_what_comes_while_others_are_read(
    attempts: list[Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(combining, "MOST_S", 60.0)
    with ThreadPoolExecutor(3) as pool:
        with together.coming():
            said = [pool.submit(_say_and_close, attempt) for attempt in attempts]
            while len(together._combiner._waiting) < 3:
                assert not any(each.done() for each in said)
        assert [each.result().confirmed_seq for each in said] == [1] * 3
    assert states() == [AttemptState.DONE] * 3
    assert _transactions() == 1


def _say_and_close(attempt: Attempt) -> AttemptReply:
    try:
        return say(attempt.host, attempt, (1, STORY))
    finally:
        connection.close()


def _transactions() -> int:
    """How many have written samples."""
    with connection.cursor() as cursor:
        cursor.execute("select count(distinct xmin::text) from results_sample")
        (number,) = cursor.fetchone() or (0,)
    return int(number)


def test_it_keeps_the_same_of_sensors_in_both_ways_to_write_a_second(attempts: list[Attempt]) -> None:
    """By COPY, whose arrays are packed here, and as an ordinary second."""
    told = [(0.1, 2.5, -7.0), (None, 1e-3, None), (), (float(2**24 + 1), 3e38, 0.0)]
    seconds = [msgspec.structs.replace(sample(n), telemetry=values) for n, values in enumerate(told)]
    sensors = tuple(Sensor(kind=SensorKind.CPU_USER, name=f"cpu{number}") for number in range(3))
    one, other = attempts[:2]
    take([piece(one, ACCEPTED, msgspec.structs.replace(STARTED, sensors=sensors), *seconds)])
    say(other.host, other, (1, (ACCEPTED, STARTED)))
    say(other.host, other, *((2 + n, (second,)) for n, second in enumerate(seconds)))
    kept = _telemetry(one)
    assert kept == _telemetry(other)
    assert [None if values is None else len(values) for values in kept] == [3, 3, None, 3]
    assert kept[1] == [None, pytest.approx(1e-3), None]


def _telemetry(attempt: Attempt) -> list[list[float | None] | None]:
    return list(Sample.objects.filter(attempt=attempt).order_by("second").values_list("telemetry", flat=True))
