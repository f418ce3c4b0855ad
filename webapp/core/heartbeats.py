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
# once a day
TIDY_HOSTS, TIDY_RESULTS = "tidy_hosts", "tidy_results"
TIDY_SCHEDULES, TIDY_STORAGE = "tidy_schedules", "tidy_storage"
NEEDED = (TICK, SCHEDULES)
LATEST_S = 60.0  # an older time means that beat or the Celery worker is not running
DAILY_AT_LATEST_S = 2 * 86400.0


def note(name: str) -> None:
    """Record that the task of this name runs now."""
    now = Heartbeat(name=name, at=Now())
    Heartbeat.objects.bulk_create([now], update_conflicts=True, update_fields=["at"], unique_fields=["name"])


def note_daily(name: str) -> bool:
    """Record that this daily task runs now. Whether its last run is as long ago as usual; true for the first one.

    If it is not, either the server was off, or its clock jumped ahead and may soon be set back: a task that deletes old
    data then waits for its next run, a day later.
    """
    age_s = ages_s().get(name)
    note(name)
    return age_s is None or age_s <= DAILY_AT_LATEST_S


def ages_s() -> dict[str, float]:
    """Seconds since each periodic task last ran; negative if the database's clock was set back since then."""
    rows = Heartbeat.objects.order_by("name").values_list("name", Extract(Now() - F("at"), "epoch"))
    return {name: float(age_s) for name, age_s in rows}
