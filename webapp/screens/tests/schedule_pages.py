"""Helpers of the tests of schedules."""

from datetime import timedelta
from uuid import uuid4

from django.test import Client
from django.utils import timezone

from webapp.runs.models import Run
from webapp.schedules.models import Occurrence, Schedule
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run


def ended(schedule: Schedule, days_ago: int, *, position: int = 0, label: str = "") -> Run:
    """A due time whose run is done."""
    due = timezone.now() - timedelta(days=days_ago)
    target = schedule.targets.first() or storage1_scratch(a_host(f"storage{uuid4().hex[:6]}"))
    run = first_look_run(schedule.version, [target], by=schedule.owner, repeats=1, started_at=due, label=label)
    finish_run(run)
    Occurrence.objects.create(schedule=schedule, due_at=due, position=position, state="ended", run=run, finished_at=due)
    return run


def missed(schedule: Schedule, hours_ago: float, reason: str = "storage1 was away.") -> Occurrence:
    due = timezone.now() - timedelta(hours=hours_ago)
    return Occurrence.objects.create(
        schedule=schedule,
        due_at=due,
        state="missed",
        reason_code="host_unavailable",
        reason_fields={"message": reason},
        finished_at=due,
    )


def page_of(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def posted(client: Client, schedule: Schedule, action: str, **data: object) -> str:
    """What the page says after the action."""
    response = client.post(f"/schedules/{schedule.pk}/{action}/", data, follow=True)
    assert response.status_code == 200
    return response.content.decode()
