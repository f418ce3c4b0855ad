"""A kept connection to PostgreSQL is checked without a query, and replaced if PostgreSQL has ended it."""

import psycopg
import pytest
from django.db import close_old_connections, connection, connections
from django.db.backends.postgresql import base

from webapp.tests.system import await_true

pytestmark = pytest.mark.django_db(transaction=True)


def _never(_: object) -> bool:
    raise AssertionError("a query was sent")


def test_an_idle_connection_is_usable_without_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(base.DatabaseWrapper, "is_usable", _never)
    assert connection.is_usable()


def test_a_connection_in_a_failed_transaction_is_asked_and_not_usable() -> None:
    connection.ensure_connection()
    kept = connection.connection
    with pytest.raises(psycopg.Error):
        kept.execute("BEGIN; SELECT 1/0")
    assert not connection.is_usable()
    kept.rollback()
    assert connection.is_usable()


def test_a_connection_that_postgresql_has_ended_is_replaced() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (ended,) = cursor.fetchone()
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [ended])
    finally:
        other.close()
    await_true(lambda: not connection.is_usable(), limit_s=5, what="the connection has ended")
    close_old_connections()  # as at the start of a request
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() != (ended,)
