"""The time at which each periodic task, beat and the backup last ran.

Without beat or the server's Celery worker, no task runs.

A periodic task calls `note` with its name, and so do beat and `manage.py note_backup`. /metrics shows all of them,
/healthz checks beat and the ticks. All times come from the database's clock, so the clocks of several machines do not
matter.
"""

from django.db.models import F
from django.db.models.functions import Extract, Now

from webapp.core.models import Heartbeat

TICK = "tick"  # webapp.runs.tasks, every few seconds
SCHEDULES = "schedules"  # webapp.schedules.tasks
BEAT = "beat"  # webapp.beat
BACKUP = "backup"
NEEDED = (TICK, SCHEDULES)
LATEST_S = 60.0  # an older time means that beat or the Celery worker is not running


def note(name: str) -> None:
    """Record that the task of this name runs now."""
    now = Heartbeat(name=name, at=Now())
    Heartbeat.objects.bulk_create([now], update_conflicts=True, update_fields=["at"], unique_fields=["name"])


def ages_s() -> dict[str, float]:
    """Seconds since each periodic task last ran; negative if the database's clock was set back since then."""
    rows = Heartbeat.objects.order_by("name").values_list("name", Extract(Now() - F("at"), "epoch"))
    return {name: float(age_s) for name, age_s in rows}
