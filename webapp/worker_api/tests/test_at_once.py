"""A host with a stolen token does not occupy all threads."""

import threading

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import RequestFactory

from webapp.tests.factories.hosts import a_host_with_token
from webapp.worker_api import views
from webapp.worker_api.views import MAX_AT_ONCE, host_of, worker_view
from worker.contract.greetings import Problem

pytestmark = pytest.mark.django_db(transaction=True)
DONE = Problem(code="done", message="done")


def ask(view: object, token: str) -> int:
    request = RequestFactory().post("/", headers={"Authorization": f"Bearer {token}"})
    status: int = view(request).status_code  # type: ignore[operator]
    return status


def test_a_host_occupies_few_threads_and_no_other_host_waits() -> None:
    (_, token), (_, other) = a_host_with_token(), a_host_with_token()
    all_inside, go_on = threading.Barrier(MAX_AT_ONCE + 1), threading.Event()

    @worker_view
    def slow(request: HttpRequest) -> Problem:
        host_of(request)
        all_inside.wait(10)
        go_on.wait(10)
        return DONE

    @worker_view
    def quick(request: HttpRequest) -> Problem:
        host_of(request)
        return DONE

    found: list[int] = []

    def ask_slowly() -> None:
        found.append(ask(slow, token))
        connection.close()

    threads = [threading.Thread(target=ask_slowly) for _ in range(MAX_AT_ONCE)]
    for thread in threads:
        thread.start()
    all_inside.wait(10)
    assert ask(quick, token) == 429
    assert ask(quick, other) == 200
    go_on.set()
    for thread in threads:
        thread.join()
    assert found == [200] * MAX_AT_ONCE
    assert ask(quick, token) == 200
    assert not views._at_once


def test_a_refused_request_leaves_its_place() -> None:
    _, token = a_host_with_token()

    @worker_view
    def failing(request: HttpRequest) -> Problem:
        host_of(request)
        raise ZeroDivisionError

    for _ in range(MAX_AT_ONCE + 2):
        with pytest.raises(ZeroDivisionError):
            ask(failing, token)
    assert not views._at_once
