"""What is done once a day. It may be done twice."""

from django.conf import settings
from django.utils import timezone

from webapp.celery import app
from webapp.core import health
from webapp.storage.run_retention import Ages, delete_old_runs, delete_old_transitions
from webapp.storage.sizes import note_sizes


@app.task(name="webapp.storage.tasks.tidy")
def tidy() -> None:
    note_sizes()
    if health.note_daily(health.TIDY_STORAGE):
        now = timezone.now()
        delete_old_runs(Ages(settings.RUN_DAYS, settings.RUN_DAYS_OF_PLANS), now=now)
        delete_old_transitions(settings.TRANSITION_DAYS, now=now)
