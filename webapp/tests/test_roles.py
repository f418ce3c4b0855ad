"""Every address × not logged in, viewer, operator, admin, held to the one table of who may do what."""

import copy
from collections.abc import Iterator

import pytest
from django.contrib.messages import get_messages
from django.db import transaction
from django.test import Client
from django.urls import reverse

from webapp.core.models import Role, User
from webapp.runs.models import Run
from webapp.screens.access import LOG_IN_AGAIN
from webapp.tests.access_table import API, PAGES, Who
from webapp.tests.addresses import API_ROOT, operations_of_api, pages
from webapp.tests.samples import ADMIN, OPERATOR, ROLES, VIEWER, make_samples

pytestmark = pytest.mark.django_db
NOT_LOGGED_IN = ""
MAY = {
    NOT_LOGGED_IN: {Who.ANYBODY},
    VIEWER: {Who.ANYBODY, Who.VIEWER},
    OPERATOR: {Who.ANYBODY, Who.VIEWER, Who.OPERATOR},
    ADMIN: {Who.ANYBODY, Who.VIEWER, Who.OPERATOR, Who.ADMIN},
}
everybody = pytest.mark.parametrize("who", MAY, ids=lambda name: ROLES.get(name, "not logged in"))


@pytest.fixture
def samples() -> dict[str, object]:
    return make_samples()


def client_of(who: str) -> Client:
    client = Client(raise_request_exception=False)
    if who:
        client.force_login(User.objects.get(username=who))
    return client


def test_it_finds_every_address_in_the_table_and_nothing_else() -> None:
    assert sorted({address.name for address in pages()}) == sorted(PAGES)
    assert sorted({address.name for address in operations_of_api()}) == sorted(API)


def tried(client: Client, method: str, address: str) -> tuple[int, str]:
    """Status and where it led; what it changed is undone, also on the client's side."""
    cookies = copy.deepcopy(client.cookies)
    with transaction.atomic():
        response = getattr(client, method.lower())(address)
        transaction.set_rollback(True)
    client.cookies = cookies
    return response.status_code, response.headers.get("Location", "")


def page_problem(who: str, method: str, rule: Who | None, outcome: tuple[int, str]) -> str:
    """What is wrong with how a page answered; "" where it is as the table says."""
    status, location = outcome
    to_log_in = status == 302 and location.startswith(reverse("login"))
    if rule is Who.HOST:
        return "" if status == 401 else f"{status} for a person, 401 expected: it wants a host's token"
    if rule is None:
        return "" if status in (403, 405) or to_log_in else f"{status}: nobody may {method} it"
    if rule in MAY[who]:
        wrong = status in (401, 403, 405) or status >= 500 or (to_log_in and rule is not Who.ANYBODY)
        return f"{status} {location} for one who may" if wrong else ""
    if not who:
        return "" if to_log_in else f"{status} {location}, not the log-in"
    return "" if status == 403 else f"{status} {location} for one who may not"


def page_problems(who: str, samples: dict[str, object]) -> Iterator[str]:
    client = client_of(who)
    for address in pages():
        rule = PAGES[address.name]
        for method, wanted in (("GET", rule.get), ("POST", rule.post)):
            problem = page_problem(who, method, wanted, tried(client, method, address.filled(samples)))
            if problem:
                yield f"{method} {address.name}: {problem}"


@pytest.mark.slow
@everybody
def test_it_keeps_pages_to_those_who_may(samples: dict[str, object], who: str) -> None:
    assert list(page_problems(who, samples)) == []


def api_problem(who: str, rule: Who, status: int) -> str:
    if rule in MAY[who]:
        return f"{status} for one who may" if status in (401, 403, 405) or status >= 500 else ""
    wanted = 403 if who else 401
    return "" if status == wanted else f"{status}, not {wanted}"


@pytest.mark.slow
@everybody
def test_it_keeps_the_api_to_those_who_may(samples: dict[str, object], who: str) -> None:
    problems, client = [], client_of(who)
    for address in operations_of_api():
        method, _, _ = address.name.partition(" ")
        status, _ = tried_api(client, method, address.filled(samples), body_of(address.name))
        if problem := api_problem(who, API[address.name], status):
            problems.append(f"{address.name}: {problem}")
    assert problems == []


