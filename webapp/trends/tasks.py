"""The periodic task. It is safe to run twice, also at the same time."""

from webapp.celery import app
from webapp.trends.summaries import make_due

BUDGET_S = 4.0  # less than the distance of two ticks, so that they do not pile up


@app.task(name="webapp.trends.tasks.tick")
def tick() -> None:
    """Every few seconds: make the summaries of trends with a new run."""
    make_due(BUDGET_S)
