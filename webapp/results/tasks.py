"""What is done once a day. It may be done twice."""

from webapp.celery import app
from webapp.core import health
from webapp.results.retention import create_partitions, delete_orphans, thin_samples


@app.task(name="webapp.results.tasks.tidy")
def tidy() -> None:
    create_partitions()
    if health.note_daily(health.TIDY_RESULTS):
        thin_samples()
    delete_orphans()
