"""What somebody with a copy of the database can do with its sessions: nothing."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from webapp.core.models import Role
from webapp.core.sessions import SessionStore, stored_key
from webapp.core.tasks import tidy
from webapp.tests.factories.people import a_user


def dumped_sessions() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM django_session t")
        return "\n".join(row for (row,) in cursor.fetchall())


@pytest.mark.django_db
def test_a_dump_of_the_database_gives_nobody_a_session() -> None:
    browser = Client()
    browser.force_login(a_user("anna", Role.ADMIN))
    cookie = browser.cookies["sessionid"].value
    assert browser.get(reverse("people")).status_code == 200
    assert cookie not in dumped_sessions()
    for row in Session.objects.all():
        thief = Client()
        thief.cookies["sessionid"] = row.session_key
        assert thief.get(reverse("people")).status_code == 302


@pytest.mark.django_db
def test_a_dump_of_the_database_shows_no_secret_in_a_session() -> None:
    session = SessionStore()
    session["_password_reset_token"] = "secret of the link"
    session.save()
    row = Session.objects.get()
    assert "secret" not in row.session_data
    with pytest.raises(signing.BadSignature):
        signing.loads(row.session_data, salt=session.key_salt, serializer=JSONSerializer)
    assert SessionStore(session.session_key)["_password_reset_token"] == "secret of the link"


@pytest.mark.django_db
def test_it_ends_and_renews_a_session_by_the_key_of_the_browser() -> None:
    session = SessionStore()
    session["colour"] = "blue"
    session.save()
    before = session.session_key
    session.cycle_key()
    assert session.session_key
    assert (before == session.session_key, session["colour"]) == (False, "blue")
    assert Session.objects.count() == 1
    assert SessionStore(before).get("colour") is None
    assert session.exists(session.session_key)
    SessionStore(session.session_key).delete()
    assert not Session.objects.exists()


@pytest.mark.django_db
def test_it_logs_out_who_has_a_session_of_another_secret_key(settings: Settings) -> None:
    browser = Client()
    browser.force_login(a_user("anna", Role.ADMIN))
    settings.SECRET_KEY = "another one " * 5
    assert browser.get(reverse("people")).status_code == 302


@pytest.mark.django_db
def test_a_session_of_a_clock_that_was_ahead_ends() -> None:
    usual, long = Client(), Client()
    for browser in (usual, long):
        browser.force_login(a_user())
    Session.objects.filter(session_key=stored_key(long.cookies["sessionid"].value)).update(
        expire_date=timezone.now() + timedelta(days=366)
    )
    tidy()
    assert [browser.get(reverse("account")).status_code for browser in (usual, long)] == [200, 302]
