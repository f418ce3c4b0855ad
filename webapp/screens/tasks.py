"""The periodic task. It is safe to run twice, also at the same time."""

from webapp.celery import app
from webapp.screens.explore.import_findings import make_due

BUDGET_S = 4.0  # less than the distance of two ticks, so that they do not pile up


@app.task(name="webapp.screens.tasks.tick")
def tick() -> None:
    """Every few seconds: make the findings of imports that have ended."""
    make_due(BUDGET_S)
