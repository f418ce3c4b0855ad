"""Who holds the session of a host, and what becomes of a second worker with its identity."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone
from msgspec.structs import replace

from webapp.core.models import AuditEntry
from webapp.hosts.models import Host
from webapp.hosts.sessions import HEARD_WITHIN, IN_FLIGHT, SecondWorker, claim_session, second_worker_words
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind
from webapp.tests.factories.hosts import a_host_with_token, a_target
from webapp.tests.factories.reports import queued_orders, run_to_the_end
from webapp.tests.factories.runs import a_run
from webapp.worker_api.tests.posting import post, problem
from worker.contract.greetings import SESSION_OTHER, HelloReply
from worker.contract.reports import Report
from worker.contract.tests.examples import HELLO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


class Workers:
    """Workers with the token of one host."""

    def __init__(self) -> None:
        self.host, self.token = a_host_with_token(last_seen_at=None)

    def hello(self, session: str, *earlier: str, hostname: str = "store1") -> Any:
        message = replace(
            HELLO, session=session, earlier_sessions=earlier, inventory=replace(HELLO.inventory, hostname=hostname)
        )
        return post("hello", message, self.token)

    def report(self, session: str, *earlier: str) -> Any:
        return post("report", msgspec.json.encode(Report(session=session, earlier_sessions=earlier)), self.token)

    def refused(self, response: Any) -> bool:
        if response.status_code == 200:
            return False
        assert (response.status_code, problem(response).code) == (409, SESSION_OTHER)
        return True

    def later(self, by: timedelta) -> None:
        """As if all moments of the host were so long ago."""
        self.host.refresh_from_db()
        moments = ("last_seen_at", "session_since", "second_worker_at")
        changes = {name: value - by for name in moments if (value := getattr(self.host, name)) is not None}
        Host.objects.filter(pk=self.host.pk).update(**changes)

    @property
    def second(self) -> bool:
        self.host.refresh_from_db()
        return bool(second_worker_words(self.host))


@pytest.fixture
def workers() -> Workers:
    return Workers()


def test_the_first_worker_holds_the_session_and_a_copy_of_its_state_is_refused(workers: Workers) -> None:
    assert not workers.refused(workers.hello("a"))
    assert not workers.refused(workers.report("a"))
    assert workers.refused(workers.hello("b", hostname="clone"))
    assert workers.refused(workers.report("b"))
    assert not workers.refused(workers.report("a"))
    workers.host.refresh_from_db()
    assert (workers.host.session, workers.host.second_worker_hostname) == ("a", "clone")


def test_both_workers_and_the_people_are_told(workers: Workers, client: Client) -> None:
    workers.hello("a")
    workers.hello("b", hostname="clone")
    workers.hello("b", hostname="clone")
    reply = msgspec.json.decode(workers.hello("a").content, type=HelloReply)
    assert reply.message
    assert "clone" in second_worker_words(Host.objects.get(pk=workers.host.pk))
    assert AuditEntry.objects.filter(action="host.second_worker").count() == 1


def test_a_restarted_worker_takes_the_session_over(workers: Workers) -> None:
    workers.hello("a")
    assert not workers.refused(workers.hello("b", "a"))
    assert not workers.refused(workers.report("c", "b")), "a report may come before the Hello"
    assert not workers.second


@pytest.mark.parametrize("taken", [True, False])
def test_it_takes_over_from_a_worker_that_was_stopped_before_the_answer(workers: Workers, *, taken: bool) -> None:
    """It does not know whether the server has taken the message of that worker, or will take it still."""
    workers.hello("a")
    if taken:
        workers.report("b", "a")
    assert not workers.refused(workers.report("c", "a", "b"))
    assert not workers.refused(workers.report("d", "a", "b", "c"))
    assert workers.refused(workers.report("b", "a"))
    assert workers.refused(workers.report("c", "a", "b"))
    assert not workers.second
    assert workers.refused(workers.report("e", "a")), "a copy of the state directory"
    assert workers.second


def test_a_late_message_of_the_worker_before_is_no_second_worker(workers: Workers) -> None:
    workers.hello("a")
    workers.hello("b", "a")
    assert workers.refused(workers.report("a"))
    assert not workers.second
    workers.later(IN_FLIGHT)
    assert workers.refused(workers.report("a")), "a copy was made while the worker ran"
    assert workers.second


def test_a_worker_takes_over_from_one_that_is_silent(workers: Workers) -> None:
    workers.hello("a")
    assert workers.refused(workers.hello("b"))
    workers.later(HEARD_WITHIN + timedelta(seconds=1))
    assert not workers.refused(workers.hello("b"))
    assert not workers.second


def test_a_refused_worker_that_takes_over_gets_trials_at_once(workers: Workers) -> None:
    workers.hello("a")
    workers.hello("b")
    Host.objects.filter(pk=workers.host.pk).update(last_seen_at=timezone.now() - HEARD_WITHIN - timedelta(seconds=1))
    assert workers.second
    assert not workers.refused(workers.report("b"))
    assert not workers.second
    assert workers.refused(workers.report("a")), "the silent worker is heard again"
    assert not workers.refused(workers.hello("c", "b"))
    workers.later(IN_FLIGHT)
    workers.report("a")
    assert workers.second
    assert not workers.refused(workers.hello("d", "c"))
    assert workers.second, "a successor is another worker than the one that was refused"


def test_a_check_by_hand_changes_no_session(workers: Workers) -> None:
    workers.hello("a")
    assert not workers.refused(workers.hello(""))
    workers.host.refresh_from_db()
    assert workers.host.session == "a"


def test_orders_name_the_session(workers: Workers) -> None:
    workers.hello("a")
    a_run(a_target(workers.host))
    assert dispatch_host(workers.host.pk) is not None
    assert [order.session for order in queued_orders(workers.host)] == ["a"]


@pytest.mark.parametrize("second", [False, True])
def test_no_trial_starts_while_there_are_two_workers(workers: Workers, *, second: bool) -> None:
    workers.hello("a")
    a_run(a_target(workers.host), trials=2)
    attempt = dispatch_host(workers.host.pk)
    assert attempt is not None
    if second:
        workers.hello("b")
    run_to_the_end(workers.host, attempt)
    dispatch_host(workers.host.pk)
    following = Attempt.objects.get(host=workers.host, state__in=ACTIVE_ATTEMPT_STATES)
    assert following.kind == (AttemptKind.CLOSE_RUN if second else AttemptKind.TRIAL), "settings are restored"


def test_of_two_workers_that_start_at_once_one_gets_the_session(workers: Workers) -> None:
    first, second = (Host.objects.get(pk=workers.host.pk) for _ in range(2))
    claim_session(host=first, session="a", earlier=())
    with pytest.raises(SecondWorker):
        claim_session(host=second, session="b", earlier=())
