"""Each fault of the order channel and the return path, once, with the real parts.

After each: every trial recorded exactly once or failed with its reason, no order open, no lock held.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.db.models import QuerySet

from webapp.runs.models import Attempt, AttemptKind, Run, RunState
from webapp.runs.services import cancel_run
from webapp.tests.conftest import SCRATCH
from webapp.tests.system import StorageHost, System
from webapp.tests.whole_runs import assert_nothing_open, assert_whole, plan, samples_of, scratch
from worker.contract.base import MAX_REPORT_BYTES, decode, encode
from worker.contract.items import Accepted, Finished, Outcome
from worker.contract.orders import queue_name
from worker.contract.reports import Batch, Report, ReportReply

pytestmark = [pytest.mark.pipeline]


def trial_attempts(run: Run) -> QuerySet[Attempt]:
    return run.attempts.filter(kind=AttemptKind.TRIAL)


def broker() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL)


def test_it_outlives_an_emptied_broker(system: System, storage: StorageHost) -> None:
    """The order is gone before it is accepted: it is published again, as the same attempt."""
    storage.stop()
    run = system.start_run(plan(), scratch(storage))
    with broker() as connection:
        assert connection.delete(queue_name(str(storage.host.id))) == 1, "no order was in the broker"
    attempt = trial_attempts(run).get()
    storage.start()
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE
    assert trial_attempts(run).get() == attempt
    assert_whole(run)
    assert_nothing_open()


def test_it_runs_an_order_once_that_is_delivered_twice(system: System, storage: StorageHost) -> None:
    storage.stop()
    run = system.start_run(plan(), scratch(storage))
    queue = queue_name(str(storage.host.id))
    with broker() as connection:
        (message,) = connection.lrange(queue, 0, -1)
        connection.lpush(queue, message)
    storage.start()
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE
    assert trial_attempts(run).count() == 1
    assert_whole(run)
    assert_nothing_open()


def test_it_loses_no_sample_while_the_server_is_down(system: System, storage: StorageHost) -> None:
    """It goes in the middle of a trial, which goes on and ends in that time."""
    run = system.start_run(plan(runtime="8s"), scratch(storage))
    system.until(lambda: samples_of(run).count() >= 2, limit_s=30, what="two samples")
    system.web.kill()
    heard = len(storage.log)
    system.until(lambda: "Ended: done" in storage.log[heard:], limit_s=60, what="the trial ends on the host")
    seen = samples_of(run).count()
    assert seen < 8, "the server was not really down"
    system.web.start()
    system.until_ended(run, limit_s=60)
    assert run.state == RunState.DONE
    assert samples_of(run).count() >= 8
    assert_whole(run)
    assert trial_attempts(run).count() == 1
    assert_nothing_open()


def test_it_reports_a_trial_whose_worker_was_killed(system: System, storage: StorageHost) -> None:
    run = system.start_run(plan(runtime="30s", retries=0), scratch(storage))
    system.until(lambda: samples_of(run).exists(), limit_s=30, what="samples stream")
    storage.kill()
    storage.start()
    system.until_ended(run, limit_s=60)
    trial = run.trials.get()
    assert trial.state == "failed"
    assert trial.reason_code == "worker_died"
    assert run.state == RunState.FAILED
    assert_nothing_open()


class Speaker:
    """Posts reports with a host's own token, as its worker would."""

    def __init__(self, system: System, storage: StorageHost) -> None:
        from worker.link.enrolment import find_paths, load_enrolment  # only a test looks into a worker's state

        self._url = system.web.url + "/api/worker/v1/report"
        paths = find_paths(state=str(system.folder / storage.slug), policy="")
        self._token = load_enrolment(paths).host_token

    def post(self, *batches: Batch) -> ReportReply:
        import urllib3

        answer = urllib3.PoolManager().request(
            "POST", self._url, body=encode(Report(batches=batches)),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )  # fmt: skip
        assert answer.status == 200, answer.data
        return decode(answer.data, ReportReply, limit=MAX_REPORT_BYTES)


@pytest.fixture
def waiting(system: System, storage: StorageHost) -> Iterator[tuple[Attempt, Speaker]]:
    """An attempt that no worker takes, so that the test can speak for its host."""
    storage.stop()
    run = system.start_run(plan(retries=0), scratch(storage))
    yield trial_attempts(run).get(), Speaker(system, storage)
    cancel_run(run=run, by=None)
    storage.start()
    system.until_ended(run, limit_s=60)


def accepted(attempt: Attempt, seq: int = 1) -> Batch:
    return Batch(attempt=str(attempt.id), seq=seq, items=(Accepted(at=time.time(), worker_version="test"),))


def ended(attempt: Attempt, seq: int) -> Batch:
    last = Finished(at=time.time(), outcome=Outcome.FAILED, code="internal_error", message="ended by a test")
    return Batch(attempt=str(attempt.id), seq=seq, items=(last,))


def test_it_takes_a_batch_once_that_comes_twice(waiting: tuple[Attempt, Speaker]) -> None:
    attempt, speaker = waiting
    for _ in range(2):
        (reply,) = speaker.post(accepted(attempt)).attempts
        assert (reply.confirmed_seq, reply.refusal) == (1, None)
    assert attempt.transitions.filter(after="accepted").count() == 1


def test_it_asks_for_what_is_missing_when_batches_come_out_of_order(waiting: tuple[Attempt, Speaker]) -> None:
    attempt, speaker = waiting
    (reply,) = speaker.post(ended(attempt, seq=2)).attempts
    assert (reply.confirmed_seq, reply.refusal) == (0, None)
    attempt.refresh_from_db()
    assert attempt.state == "dispatched"
    (reply,) = speaker.post(accepted(attempt), ended(attempt, seq=2)).attempts
    assert reply.confirmed_seq == 2
    attempt.refresh_from_db()
    assert attempt.state == "failed"


def test_it_refuses_more_of_a_closed_attempt(waiting: tuple[Attempt, Speaker]) -> None:
    attempt, speaker = waiting
    speaker.post(accepted(attempt), ended(attempt, seq=2))
    (reply,) = speaker.post(ended(attempt, seq=3)).attempts
    assert reply.refusal is not None
    assert reply.refusal.code == "attempt_closed"


def test_it_takes_nothing_from_the_wrong_host(system: System, waiting: tuple[Attempt, Speaker], tmp_path: Path) -> None:
    attempt, _ = waiting
    other_scratch = tmp_path / "other"
    other_scratch.mkdir(mode=0o755)
    other = system.add_host("storage2", SCRATCH.format(path=other_scratch))
    (reply,) = Speaker(system, other).post(accepted(attempt)).attempts
    assert reply.refusal is not None
    assert reply.refusal.code == "unknown_attempt"
    attempt.refresh_from_db()
    assert (attempt.state, attempt.confirmed_seq) == ("dispatched", 0)
