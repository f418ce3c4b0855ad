"""The page Storage."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from webapp.core.models import Role
from webapp.runs.models import Run
from webapp.storage.models import DailySize
from webapp.storage.sizes import KINDS
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import person
from webapp.tests.factories.runs import a_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(person(Role.ADMIN))
    return client


def test_it_has_a_row_for_each_kind(admin: Client) -> None:
    DailySize.objects.create(day=timezone.now().date() - timedelta(days=3), kind="samples", bytes=0)
    answer = admin.get(reverse("storage"))
    assert {size.kind for size in answer.context["storage"].sizes} == set(KINDS)
    assert answer.context["storage"].fastest.kind == "samples"
    assert answer.context["proposals"] == []


def test_the_preview_counts_old_runs_and_deletes_none(admin: Client) -> None:
    run = a_run(a_target(), state="done", ended_at=timezone.now() - timedelta(days=20))
    answer = admin.get(reverse("storage"), {"days": "10"})
    (proposal,) = answer.context["proposals"]
    assert proposal.runs == (run.number,)
    assert Run.objects.exists()


@pytest.mark.parametrize("days", ["0", "x", "", "99999999999999999999"])
def test_a_wrong_age_is_an_error_at_its_field(days: str, admin: Client) -> None:
    answer = admin.get(reverse("storage"), {"days": days})
    assert answer.status_code == 200
    assert "days" in answer.context["form"].errors
