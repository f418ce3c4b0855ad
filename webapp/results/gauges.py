"""The delay between a measurement and its storage."""

from collections.abc import Iterator

from django.db.models import Max
from django.utils import timezone
from prometheus_client.core import Metric

from webapp.core.gauges import collector, gauge
from webapp.results.models import Sample
from webapp.runs.models import Attempt, AttemptState


@collector
def ingest_lag() -> Iterator[Metric]:
    """From the end of a running attempt's newest committed second to now, by the server's clock.

    A running attempt has a new second every second, so more than about 2 s means that reports are late.
    """
    now = timezone.now()
    running = Attempt.objects.filter(state=AttemptState.RUNNING).select_related("host")
    readings = []
    for attempt in running:
        newest = Sample.objects.filter(attempt=attempt).aggregate(at=Max("at"))["at"]
        if newest is not None:
            lag_s = (now - newest).total_seconds() - (attempt.clock_offset_ms or 0) / 1000
            readings.append((attempt.host.slug, lag_s))
    yield gauge("sweetspot_ingest_lag_seconds", "End of the newest committed second to now", "host", readings)
