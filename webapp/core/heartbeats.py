"""When each periodic task last ran. Without beat, or without the server's Celery worker, none does.

A periodic task calls `note` with its name. /metrics shows all of them, /healthz needs the tick. Both times are the
database's, so the clocks of several machines do not matter.
"""

from django.db.models import F
from django.db.models.functions import Extract, Now

from webapp.core.models import Heartbeat

TICK = "tick"  # webapp.runs.tasks, every few seconds
LATEST_S = 60.0  # an older tick means that beat or the Celery worker is not running


def note(name: str) -> None:
    """The task of this name runs now."""
    now = Heartbeat(name=name, at=Now())
    Heartbeat.objects.bulk_create([now], update_conflicts=True, update_fields=["at"], unique_fields=["name"])


def ages_s() -> dict[str, float]:
    """Seconds since each periodic task last ran; negative where the database's clock was set back since then."""
    rows = Heartbeat.objects.order_by("name").values_list("name", Extract(Now() - F("at"), "epoch"))
    return {name: float(age_s) for name, age_s in rows}
