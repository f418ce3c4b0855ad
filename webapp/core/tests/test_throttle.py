"""How often a password may be tried, from where."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone
from pytest_django import Settings

from webapp.core.models import LoginTries
from webapp.core.throttle import (
    MAX_FOR_ACCOUNT,
    MAX_FOR_ADDRESS,
    WINDOW,
    address_of,
    count_try,
    forgive_try,
)

HERE, THERE = "192.0.2.1", "192.0.2.2"


def exhaust(name: str = "olga", address: str = HERE) -> None:
    assert [count_try(name=name, address=address) for _ in range(MAX_FOR_ACCOUNT)] == [None] * MAX_FOR_ACCOUNT


@pytest.mark.django_db
def test_it_makes_an_account_wait_from_one_address_and_nobody_else() -> None:
    exhaust()
    wait = count_try(name=" OLGA", address=HERE)
    assert wait
    assert WINDOW - timedelta(seconds=30) < wait <= WINDOW
    assert count_try(name="olga", address=THERE) is None
    assert count_try(name="vera", address=HERE) is None


@pytest.mark.django_db
def test_tries_of_a_clock_that_was_ahead_lock_nobody_out() -> None:
    exhaust()
    LoginTries.objects.update(since=timezone.now() + timedelta(days=366))
    assert count_try(name="olga", address=HERE) is None


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ＯＬＧＡ", "\u00a0olga", "Olga ", "ｏlga"])
def test_it_counts_all_spellings_that_log_in_to_one_account(name: str) -> None:
    exhaust()
    assert count_try(name=name, address=HERE)


@pytest.mark.django_db
def test_it_makes_an_address_wait_whatever_the_account() -> None:
    waits = [count_try(name=f"name{number}", address=HERE) for number in range(MAX_FOR_ADDRESS + 1)]
    assert waits[:-1] == [None] * MAX_FOR_ADDRESS
    assert waits[-1]
    assert count_try(name="new", address=THERE) is None


@pytest.mark.django_db
def test_it_lets_in_again_when_the_window_is_over_and_keeps_no_old_rows() -> None:
    exhaust()
    LoginTries.objects.update(since=timezone.now() - WINDOW)
    assert count_try(name="olga", address=HERE) is None
    assert set(LoginTries.objects.values_list("tries", flat=True)) == {1}


@pytest.mark.django_db
def test_it_does_not_wait_longer_for_who_goes_on_trying() -> None:
    exhaust()
    first = count_try(name="olga", address=HERE)
    later = [count_try(name="olga", address=HERE) for _ in range(3)][-1]
    assert first
    assert later
    assert later <= first


@pytest.mark.django_db
def test_it_forgives_those_who_knew_the_password() -> None:
    for _ in range(MAX_FOR_ADDRESS * 2):
        assert count_try(name="olga", address=HERE) is None
        forgive_try(name="olga", address=HERE)


@pytest.mark.django_db
def test_it_keeps_neither_names_nor_addresses() -> None:
    count_try(name="my secret password", address=HERE)
    kept = str(list(LoginTries.objects.values()))
    assert "secret" not in kept
    assert HERE not in kept


@pytest.mark.django_db(transaction=True)
def test_it_counts_guesses_that_are_made_at_once() -> None:
    allowed: list[bool] = []
    gate = threading.Barrier(12)

    def guess() -> None:
        gate.wait(10)
        allowed.append(count_try(name="olga", address=HERE) is None)
        connection.close()

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(allowed), sum(allowed)) == (12, MAX_FOR_ACCOUNT)


def request_from(address: str, forwarded: str = "") -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": address} | ({"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {})
    return request


def test_it_believes_only_what_its_own_proxy_has_written(settings: Settings) -> None:
    settings.BEHIND_PROXY = False
    assert address_of(request_from(HERE, "6.6.6.6")) == HERE
    settings.BEHIND_PROXY = True
    assert address_of(request_from("127.0.0.1", f"6.6.6.6, {HERE}")) == HERE


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", HERE),
        ("", "unknown"),
        ("nonsense", "unknown"),
    ],
)
def test_it_takes_an_ipv6_network_as_one_address(settings: Settings, given: str, address: str) -> None:
    settings.BEHIND_PROXY = False
    assert address_of(request_from(given)) == address
