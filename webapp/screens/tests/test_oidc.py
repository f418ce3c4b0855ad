"""Log-in by OpenID Connect against a provider on loopback that signs like a real one."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import LazySettings
from django.core.exceptions import SuspiciousOperation
from django.test import Client

from webapp.core import oidc
from webapp.core.checks import oidc_login
from webapp.core.models import AuditEntry, Role, User
from webapp.core.oidc import fetched
from webapp.screens.tests.oidc_provider import CLIENT, CLIENT_SECRET, Provider, running_provider
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def provider(settings: LazySettings) -> Iterator[Provider]:
    with running_provider() as provider:
        settings.OIDC_ISSUER = provider.issuer
        settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT, CLIENT_SECRET
        yield provider
    fetched.cache_clear()
    oidc._ask_again.clear()


def logs_in(provider: Provider, client: Client | None = None, **changed: str) -> tuple[bool, str]:
    """Whether the log-in works, and the page after it."""
    client = client or Client()
    there = client.get("/login/oidc/?next=/runs/")
    assert there.headers["Location"].startswith(f"{provider.issuer}/auth?")
    back = client.get("/login/oidc/callback/", provider.authorize(there.headers["Location"]) | changed, follow=True)
    return client.get("/account/").status_code == 200, back.content.decode()


def test_it_logs_in_with_the_role_of_the_group_and_returns_to_the_page(
    provider: Provider, settings: LazySettings
) -> None:
    settings.LOGIN_ROLES = {"lab": "operator"}
    client = Client()
    assert "/login/oidc/" in client.get("/login/").content.decode()
    works, page = logs_in(provider, client)
    assert works
    assert "<title>Runs" in page
    assert (User.objects.get().username, User.objects.get().role) == ("mia", Role.OPERATOR)
    assert AuditEntry.objects.get().action == "user.create"
    assert client.session.get_expiry_age() == settings.EXTERNAL_SESSION_SECONDS


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "somebody-else"},
        {"iss": "https://other.example"},
        {"exp": int(time.time()) - 3600},
        {"nonce": "another"},
        {"azp": "somebody-else"},
        {"aud": [CLIENT, "somebody-else"]},
        {"aud": [CLIENT, "somebody-else"], "azp": "somebody-else"},
        {"sub": ""},
        {"sub": "4" * 256},
    ],
)
def test_a_token_for_somebody_else_or_of_yesterday_is_refused(provider: Provider, claims: dict[str, Any]) -> None:
    provider.claims = claims
    provider.userinfo["sub"] = claims.get("sub", "4711")
    works, page = logs_in(provider)
    assert not works
    assert "The log-in failed." in page
    assert not User.objects.exists()


def test_a_token_for_several_audiences_is_accepted_if_it_was_issued_to_this_client(provider: Provider) -> None:
    provider.claims = {"aud": [CLIENT, "somebody-else"], "azp": CLIENT}
    assert logs_in(provider)[0]


DISCOVERY = "/.well-known/openid-configuration"


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/keys", "/userinfo"])
@pytest.mark.parametrize("answer", [[1], "text", 5, None, {"keys": [5, None, {"kid": "1", "kty": "x"}], "id_token": 5}])
def test_an_answer_of_another_form_is_a_failed_log_in(provider: Provider, path: str, answer: Any) -> None:
    provider.answers[path] = answer
    assert not _logs_in_at_all(provider)


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/keys", "/userinfo"])
def test_it_reads_no_long_answer_of_the_provider(
    provider: Provider, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "answer", _padded(provider, path, 2 * oidc.MAX_ANSWER_BYTES))
    assert not _logs_in_at_all(provider)


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/keys", "/userinfo"])
def test_it_does_not_wait_for_an_answer_that_arrives_byte_by_byte(
    provider: Provider, settings: LazySettings, path: str
) -> None:
    settings.OIDC_TIMEOUT, provider.slow = 1, path
    assert not _logs_in_at_all(provider)


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/keys", "/userinfo"])
def test_it_follows_no_redirect_of_the_provider(provider: Provider, path: str) -> None:
    provider.redirected[path] = f"{provider.issuer}/elsewhere"
    assert not _logs_in_at_all(provider)
    assert provider.requests[-1] == path


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"])
def test_it_refuses_a_plain_address_of_an_encrypted_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"issuer": "https://id.example", name: "http://id.example/"}
    response = requests.Response()
    response._content = json.dumps(document).encode()
    monkeypatch.setattr(oidc, "_answer", lambda *_: response)
    with pytest.raises(SuspiciousOperation):
        fetched("https://id.example")


def _logs_in_at_all(provider: Provider) -> bool:
    """Also false if the provider's addresses are not known, so that the browser is not sent there."""
    client = Client()
    there = client.get("/login/oidc/").headers["Location"]
    if there == "/login/":
        return False
    back = client.get("/login/oidc/callback/", provider.authorize(there))
    assert back.status_code == 302
    return client.get("/account/").status_code == 200


