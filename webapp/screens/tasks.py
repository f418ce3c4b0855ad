"""The periodic task. It is safe to run twice, also at the same time."""

from time import monotonic

from webapp.celery import app
from webapp.screens.explore.import_findings import make_due
from webapp.screens.shown_next import compute_next

BUDGET_S = 4.0  # less than the distance of two ticks, so that they do not pile up


@app.task(name="webapp.screens.tasks.tick")
def tick() -> None:
    """Every few seconds: make the findings of imports that have ended, and what is shown after a run has ended."""
    until = monotonic() + BUDGET_S
    make_due(BUDGET_S)
    compute_next(until - monotonic())
