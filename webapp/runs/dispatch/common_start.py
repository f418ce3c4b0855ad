"""The common start of a trial on several hosts: set once all its attempts are ready."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.hosts.models import Host
from webapp.plans.expected_time import COMMON_START_S
from webapp.runs.dispatch.ending import lock_trial
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt

# In which all hosts ask for the start, read the server's clock and launch the engine.
LEAD = timedelta(seconds=COMMON_START_S)


def common_start(*, host: Host, attempt_id: UUID) -> datetime | None:
    """The start of the attempt's trial; None while other hosts are not ready. The first call makes it ready.

    Raises Refusal attempt_closed.
    """
    found = Attempt.objects.filter(pk=attempt_id, host=host, state__in=ACTIVE_ATTEMPT_STATES, trial__isnull=False)
    known = found.values_list("ready_at", "trial__common_start_at").first()
    if known is None:
        raise Refusal("attempt_closed", "This host has no such attempt, or it has ended.")
    ready_at, start_at = known
    if ready_at is None:
        return _become_ready(found)
    return start_at


@transaction.atomic
def _become_ready(found: QuerySet[Attempt]) -> datetime | None:
    """The attempt is locked before its trial, as everywhere."""
    attempt = found.select_for_update(no_key=True, of=("self",)).first()
    if attempt is None:
        raise Refusal("attempt_closed", "The attempt has ended.")
    trial = lock_trial(attempt)
    attempt.ready_at = timezone.now()
    attempt.save(update_fields=["ready_at"])
    tried = trial.attempts.filter(number=attempt.number)
    if tried.exclude(state__in=ACTIVE_ATTEMPT_STATES, ready_at__isnull=False).exists():
        return None
    trial.common_start_at = timezone.now() + LEAD
    trial.save(update_fields=["common_start_at"])
    return trial.common_start_at
