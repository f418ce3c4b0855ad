"""Looks at occurrences for tests."""

from webapp.runs.models import Run
from webapp.schedules.models import Occurrence


def latest() -> Occurrence:
    return Occurrence.objects.select_related("run", "schedule").latest("due_at", "position")


def states() -> list[str]:
    return list(Occurrence.objects.order_by("due_at", "position").values_list("state", flat=True))


def run_of(occurrence: Occurrence) -> Run:
    assert occurrence.run is not None
    occurrence.run.refresh_from_db()
    return occurrence.run
