"""The audit log: who did what, filters in the address, a fixed number of queries."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from webapp.core.audit_words import OBJECT_TYPES
from webapp.core.models import AuditEntry, User
from webapp.core.services import audit, person
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.screens.people.audit import RULES
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.runs import a_run
from webapp.tests.factories.schedules import a_schedule


@pytest.fixture
def entries(operator: Client) -> None:
    olga = User.objects.get(username="olga")
    run, gone = a_run(a_target()), Run(number=8)
    Run.objects.update(number=7)
    run.number = 7
    audit(by=olga, action="run.start", on=run, detail={"plan": "first-look", "targets": ["storage1/nvme0"]})
    audit(by=None, action="run.settings_not_restored", on=gone, detail={"hosts": {"storage1": "silent"}})
    plan = Plan.objects.create(slug="read-ahead", title="Read ahead")
    audit(by=olga, action="plan.save", on=plan, label=plan.slug, detail={"version": 3})
    AuditEntry.objects.filter(label="run 8").update(at=datetime(2026, 1, 31, 23, 59, tzinfo=UTC))


def text(client: Client, query: str = "") -> str:
    """The table of entries alone."""
    page = client.get(reverse("audit") + query).content.decode()
    return page.partition("</form><section")[2]


def test_it_says_who_did_what_to_what(operator: Client, entries: None) -> None:
    page = text(operator)
    assert "olga" in page
    assert "saved a new version of the plan" in page
    assert "run 8" in page
    assert "/runs/8/" not in page
    assert '<a href="/plans/read-ahead/" data-row>read-ahead</a>' in page
    assert '<a href="/runs/7/" data-row>run 7</a>' in page
    assert "storage1: silent" in page
    assert "storage1/nvme0" in page


@pytest.mark.parametrize(
    ("query", "found", "left"),
    [
        ("?person=system", "run 8", "run 7"),
        ("?action=run.start", "run 7", "run 8"),
        ("?action=run.", "run 8", "read-ahead"),
        ("?subject=AHEAD", "read-ahead", "run 7"),
        ("?until=2026-01-31", "run 8", "run 7"),
        ("?since=2026-02-01", "run 7", "run 8"),
    ],
)
def test_it_filters_by_the_address(operator: Client, entries: None, query: str, found: str, left: str) -> None:
    page = text(operator, query)
    assert found in page
    assert left not in page


def test_it_groups_entries_by_day_with_the_time_in_the_viewers_zone(operator: Client, entries: None) -> None:
    operator.cookies["timezone"] = "Asia/Tokyo"  # 9 hours ahead: 23:59 of 31 January is 08:59 of 1 February
    page = text(operator)
    assert page.count('class="group"') == 2
    assert "Sun 1 Feb 2026" in page or "Sun 1 Feb<" in page
    assert ">08:59</time>" in page
    assert "run 8" in text(operator, "?since=2026-02-01")
    assert "run 8" not in text(operator, "?until=2026-01-31")


def test_the_heading_counts_the_entries_of_today_or_those_that_match(operator: Client, entries: None) -> None:
    def heading(query: str) -> str:
        return str(operator.get(reverse("audit") + query).context["heading"])

    today = AuditEntry.objects.exclude(label="run 8").count()
    assert heading("").split()[0] == str(today)
    assert heading("?subject=AHEAD").split()[0] == "1"
    assert not any(map(str.isdigit, heading("?subject=moon")))


def test_it_says_at_the_field_what_it_cannot_read(operator: Client, entries: None) -> None:
    page = operator.get(reverse("audit") + "?since=yesterday").content.decode()
    assert "Enter a day such as 2026-01-31" in page
    assert "run 7" in page


def test_it_says_what_to_do_where_nothing_fits(operator: Client, entries: None) -> None:
    assert "No entry matches the filters" in text(operator, "?subject=moon")


def test_it_escapes_what_people_wrote(operator: Client) -> None:
    audit(
        by=None, action="plan.save", on=Plan(title="x"), label="<b>x</b>", detail={"note": "<script>alert(1)</script>"}
    )
    assert "<script>alert" not in text(operator)
    assert "&lt;b&gt;" in text(operator)


def test_it_takes_a_fixed_number_of_queries_and_pages(operator: Client, queries_of: Callable[[str], int]) -> None:
    audit(by=None, action="plan.save", on=Plan(title="x"), label="first")
    before = queries_of(reverse("audit"))
    AuditEntry.objects.bulk_create(
        AuditEntry(action="plan.save", object_type="plan", object_id=str(uuid4()), label=f"p{number}")
        for number in range(250)
    )
    assert queries_of(reverse("audit")) == before
    assert "101–200 of 251" in text(operator, "?action=plan.save&page=2")
    assert "?action=plan.save&amp;page=3" in text(operator, "?action=plan.save&page=2")


def test_every_type_of_object_has_a_rule_for_its_link() -> None:
    recorded = frozenset().union(*OBJECT_TYPES.values())
    assert recorded == set(RULES), "Add a rule to webapp/screens/people/audit.py."


def test_it_links_people_for_admins_only(operator: Client, admin: Client) -> None:
    piet = a_user("piet")
    audit(by=None, action="user.create", on=piet)
    assert "added piet" in text(operator)
    assert f'added <a href="/people/{piet.pk}/" data-row>piet</a>' in text(admin)


def test_it_names_people_in_details_as_they_are_called_now(operator: Client) -> None:
    schedule, piet = a_schedule(), a_user("piet")
    audit(by=None, action="schedule.owner", on=schedule, detail={"before": person(piet)})
    User.objects.filter(pk=piet.pk).update(username="piet.b")
    assert "piet.b" in text(operator)
