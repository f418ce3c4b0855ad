"""Helpers of the tests of ingest."""

from webapp.runs.models import Attempt
from webapp.tests.factories.reports import (
    ACCEPTED,
    STARTED,
)
from worker.contract.items import (
    Item,
)

BEGUN: tuple[Item, ...] = (ACCEPTED, STARTED)


def state(attempt: Attempt) -> tuple[str, str]:
    attempt.refresh_from_db()
    assert attempt.trial
    attempt.trial.refresh_from_db()
    return attempt.state, attempt.trial.state
