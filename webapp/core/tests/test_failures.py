"""What a request gets that failed: 503 while the database restarts, 409 for a conflict with another one, else 500."""

import psycopg
import pytest
from django.db import IntegrityError, InterfaceError, OperationalError
from django.test import Client

from webapp.core.middleware import is_conflict, is_database_away
from webapp.core.models import Role
from webapp.core.services import create_api_token
from webapp.plans.models import Plan
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version


def _of(cause: Exception) -> OperationalError:
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (_of(psycopg.errors.AdminShutdown("stops")), True),
        (_of(psycopg.errors.CannotConnectNow("starts")), True),
        (_of(psycopg.errors.ConnectionFailure("lost")), True),
        (_of(psycopg.OperationalError("refused")), True),  # no connection, so no SQLSTATE
        (InterfaceError("the connection is closed"), True),
        (_of(psycopg.errors.QueryCanceled("too slow")), False),
        (_of(psycopg.errors.DiskFull("full")), False),
        (ValueError("ours"), False),
        (None, False),
    ],
)
def test_what_a_restart_of_the_database_raises(error: Exception | None, away: bool) -> None:
    assert is_database_away(error) is away


def _integrity(cause: Exception) -> IntegrityError:
    error = IntegrityError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (_integrity(psycopg.errors.ForeignKeyViolation("gone")), True),
        (_integrity(psycopg.errors.UniqueViolation("twice")), True),
        (_of(psycopg.errors.DeadlockDetected("both wait")), True),
        (_integrity(psycopg.errors.NotNullViolation("ours")), False),
        (_integrity(psycopg.errors.CheckViolation("ours")), False),
        (_of(psycopg.errors.AdminShutdown("stops")), False),
        (ValueError("ours"), False),
        (None, False),
    ],
)
def test_what_a_conflict_with_another_request_raises(error: Exception | None, conflict: bool) -> None:
    assert is_conflict(error) is conflict


@pytest.mark.parametrize(("method", "address"), [("post", "/plans/a/delete/"), ("delete", "/api/v1/plans/a")])
def test_a_conflict_with_another_request_is_no_error_of_the_server(
    db: None, monkeypatch: pytest.MonkeyPatch, method: str, address: str
) -> None:
    a_version(slug="a")
    client = Client(raise_request_exception=False)
    client.force_login(a_user("olga", Role.OPERATOR))

    def raises(*_args: object, **_options: object) -> None:
        raise _integrity(psycopg.errors.UniqueViolation("twice"))

    monkeypatch.setattr("webapp.plans.services.audit", raises)
    assert getattr(client, method)(address).status_code == 409
    assert Plan.objects.get().deleted_at is None


@pytest.mark.parametrize("address", ["/plans/", "/api/v1/plans"])
def test_a_restart_of_the_database_is_answered_with_try_again(
    db: None, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    user = a_user("olga", Role.OPERATOR)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    error = _of(psycopg.errors.AdminShutdown("stops"))

    def raises(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("django.db.models.query.QuerySet._fetch_all", raises)
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    error = ValueError("ours")  # type: ignore[assignment]
    assert client.get(address).status_code == 500


def test_an_unknown_token_is_named_also_where_a_form_would_be_checked(db: None) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Authorization": "Bearer swt_unknown"})
    answer = client.post("/api/v1/previews", data="{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (401, "not_logged_in")
    token = create_api_token(user=a_user("olga", Role.OPERATOR), name="laptop")
    known = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})
    assert known.post("/api/v1/previews", data="{}", content_type="application/json").status_code == 422
