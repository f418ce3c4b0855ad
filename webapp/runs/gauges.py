"""Runs, trials and leases."""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Count
from django.utils import timezone
from prometheus_client.core import Metric

from webapp.core.gauges import collector, gauge
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run, RunState, Trial, TrialState


@collector
def states() -> Iterator[Metric]:
    yield gauge("sweetspot_runs", "Runs by state", "state", _by_state(Run, RunState.values))
    yield gauge("sweetspot_trials", "Trials by state", "state", _by_state(Trial, TrialState.values))


@collector
def leases() -> Iterator[Metric]:
    """Leases of active attempts; below 0 the lease has expired and the next tick marks the attempt as lost."""
    now = timezone.now()
    active = list(Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).select_related("host"))
    held = sorted(Counter(attempt.kind for attempt in active).items())
    left = [(each.host.slug, (each.lease_until - now).total_seconds()) for each in active]
    yield gauge("sweetspot_leases", "Leases held, by kind of order", "kind", held)
    yield gauge("sweetspot_lease_left_seconds", "Seconds until a host's lease expires", "host", left)


def _by_state(model: type[Run] | type[Trial], names: list[str]) -> Iterator[tuple[str, int]]:
    rows = model.objects.order_by().values_list("state").annotate(count=Count("pk"))
    found: dict[str, int] = dict(rows)
    return ((name, found.get(name, 0)) for name in names)
