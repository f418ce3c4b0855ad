"""Metrics of runs, trials and leases."""

from collections import Counter

from django.db.models import Count
from django.utils import timezone

from webapp.core.gauges import Family, Reading, collector
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run, RunState, Trial, TrialState


@collector
def states() -> list[Family]:
    return [
        Family("sweetspot_runs", "Runs by state", _by_state(Run, RunState.values)),
        Family("sweetspot_trials", "Trials by state", _by_state(Trial, TrialState.values)),
    ]


@collector
def leases() -> list[Family]:
    """Leases of active attempts; below 0 the lease has expired and the next tick marks the attempt as lost."""
    now = timezone.now()
    active = list(Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).select_related("host"))
    kinds = Counter(attempt.kind for attempt in active)
    left = tuple(Reading((each.lease_until - now).total_seconds(), {"host": each.host.slug}) for each in active)
    held = tuple(Reading(count, {"kind": kind}) for kind, count in sorted(kinds.items()))
    return [
        Family("sweetspot_leases", "Leases held, by kind of order", held),
        Family("sweetspot_lease_left_seconds", "Seconds until a host's lease expires", left),
    ]


def _by_state(model: type[Run] | type[Trial], names: list[str]) -> tuple[Reading, ...]:
    rows = model.objects.order_by().values_list("state").annotate(count=Count("pk"))
    found: dict[str, int] = dict(rows)
    return tuple(Reading(found.get(name, 0), {"state": name}) for name in names)
