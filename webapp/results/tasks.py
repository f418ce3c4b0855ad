"""What is done once a day. It may be done twice."""

from webapp.celery import app
from webapp.core import heartbeats
from webapp.results.partitions import create_partitions
from webapp.results.retention import delete_orphans, thin_samples


@app.task(name="webapp.results.tasks.tidy")
def tidy() -> None:
    create_partitions()
    if heartbeats.note_daily(heartbeats.TIDY_RESULTS):
        thin_samples()
    delete_orphans()
