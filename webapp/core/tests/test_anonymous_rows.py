"""Clients without a log-in cannot fill the database."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from webapp.core.models import LoginTries
from webapp.core.tasks import tidy
from webapp.core.throttle import MAX_DRAFTS, MAX_FOR_ADDRESS, WINDOW, count_try
from webapp.screens.plans.draft import KEPT_WITHOUT_LOG_IN_S
from webapp.tests.factories.people import PASSWORD, a_user

pytestmark = pytest.mark.django_db


def post_draft(browser: Client) -> None:
    browser.post(reverse("new_plan"), {"title": "x" * 200_000})


def test_it_keeps_few_drafts_of_an_address_without_a_log_in() -> None:
    for _ in range(MAX_DRAFTS + 5):
        post_draft(Client())
    assert Session.objects.count() == MAX_DRAFTS


def test_it_keeps_a_draft_without_a_log_in_for_an_hour_and_the_session_after_it_for_long() -> None:
    browser = Client()
    post_draft(browser)
    an_hour = timezone.now() + timedelta(seconds=KEPT_WITHOUT_LOG_IN_S + 60)
    assert Session.objects.get().expire_date < an_hour
    a_user("olga")
    browser.post(reverse("login"), {"username": "olga", "password": PASSWORD})
    assert browser.session["plan_draft"]
    assert Session.objects.get().expire_date > an_hour


def test_it_stores_no_more_names_of_an_address_with_too_many_tries() -> None:
    for number in range(MAX_FOR_ADDRESS + 20):
        count_try(name=f"name{number}", address="192.0.2.1")
    assert LoginTries.objects.count() == MAX_FOR_ADDRESS + 1


def test_it_deletes_ended_sessions_and_old_tries() -> None:
    post_draft(Client())
    post_draft(Client())
    Session.objects.filter(pk=Session.objects.first().pk).update(expire_date=timezone.now() - timedelta(seconds=1))  # type: ignore[union-attr]
    LoginTries.objects.update(since=timezone.now() - WINDOW)
    tidy()
    tidy()
    assert Session.objects.count() == 1
    assert not LoginTries.objects.exists()
