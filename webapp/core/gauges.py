"""Numbers about a running installation, as Prometheus reads them.

An app with metrics has a module `gauges.py` that registers a function. The functions run on each request to /metrics,
because no single process of a server knows the numbers.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from shutil import disk_usage
from tempfile import gettempdir

import redis
from django.db import DatabaseError, connection
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webapp.core import certificates, heartbeats, tally
from webapp.core.models import Counter
from worker import __version__

log = logging.getLogger(__name__)

ReadMetrics = Callable[[], Iterable[Metric]]
_collectors: list[ReadMetrics] = []


def collector(function: ReadMetrics) -> ReadMetrics:
    """Register a function that reads metrics from the database or the broker."""
    _collectors.append(function)
    return function


def gauge(name: str, description: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    """A gauge with one number for each value of the label. The name contains the unit, as Prometheus recommends."""
    family = GaugeMetricFamily(name, description, labels=[label])
    for each, value in values:
        family.add_metric([each], value)
    return family


class _AllMetrics(Collector):
    def collect(self) -> Iterator[Metric]:
        failed = 0
        for read in _collectors:
            try:
                yield from list(read())
            except (DatabaseError, redis.RedisError, OSError) as error:
                failed += 1
                log.warning("some metrics cannot be read: %s", error)
        yield GaugeMetricFamily("sweetspot_collectors_failed", "Parts that could not be read now", value=failed)


def exposition() -> str:
    """All metrics as text. A part that cannot be read is left out and counted in sweetspot_collectors_failed."""
    return generate_latest(_AllMetrics()).decode()


@collector
def periodic_tasks() -> Iterable[Metric]:
    ages_s = heartbeats.ages_s()
    backup_s = ages_s.pop(heartbeats.BACKUP, None)
    description = "Seconds since beat and each periodic task last ran"
    yield gauge("sweetspot_task_silent_seconds", description, "task", ages_s.items())
    yield GaugeMetricFamily("sweetspot_backup_age_seconds", "Seconds since the last backup", value=backup_s)


@collector
def certificate_ends() -> Iterable[Metric]:
    name = "sweetspot_certificate_expires_timestamp_seconds"
    ends = ((path, end.timestamp()) for path, end in certificates.ends())
    yield gauge(name, "Unix time at which the certificate expires", "file", ends)


@collector
def counted() -> Iterable[Metric]:
    """Counts in the database, because no single process of a server sees all of them."""
    tally.write(at_once=True)
    refused = "Reports refused, whole or one attempt of them, by reason"
    yield _counter("sweetspot_refused_reports", refused, Counter.REFUSED)
    yield _counter("sweetspot_failed_trials", "Trials that failed or were lost, by reason", Counter.FAILED)


def _counter(name: str, description: str, counter: str) -> Metric:
    family = CounterMetricFamily(name, description, labels=["reason"])
    for reason, number in Counter.objects.filter(name=counter).order_by("label").values_list("label", "value"):
        family.add_metric([reason], number)
    return family


@collector
def build() -> Iterable[Metric]:
    yield gauge("sweetspot_build_info", "1; the label has the version", "version", [(__version__, 1)])


@collector
def storage() -> Iterable[Metric]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        yield GaugeMetricFamily("sweetspot_database_bytes", "Size of the database", value=cursor.fetchone()[0])
    disk = disk_usage(gettempdir())
    description = "Free bytes in the directory of uploads and exports in progress"
    yield GaugeMetricFamily("sweetspot_temporary_free_bytes", description, value=disk.free)
    yield GaugeMetricFamily("sweetspot_temporary_size_bytes", "Size of the disk of this directory", value=disk.total)
