"""Two requests at once, one of them stopped before one of its statements until the other has ended or waits for it.

Each request has a thread and a connection of its own, so the interleavings are those of two browsers. Stopping before
each statement in turn tries every moment at which the other request can come, without luck.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import BooleanField, Model
from django.http import HttpResponse

LIMIT_S = 30
Send = Callable[[], HttpResponse]
State = Counter[tuple[object, ...]]
NOT_COMPARED = {"Session", "Change", "Counter", "ServerKey"}  # made or renewed by any request, or merged


@dataclass(frozen=True)
class Answers:
    """`stopped`: whether the first request had the statement at which to stop."""

    statuses: tuple[int, int]
    errors: tuple[str, str]  # of the exceptions that no view handled, "" without one
    stopped: bool


class _Stop:
    """An execute wrapper that holds its thread before one statement."""

    def __init__(self, before: int) -> None:
        self._left = before
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._left == 0:
            self.reached.set()
            assert self.go_on.wait(LIMIT_S), "nobody let the stopped request go on"
        self._left -= 1
        return execute(sql, params, many, context)


def interleave(first: Send, second: Send, *, before: int) -> Answers:
    """Send the first request, stop it before its statement number `before`, and send the second one meanwhile."""
    stop, pid = _Stop(before), Future[int]()
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(_send, first, stop, Future())
        while not stop.reached.wait(0.001) and not one.done():
            pass
        two = pool.submit(_send, second, None, pid)
        _until_done_or_blocked(two, pid.result(LIMIT_S))
        stop.go_on.set()
        (status, error), (other_status, other_error) = one.result(LIMIT_S), two.result(LIMIT_S)
    return Answers((status, other_status), (error, other_error), stop.reached.is_set())


def _send(send: Send, stop: _Stop | None, pid: Future[int]) -> tuple[int, str]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pid.set_result(cursor.fetchone()[0])
        with _wrapped(stop):
            answer = send()
        error = getattr(answer, "exc_info", None)
        return answer.status_code, repr(error[1]) if error else ""
    finally:
        connection.close()


@contextmanager
def _wrapped(stop: _Stop | None) -> Iterator[None]:
    if stop is None:
        yield
        return
    with connection.execute_wrapper(stop):
        yield


def _until_done_or_blocked(request: Future[tuple[int, str]], pid: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not request.done() and time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])
            if cursor.fetchone()[0]:
                return
        time.sleep(0.001)  # PostgreSQL does not tell when a backend begins to wait


def state() -> State:
    """How many rows each table has of each kind: by the fields that have choices or are boolean, and by which of the
    nullable fields are set."""
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(map(_kinds, _models())))
        return Counter({(table, kind): count for table, kind, count in cursor.fetchall()})


def _models() -> list[type[Model]]:
    return [model for model in apps.get_models() if model.__name__ not in NOT_COMPARED]


def _kinds(model: type[Model]) -> str:
    fields = model._meta.concrete_fields
    values = [f"{field.column}::text" for field in fields if field.choices or isinstance(field, BooleanField)]
    nulls = [f"({field.column} IS NULL)::text" for field in fields if field.null]
    kind = " || ' ' || ".join(["''", *(f"coalesce({value}, '')" for value in (*values, *nulls))])
    return f"SELECT '{model._meta.db_table}', {kind} AS seen, count(*) FROM {model._meta.db_table} GROUP BY seen"


def changes(before: State, after: State) -> State:
    """What was added and, as negative counts, what was removed."""
    return Counter({kind: count for kind in before | after if (count := after[kind] - before[kind])})
