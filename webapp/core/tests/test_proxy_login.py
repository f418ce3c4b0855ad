"""Log-in by a proxy's header: only from its address, only for enabled accounts, and only as long as it says so."""

from ipaddress import ip_network

import pytest
from django.conf import LazySettings
from django.test import Client

from webapp.core.checks import proxy_login
from webapp.core.external_login import Identity
from webapp.core.models import Role, User
from webapp.core.services import create_api_token
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db
HEADER = {"Remote-User": "mia"}


@pytest.fixture(autouse=True)
def _proxy(settings: LazySettings) -> None:
    settings.PROXY_USER_HEADER, settings.PROXY_GROUPS_HEADER = "HTTP_REMOTE_USER", "HTTP_REMOTE_GROUPS"
    settings.PROXY_ADDRESSES = [ip_network("127.0.0.1/32")]


def logged_in(client: Client, headers: dict[str, str] | None = None, *, address: str = "127.0.0.1") -> bool:
    return client.get("/account/", headers=headers or {}, REMOTE_ADDR=address).status_code == 200


def test_the_header_of_the_proxy_logs_in_and_that_of_others_does_not() -> None:
    assert logged_in(Client(), HEADER)
    assert not logged_in(Client(), HEADER, address="10.0.0.9")
    assert not logged_in(Client(), HEADER, address="")
    assert not logged_in(Client(), {"Remote-User": ""})
    assert User.objects.get().username == "mia"


def test_a_proxy_that_connects_through_the_socket_has_no_address(settings: LazySettings) -> None:
    settings.PROXY_ADDRESSES, settings.PROXY_SOCKET = [], True
    assert logged_in(Client(), HEADER, address="")
    assert not logged_in(Client(), HEADER)
    assert proxy_login() == []


def test_the_session_ends_without_the_header_or_from_another_address() -> None:
    client = Client()
    assert logged_in(client, HEADER)
    assert not logged_in(client)
    assert logged_in(client, HEADER)
    assert not logged_in(client, HEADER, address="10.0.0.9")


def test_another_name_is_another_session() -> None:
    client = Client()
    assert logged_in(client, HEADER)
    assert logged_in(client, {"Remote-User": "olga"})
    assert "olga" in client.get("/account/", headers={"Remote-User": "olga"}).content.decode()


def test_a_disabled_account_is_refused_at_once_and_told_why() -> None:
    client = Client()
    assert logged_in(client, HEADER)
    User.objects.update(is_active=False)
    assert not logged_in(client, HEADER)
    assert "The account of mia is disabled." in client.get("/login/", headers=HEADER).content.decode()


def test_changed_groups_change_the_role_in_the_same_session(settings: LazySettings) -> None:
    a_user("anna", Role.ADMIN)
    settings.LOGIN_ROLES = {"lab": "operator", "guests": "viewer"}
    client = Client()
    assert logged_in(client, HEADER | {"Remote-Groups": "guests, lab"})
    assert User.objects.get(username="mia").role == Role.OPERATOR
    assert logged_in(client, HEADER | {"Remote-Groups": "guests"})
    assert User.objects.get(username="mia").role == Role.VIEWER
    assert not logged_in(client, HEADER | {"Remote-Groups": "others"})


@pytest.mark.parametrize(("account", "header"), [("mia", "Mia"), ("mia", " mia"), ("mia", "\uff4dia")])
def test_another_spelling_of_the_name_logs_in_once(account: str, header: str) -> None:
    client = Client()
    known = User.objects.create(username=account, external_id=Identity(f"proxy {header}", header, ()).stored_id)
    headers = {"HTTP_REMOTE_USER": header}
    assert client.get("/account/", **headers).context["user"] == known  # type: ignore[arg-type]
    before = client.session.session_key
    client.get("/account/", **headers)  # type: ignore[arg-type]
    assert client.session.session_key == before


def test_a_header_leaves_a_local_session_alone() -> None:
    client, admin = Client(), a_user("anna", Role.ADMIN)
    client.force_login(admin, "django.contrib.auth.backends.ModelBackend")
    assert client.get("/account/", headers=HEADER).context["user"] == admin
    assert not User.objects.filter(username="mia").exists()


def test_a_name_that_is_too_long_is_refused() -> None:
    assert not logged_in(Client(), {"Remote-User": "m" * 151})
    assert not User.objects.exists()


def test_local_sessions_and_tokens_work_without_the_header() -> None:
    olga, client = a_user("olga"), Client()
    client.force_login(olga, "django.contrib.auth.backends.ModelBackend")
    assert logged_in(client)
    token = create_api_token(user=olga, name="script")
    assert Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("header", "networks", "found"),
    [
        ("", [], 0),
        ("HTTP_REMOTE_USER", ["10.0.0.1/32"], 0),
        ("HTTP_REMOTE_USER", [], 1),
        ("", ["10.0.0.1/32"], 1),
        ("HTTP_REMOTE_USER", ["0.0.0.0/0"], 1),
    ],
)
def test_an_open_or_incomplete_set_up_is_an_error(
    settings: LazySettings, header: str, networks: list[str], found: int
) -> None:
    settings.PROXY_USER_HEADER, settings.PROXY_GROUPS_HEADER = header, ""
    settings.PROXY_ADDRESSES = [ip_network(network) for network in networks]
    assert len(proxy_login()) == found