def _padded(provider: Provider, path: str, characters: int) -> Callable[[str, dict[str, str]], Any]:
    answer = provider.answer
    return lambda asked, form: answer(asked, form) | ({"padding": "x" * characters} if asked == path else {})


def test_another_signature_state_or_subject_is_refused(provider: Provider) -> None:
    assert not logs_in(provider, state="made up")[0]
    provider.userinfo["sub"] = "666"
    assert not logs_in(provider)[0]
    provider.userinfo["sub"] = "4711"
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert not logs_in(provider)[0]
    assert not User.objects.exists()


def test_a_disabled_account_is_refused_and_its_session_ends_at_once(provider: Provider) -> None:
    client = Client()
    assert logs_in(provider, client)[0]
    User.objects.update(is_active=False)
    assert client.get("/account/").status_code == 302
    works, page = logs_in(provider)
    assert not works
    assert "The account of mia is disabled." in page


def test_a_local_account_of_the_same_name_stays_closed(provider: Provider) -> None:
    local = a_user("mia", Role.ADMIN)
    local.set_password("correct horse battery")
    local.save()
    works, page = logs_in(provider)
    assert not works
    assert "mia is another account on this server." in page


def test_a_provider_that_is_away_leaves_local_log_in(settings: LazySettings) -> None:
    settings.OIDC_ISSUER = "http://127.0.0.1:1"
    page = Client().get("/login/oidc/", follow=True).content.decode()
    assert "The identity provider does not answer." in page
    assert 'name="password"' in page


def test_a_provider_that_is_away_is_not_asked_by_each_request(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OIDC_ISSUER, asked = "https://away.example", []

    def away(_session: object, _method: str, address: str, **_: object) -> None:
        asked.append(address)
        raise requests.ConnectTimeout

    monkeypatch.setattr(requests.Session, "request", away)
    for _ in range(2):
        assert "does not answer" in Client().get("/login/oidc/", follow=True).content.decode()
    assert len(asked) == 1
    oidc._ask_again.clear()
    Client().get("/login/oidc/")
    assert len(asked) == 2


@pytest.mark.parametrize("path", ["/login/oidc/", "/login/oidc/callback/?code=a&state=b"])
def test_requests_that_wait_for_the_provider_are_limited(
    provider: Provider, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.core.throttle.MAX_FOR_ADDRESS", 2)
    with monkeypatch.context() as full:
        full.setattr("webapp.screens.people.account.PROVIDER_SLOTS", threading.Semaphore(0))
        busy = Client().get(path)
        assert (busy.status_code, "Try again in a few seconds" in busy.content.decode()) == (503, True)
    assert [logs_in(provider)[0] for _ in range(3)] == [True] * 3  # a log-in that works is not counted
    assert [Client().get(path).status_code for _ in range(3)] == [302, 302, 429]


def test_without_a_provider_there_is_no_such_page(client: Client) -> None:
    assert "single sign-on" not in client.get("/login/").content.decode()
    assert (
        client.get("/login/oidc/").status_code == client.get("/login/oidc/callback/?code=a&state=b").status_code == 404
    )


@pytest.mark.parametrize(
    ("issuer", "algorithm", "secret", "found"),
    [
        ("https://id.example", "RS256", "s", 0),
        ("http://id.example", "RS256", "s", 1),
        ("https://id.example", "none", "s", 1),
        ("https://id.example", "HS256", "s", 1),
        ("https://id.example", "RS256", "", 1),
    ],
)
def test_an_unsafe_set_up_is_an_error(
    settings: LazySettings, issuer: str, algorithm: str, secret: str, found: int
) -> None:
    settings.OIDC_ISSUER, settings.OIDC_RP_SIGN_ALGO = issuer, algorithm
    settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET = CLIENT, secret
    assert len(oidc_login()) == found
