"""The fast path: reports that hold only samples."""

import psycopg
import pytest
from django.db import close_old_connections, connection

from webapp.results.models import Sample
from webapp.results.tests.ingesting import BEGUN
from webapp.runs.models import Attempt
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.reports import (
    sample,
    say,
)
from webapp.tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_it_accepts_a_plain_sample_after_the_database_was_restarted(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(0),)))
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        pid = connection.connection.info.backend_pid
        ended = other.execute("select pg_terminate_backend(%s, 5000)", [pid]).fetchone()
    assert ended == (True,)  # it has ended, so the check below cannot still find it alive
    close_old_connections()  # as at the beginning of a request
    assert say(attempt.host, attempt, (3, (sample(1),))).confirmed_seq == 3
    assert Sample.objects.count() == 2


def test_it_accepts_a_plain_sample_only_from_the_attempts_host(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    reply = say(a_host(), attempt, (2, (sample(0),)))
    assert reply.refusal
    assert reply.refusal.code == "unknown_attempt"
    assert not Sample.objects.exists()


def test_it_accepts_only_one_of_two_simultaneous_plain_samples(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    replies = at_once(*[lambda: say(attempt.host, attempt, (2, (sample(0),)))] * 4)
    assert [reply.confirmed_seq for reply in replies] == [2] * 4  # type: ignore[attr-defined]
    assert Sample.objects.count() == 1
