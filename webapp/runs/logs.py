"""Log lines about an attempt name it, its host and its run."""

from contextlib import AbstractContextManager

from webapp.core.logs import about
from webapp.runs.models import Attempt


def about_attempt(attempt: Attempt) -> AbstractContextManager[None]:
    return about(attempt=attempt.pk, host=attempt.host.slug, run=attempt.run_id)
