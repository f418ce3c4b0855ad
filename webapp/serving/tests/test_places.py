"""Who waits for a place, who gets the next one, and who gets none."""

import threading
import time

import pytest

from webapp.serving import places
from webapp.serving.places import (
    LOGINS,
    MAX_WAITING,
    MAX_WAITING_OF_CLIENT,
    PROVIDER_LOGINS,
    QUESTIONS,
    RUNNING,
    RUNNING_OF_IDENTITY,
    UPLOADS,
    WAITING_OF_IDENTITY,
    KnownIdentities,
    Places,
    Shares,
    client_of,
    identity_of,
    kind_of,
)
from webapp.tests.system import await_true


class Crowd:
    """Requests in threads of their own."""

    def __init__(self, wait_s: float = 20.0) -> None:
        self.places = Places(wait_s)
        self.answers: list[tuple[str, bool]] = []  # in the order in which they came

    def send(self, client: str) -> threading.Thread:
        thread = threading.Thread(target=lambda: self.answers.append((client, self.places.take(client))))
        thread.start()
        return thread

    def fill(self, client: str = "many") -> None:
        assert all(self.places.take(client) for _ in range(RUNNING))

    def wait_in_line(self, *clients: str) -> None:
        for number, client in enumerate(clients, 1):
            self.send(client)
            await_true(lambda number=number: len(self.places._waiting) == number, limit_s=5, what="it waits")  # type: ignore[misc]


def test_the_next_one_is_the_oldest_of_who_has_the_fewest() -> None:
    crowd = Crowd()
    crowd.fill("many")
    crowd.wait_in_line("many", "many", "other", "third")
    for number in range(1, 5):
        crowd.places.give_back(crowd.answers[-1][0] if crowd.answers else "many")
        await_true(lambda number=number: len(crowd.answers) == number, limit_s=5, what="the next one")  # type: ignore[misc]
    assert crowd.answers == [(client, True) for client in ("other", "third", "many", "many")]


def test_too_many_of_one_client_and_of_all_get_none_at_once() -> None:
    crowd = Crowd()
    crowd.fill()
    crowd.wait_in_line(*["many"] * MAX_WAITING_OF_CLIENT)
    assert not crowd.places.take("many")
    for number in range(MAX_WAITING - MAX_WAITING_OF_CLIENT):
        crowd.send(f"other {number}")
    await_true(lambda: len(crowd.places._waiting) == MAX_WAITING, limit_s=5, what="all wait")
    assert not crowd.places.take("one more")
    for _ in range(RUNNING):
        crowd.places.give_back("many")
    while (given := len(crowd.answers)) < MAX_WAITING:
        if given:
            crowd.places.give_back(crowd.answers[given - 1][0])
        else:
            time.sleep(0.01)  # between two looks


def test_who_waits_too_long_gets_none_and_keeps_none() -> None:
    crowd = Crowd(wait_s=0.1)
    crowd.fill()
    assert not crowd.places.take("other")
    crowd.places.give_back("many")
    assert crowd.places.take("other")


@pytest.mark.parametrize(("path", "kind"), [
    ("/explore/", QUESTIONS), ("/explore.csv", QUESTIONS), ("/api/v1/previews", QUESTIONS), ("/runs/5/", QUESTIONS),
    ("/api/v1/compare.parquet", QUESTIONS), ("/api/v1/plans/x/preview", QUESTIONS),
    ("/shared/abc/chart.svg", QUESTIONS),
    ("/imports/5/files/", UPLOADS), ("/api/v1/imports/5/files", UPLOADS), ("/login/", LOGINS),
    ("/login/oidc/callback/", PROVIDER_LOGINS),
    ("/", None), ("/runs/", None), ("/runs/5/live/", None), ("/plans/", None), ("/api/v1/plans", None),
    ("/imports/5/", None), ("/api/v1/runs/5", None), ("/api/worker/v1/report", None), ("/explorer", None),
])  # fmt: skip
def test_the_kind_follows_from_the_path(path: str, kind: object) -> None:
    assert kind_of(path) is kind


def test_a_client_is_a_link_a_token_a_session_or_an_address() -> None:
    page = {"PATH_INFO": "/explore/", "REMOTE_ADDR": "192.0.2.1"}
    session = page | {"HTTP_COOKIE": "a=1; sessionid=abc; b=2"}
    assert client_of(page) == "192.0.2.1"
    assert client_of(session) == client_of(session | {"HTTP_COOKIE": "sessionid=abc; a=7"}) == "abc"
    assert client_of(session | {"HTTP_AUTHORIZATION": "Bearer x"}) == "Bearer x"
    assert client_of(session | {"PATH_INFO": "/shared/t/frame/"}) == "/shared/t"
    assert client_of(page | {"HTTP_COOKIE": "\0;;=,"}) == "192.0.2.1"
    assert (identity_of(page), identity_of(session)) == ("", "abc")


def test_it_forgets_the_identity_that_was_accepted_the_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MAX_KNOWN", 2)
    known = KnownIdentities()
    for identity in ("a", "b", "a", "c"):
        known.add(identity)
    assert [identity in known for identity in "abc"] == [True, False, True]


# ---- requests of one identity


def test_an_identity_with_too_many_requests_waits_and_then_is_refused() -> None:
    shares, answers = Shares(), []
    assert all(shares.enter("many") for _ in range(RUNNING_OF_IDENTITY))
    waiting = [
        threading.Thread(target=lambda: answers.append(shares.enter("many"))) for _ in range(WAITING_OF_IDENTITY)
    ]
    for thread in waiting:
        thread.start()
    await_true(lambda: not shares.enter("many"), limit_s=5, what="all wait")
    assert not answers
    assert shares.enter("other")
    for thread in waiting:
        shares.leave("many")
        thread.join(5)
    assert answers == [True] * WAITING_OF_IDENTITY
    for _ in range(RUNNING_OF_IDENTITY):
        shares.leave("many")
    shares.leave("other")
    assert not shares._shares  # nothing is kept of identities without a request


def test_an_identity_that_waits_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "IDENTITY_WAIT_S", 0.1)
    shares = Shares()
    assert all(shares.enter("many") for _ in range(RUNNING_OF_IDENTITY))
    assert not shares.enter("many")
    shares.leave("many")
    assert shares.enter("many")


def test_requests_without_an_identity_are_not_limited() -> None:
    shares = Shares()
    assert all(shares.enter("") for _ in range(1000))
