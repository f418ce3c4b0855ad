"""People, their tokens, and the record of what they did."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db.models import ProtectedError
from django.test import override_settings
from django.utils import timezone

from webapp.core import checks, services
from webapp.core.errors import Refusal
from webapp.core.models import ApiToken, AuditEntry, Role, User
from webapp.core.services import audit, create_api_token, create_user
from webapp.core.tokens import hash_token
from webapp.runs.models import Run
from webapp.tests.factories.people import a_user
from webapp.tests.refusals import refuses

PASSWORD = "clammy-orbit-ferret"


@pytest.mark.django_db
def test_it_keeps_only_the_hash_of_a_token() -> None:
    user = a_user()
    plain = create_api_token(user=user, name="ci")
    token = ApiToken.objects.get()
    assert token.token_hash == hash_token(plain) != plain
    assert AuditEntry.objects.get().action == "token.create"


@pytest.mark.django_db
def test_it_records_the_system_as_an_actor_too() -> None:
    user = a_user("olga")
    entry = audit(by=None, action="user.create", on=user)
    assert (entry.actor, entry.actor_name) == (None, "system")


@pytest.mark.django_db
def test_it_keeps_who_acted() -> None:
    user = a_user("olga")
    entry = audit(by=user, action="run.start", on=Run(number=7), label="s" * 300, detail={"a": 1})
    assert (entry.actor_name, entry.object_type, len(entry.label)) == ("olga", "run", 200)
    with pytest.raises(ProtectedError):
        user.delete()


@pytest.mark.django_db
def test_it_keeps_no_name_of_a_person_who_is_the_object() -> None:
    user = a_user("olga")
    entry = audit(by=None, action="user.create", on=user)
    assert (entry.object_type, entry.object_id, entry.label) == ("user", str(user.pk), "")


@pytest.mark.django_db
def test_it_refuses_an_object_that_the_action_cannot_be_about() -> None:
    with pytest.raises(TypeError, match=r"run\.start is not an action on a user"):
        audit(by=None, action="run.start", on=a_user())


@pytest.mark.django_db
@pytest.mark.parametrize("password", ["short", "password1234", "olga-olga-olga"])
def test_it_refuses_weak_passwords(password: str) -> None:
    with pytest.raises(Refusal) as refused:
        create_user(username="olga-olga-olga", password=password, role=Role.VIEWER)
    assert refused.value.code == "password_weak"
    assert not User.objects.exists()


@pytest.mark.django_db
def test_it_refuses_a_name_that_is_taken() -> None:
    create_user(username="olga", password=PASSWORD, role=Role.VIEWER)
    with pytest.raises(Refusal) as refused:
        create_user(username="olga", password=PASSWORD, role=Role.ADMIN)
    assert refused.value.code == "username_taken"
    assert User.objects.get().check_password(PASSWORD)


@pytest.mark.django_db
def test_it_prints_the_password_of_an_admin_once() -> None:
    first, again, reset = StringIO(), StringIO(), StringIO()
    call_command("create_admin", stdout=first)
    password = first.getvalue().split()[-1]
    user = User.objects.get()
    assert user.is_administrator
    assert user.check_password(password)
    call_command("create_admin", stdout=again)
    assert "password:" not in again.getvalue()
    call_command("create_admin", "--reset", stdout=reset)
    user.refresh_from_db()
    assert user.check_password(reset.getvalue().split()[-1])
    assert not user.check_password(password)


@pytest.mark.parametrize("key", ["short", "x" * 80, "django-insecure-" + "ab3x9" * 10])
def test_it_refuses_a_secret_key_that_can_be_guessed(key: str) -> None:
    with override_settings(SECRET_KEY=key):
        assert [error.id for error in checks.secret_key()] == ["sweetspot.E001"]


def test_it_accepts_a_random_secret_key() -> None:
    with override_settings(SECRET_KEY="k3J" * 20 + "q9zP-wuT"):
        assert checks.secret_key() == []


def test_it_checks_the_installation() -> None:
    assert checks.database_is_postgresql() == checks.waiting_times() == []
    with override_settings(REPUBLISH_SECONDS=900, LEASE_SECONDS=900):
        assert [error.id for error in checks.waiting_times()] == ["sweetspot.E003"]


@pytest.mark.django_db
def test_a_person_has_a_limited_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_API_TOKENS", 2)
    user, other = a_user(), a_user()
    for name in ("a", "b"):
        create_api_token(user=user, name=name)
    with refuses("too_many_tokens"):
        create_api_token(user=user, name="c")
    create_api_token(user=other, name="a")
    ApiToken.objects.filter(name="a", user=user).update(revoked_at=timezone.now())
    create_api_token(user=user, name="c")
