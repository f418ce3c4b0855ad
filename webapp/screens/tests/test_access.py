"""Logging in and out, and addresses that lead nowhere. Who may what: webapp/tests/test_roles.py."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from webapp.core.models import LoginTries, User
from webapp.core.throttle import MAX_AT_ONCE, MAX_FOR_ACCOUNT
from webapp.tests.factories.people import PASSWORD, a_user


@pytest.mark.django_db
def test_it_logs_in_and_out(client: Client) -> None:
    a_user("olga")
    wrong = client.post(reverse("login"), {"username": "olga", "password": "wrong"})
    assert "name or the password is wrong" in wrong.content.decode()
    right = client.post(reverse("login"), {"username": "olga", "password": PASSWORD})
    assert right["Location"] == reverse("overview")
    assert client.post(reverse("logout"))["Location"] == reverse("login")
    assert client.get(reverse("overview")).status_code == 302


def test_an_unknown_address_shows_a_message(operator: Client) -> None:
    response = operator.get("/runs/99/")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["olga", "nobody"])
def test_the_wait_message_does_not_reveal_whether_the_person_exists(client: Client, name: str) -> None:
    a_user("olga")
    for _ in range(MAX_FOR_ACCOUNT):
        assert client.post(reverse("login"), {"username": name, "password": "wrong"}).status_code == 200
    late = client.post(reverse("login"), {"username": name, "password": PASSWORD})
    assert late.status_code == 429
    assert 280 <= int(late["Retry-After"]) <= 300
    assert "Too many attempts. Try again in 5 minutes" in late.content.decode()
    assert client.get(reverse("overview")).status_code == 302


@pytest.mark.django_db
def test_it_forgets_wrong_tries_after_a_right_one(client: Client) -> None:
    a_user("olga")
    for password in (*["wrong"] * (MAX_FOR_ACCOUNT - 1), PASSWORD, "wrong"):
        response = Client().post(reverse("login"), {"username": "olga", "password": password})
    assert "name or the password is wrong" in response.content.decode()
    assert set(LoginTries.objects.values_list("tries", flat=True)) == {1, MAX_FOR_ACCOUNT}


@pytest.mark.django_db
def test_disabled_accounts_and_wrong_passwords_get_the_same_message(client: Client) -> None:
    User.objects.filter(pk=a_user("olga").pk).update(is_active=False)
    refused = client.post(reverse("login"), {"username": "olga", "password": PASSWORD})
    assert "name or the password is wrong" in refused.content.decode()


@pytest.mark.django_db(transaction=True)
def test_log_ins_leave_room_for_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check of a password takes a core for a third of a second: only some may run at the same time."""
    at_once, most, lock = 0, 0, threading.Lock()

    def slow(*_: object, **__: object) -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.5)  # stands for the check of a password
        with lock:
            at_once -= 1

    monkeypatch.setattr("django.contrib.auth.forms.authenticate", slow)

    def attempt() -> int:
        return Client().post(reverse("login"), {"username": "olga", "password": "wrong"}).status_code

    statuses = at_once_results([attempt] * 16)
    assert most == MAX_AT_ONCE
    assert sorted(set(statuses)) == [200, 503]
    assert statuses.count(503) == 16 - MAX_AT_ONCE


def at_once_results(calls: list[Callable[[], int]]) -> list[int]:
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], int]) -> int:
        gate.wait(10)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