SCHEDULE = (
    '{"name": "weekly", "plan": "first-look", "targets": ["storage1/scratch"], "trigger": "cron", "cron": "0 3 * * 1"}'
)
BODIES = {
    "POST people": '{"username": "otto"}',
    "POST people/{pk}/role": '{"role": "operator"}',
    "POST people/{pk}/anonymise": '{"confirm": "vera"}',
    "POST comparisons": '{"title": "x", "query": "x=iodepth"}',
    "POST baselines": '{"run": 1, "target": "storage1/scratch", "tolerances": {"iops": 5}}',
    "POST plans": '{"document": {"title": "x", "parts": []}}',
    "PUT plans/{slug}": '{"document": {"title": "x", "parts": []}}',
    "POST plans/{slug}/versions": '{"document": {"title": "x", "parts": []}}',
    "POST job-files": '{"text": "[a]\\nsize=1m"}',
    "POST hosts/{slug}/rename": '{"slug": "storage9"}',
    "POST hosts/{slug}/revoke": '{"confirm": "storage1"}',
    "DELETE hosts/{slug}": '{"confirm": "storage1"}',
    "POST hosts/{slug}/targets/{target}/purges": '{"method": "discard", "serial": "x"}',
    "POST hosts/{slug}/targets/{target}/endurance": '{"tbw_tb": 600, "source": "data sheet"}',
    "POST hosts/{slug}/targets/{target}/settings": '{"name": "scheduler", "operation": "read"}',
    "POST hosts/{slug}/windows": '{"days": [6], "opens": "02:00", "closes": "04:00"}',
    "POST groups": '{"title": "x", "members": []}',
    "PUT groups/{slug}": '{"title": "x", "members": []}',
    "POST runs": '{"plan": "first-look", "targets": ["storage1/scratch"]}',
    "POST schedules": SCHEDULE,
    "POST schedules/preview": SCHEDULE,
    "PUT schedules/{key}": SCHEDULE,
    "POST schedules/{key}/arm": '{"serials": ["x"], "until": "2030-01-01T00:00:00Z"}',
    "POST runs/{number}/skip": '{"trials": [0]}',
    "POST runs/{number}/arm": '{"serials": ["x"]}',
    "POST runs/{number}/notes": '{"text": "x"}',
    "POST trials/{trial_id}/invalid": '{"reason": "x"}',
    "POST runs/{number}/invalid": '{"reason": "x"}',
}


def body_of(operation: str) -> str:
    """A body of the right shape, so that an operation gets beyond its check for those who may."""
    return BODIES.get(operation, "{}")


def tried_api(client: Client, method: str, address: str, body: str) -> tuple[int, str]:
    with transaction.atomic():
        data = {} if method == "GET" else {"data": body, "content_type": "application/json"}
        response = getattr(client, method.lower())(address, **data)
        transaction.set_rollback(True)
    return response.status_code, b"".join(response).decode(errors="replace")  # a file is a stream


def test_it_lets_nobody_in_whose_account_is_off(samples: dict[str, object]) -> None:
    clients = {who: client_of(who) for who in ROLES}
    User.objects.update(is_active=False)
    for client in clients.values():
        assert client.get(reverse("overview")).status_code == 302
        assert client.get(f"/{API_ROOT}runs").status_code == 401


def test_it_says_which_role_is_needed_and_who_can_give_it(samples: dict[str, object]) -> None:
    gone = User.objects.create(username="anton", role=Role.ADMIN, is_active=False)
    text = client_of(VIEWER).post(reverse("cancel_run", args=[1])).content.decode()
    assert "Your role is viewer" in text
    assert "requires the operator role" in text
    assert "<strong>anna</strong>" in text
    assert gone.username not in text
    assert Run.objects.get(number=2).cancel_requested_at is None


def test_it_leads_back_to_the_page_a_form_was_sent_from_when_the_log_in_has_ended(samples: dict[str, object]) -> None:
    client = Client(headers={"Referer": "http://testserver/runs/2/?metric=p99"})
    answer = client.post(reverse("cancel_run", args=[2]))
    assert answer["Location"] == f"{reverse('login')}?next=/runs/2/%3Fmetric%3Dp99"
    assert [str(message) for message in get_messages(answer.wsgi_request)] == [LOG_IN_AGAIN]
    assert LOG_IN_AGAIN in client.get(answer["Location"]).content.decode()
    assert Run.objects.get(number=2).cancel_requested_at is None


@pytest.mark.parametrize("referrer", ["https://elsewhere.example/trap/", "//elsewhere.example/", "javascript:x", ""])
def test_it_leads_nowhere_else_than_to_its_own_pages(samples: dict[str, object], referrer: str) -> None:
    answer = Client(headers={"Referer": referrer}).post(reverse("cancel_run", args=[2]))
    assert answer["Location"] == f"{reverse('login')}?next=/"


def test_it_says_that_the_log_in_has_ended_where_the_form_has_lost_its_token_too(samples: dict[str, object]) -> None:
    answer = Client(enforce_csrf_checks=True).post(reverse("cancel_run", args=[2]))
    assert answer["Location"] == f"{reverse('login')}?next=/"


def test_it_refuses_every_form_without_its_csrf_token(samples: dict[str, object]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username=ADMIN))
    forms = [address for address in pages() if PAGES[address.name].post and not address.name.startswith("worker-")]
    answers = {address.name: client.post(address.filled(samples)) for address in forms}
    assert {name for name, answer in answers.items() if answer.status_code != 403} == set()
    assert all("out of date" in answer.content.decode() for answer in answers.values())
