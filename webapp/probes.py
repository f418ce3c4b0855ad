"""/healthz and /metrics for monitoring systems, without a log-in."""

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from shutil import disk_usage
from tempfile import gettempdir
from time import monotonic

import redis
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webapp.celery import redis_client
from webapp.core import health, tally
from webapp.core.health import OTHER_MIGRATIONS, readiness
from webapp.core.models import Counter as StoredCounter
from webapp.hosts.models import Host, HostState, Target
from webapp.notices.models import Notice, NoticeState
from webapp.results.models import Sample
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptState, Run, RunState, Trial, TrialState
from webapp.settings.environment import is_loopback
from webapp.storage.sizes import Storage, read_storage
from worker import __version__
from worker.contract.inventory import QUARANTINED
from worker.contract.orders import queue_name

# Numbers about a running installation, as Prometheus reads them.
#
# All are read on each request to /metrics, because no single process of a server knows them.

log = logging.getLogger(__name__)

SERVER_QUEUE = "server"
NOTICE_STATES = (NoticeState.PENDING, NoticeState.FAILED)
SIZES_FOR_S = 300.0  # sizes are measured at most this often: PostgreSQL asks the file system about every table


def exposition() -> str:
    """All metrics as text. A part that cannot be read is left out and counted in sweetspot_collectors_failed."""
    return generate_latest(_AllMetrics()).decode()


class _AllMetrics(Collector):
    def collect(self) -> Iterator[Metric]:
        failed = 0
        for part in _PARTS:
            try:
                yield from list(part())
            except (DatabaseError, redis.RedisError, OSError) as error:
                failed += 1
                log.warning("some metrics cannot be read: %s", error)
        yield GaugeMetricFamily("sweetspot_collectors_failed", "Parts that could not be read now", value=failed)


def _gauge(name: str, description: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    """A gauge with one number for each value of the label. The name contains the unit, as Prometheus recommends."""
    family = GaugeMetricFamily(name, description, labels=[label])
    for text, value in values:
        family.add_metric([text], value)
    return family


def _tasks() -> Iterator[Metric]:
    ages_s = health.ages_s()
    backup_s = ages_s.pop(health.BACKUP, None)
    description = "Seconds since beat and each periodic task last ran"
    yield _gauge("sweetspot_task_silent_seconds", description, "task", ages_s.items())
    yield GaugeMetricFamily("sweetspot_backup_age_seconds", "Seconds since the last backup", value=backup_s)


def _certificates() -> Iterator[Metric]:
    name = "sweetspot_certificate_expires_timestamp_seconds"
    ends = ((path, end.timestamp()) for path, end in health.certificate_ends())
    yield _gauge(name, "Unix time at which the certificate expires", "file", ends)


def _counts() -> Iterator[Metric]:
    """Counts in the database, because no single process of a server sees all of them."""
    tally.write(at_once=True)
    refused = "Reports refused, whole or one attempt of them, by reason"
    yield _count("sweetspot_refused_reports", refused, StoredCounter.REFUSED)
    yield _count("sweetspot_failed_trials", "Trials that failed or were lost, by reason", StoredCounter.FAILED)


def _count(name: str, description: str, counter: str) -> Metric:
    family = CounterMetricFamily(name, description, labels=["reason"])
    for reason, number in StoredCounter.objects.filter(name=counter).order_by("label").values_list("label", "value"):
        family.add_metric([reason], number)
    return family


def _build() -> Iterator[Metric]:
    yield _gauge("sweetspot_build_info", "1; the label has the version", "version", [(__version__, 1)])


def _temporary_files() -> Iterator[Metric]:
    disk = disk_usage(gettempdir())
    description = "Free bytes in the directory of uploads and exports in progress"
    yield GaugeMetricFamily("sweetspot_temporary_free_bytes", description, value=disk.free)
    yield GaugeMetricFamily("sweetspot_temporary_size_bytes", "Size of the disk of this directory", value=disk.total)


def _database() -> Iterator[Metric]:
    """Sizes by kind, and the free space of the disk. At most SIZES_FOR_S old."""
    storage = measured_storage(int(monotonic() // SIZES_FOR_S))
    yield GaugeMetricFamily("sweetspot_database_bytes", "Size of the database", value=storage.database_bytes)
    sizes = [(size.kind, size.bytes) for size in storage.sizes]
    yield _gauge("sweetspot_storage_bytes", "Size of each kind of data in the database", "kind", sizes)
    description = "Free space on the disk of the database"
    yield GaugeMetricFamily("sweetspot_database_disk_free_bytes", description, value=storage.free_bytes)


@lru_cache(maxsize=1)
def measured_storage(_period: int) -> Storage:
    """`_period`: the number of a span of SIZES_FOR_S."""
    return read_storage()


def _hosts() -> Iterator[Metric]:
    """When they were heard, and what waits on their own disks."""
    now = timezone.now()
    hosts = list(Host.objects.exclude(state=HostState.REVOKED))
    silent = [(host.slug, (now - host.last_seen_at).total_seconds()) for host in hosts if host.last_seen_at]
    spools = [(host.slug, host.spool_bytes) for host in hosts]
    yield _gauge("sweetspot_host_silent_seconds", "Since a host's last message (accurate to 10 s)", "host", silent)
    quarantined_targets = Target.objects.filter(in_policy=True, problem__startswith=QUARANTINED)
    quarantined = Counter(quarantined_targets.values_list("host__slug", flat=True))
    yield _gauge(
        "sweetspot_host_quarantined_targets",
        "Targets on which nothing runs, because a program on their drive cannot be killed",
        "host",
        [(host.slug, quarantined[host.slug]) for host in hosts],
    )
    yield _gauge("sweetspot_host_spool_bytes", "Unconfirmed batches on a host's disk, as last reported", "host", spools)


def _queues() -> Iterator[Metric]:
    """One round trip to the broker for any number of hosts."""
    hosts = list(Host.objects.exclude(state=HostState.REVOKED).values_list("pk", "slug"))
    with redis_client() as client, client.pipeline(transaction=False) as pipeline:
        for queue in [SERVER_QUEUE, *(queue_name(str(pk)) for pk, _ in hosts)]:
            pipeline.llen(queue)
        server, *lengths = pipeline.execute()
    slugs = [slug for _, slug in hosts]
    yield _gauge("sweetspot_queue_orders", "Orders in a host's queue", "host", zip(slugs, lengths, strict=True))
    yield GaugeMetricFamily("sweetspot_server_queue_tasks", "Periodic tasks that no worker has taken yet", value=server)


def _states() -> Iterator[Metric]:
    yield _gauge("sweetspot_runs", "Runs by state", "state", _by_state(Run, RunState.values))
    yield _gauge("sweetspot_trials", "Trials by state", "state", _by_state(Trial, TrialState.values))
    description = "Notices that are pending, or that failed in the last 30 days"
    yield _gauge("sweetspot_notices", description, "state", _by_state(Notice, NOTICE_STATES))


def _by_state(model: type[Run | Trial | Notice], states: Iterable[str]) -> Iterator[tuple[str, int]]:
    rows = model.objects.filter(state__in=states).order_by().values_list("state").annotate(count=Count("pk"))
    counts: dict[str, int] = dict(rows)
    return ((str(state), counts.get(state, 0)) for state in states)


def _leases() -> Iterator[Metric]:
    """Leases of active attempts; below 0 the lease has expired and the next tick marks the attempt as lost."""
    now = timezone.now()
    active = list(Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).select_related("host"))
    by_kind = sorted(Counter(attempt.kind for attempt in active).items())
    left = [(attempt.host.slug, (attempt.lease_until - now).total_seconds()) for attempt in active]
    yield _gauge("sweetspot_leases", "Leases held, by kind of order", "kind", by_kind)
    yield _gauge("sweetspot_lease_left_seconds", "Seconds until a host's lease expires", "host", left)


def _ingest_lag() -> Iterator[Metric]:
    """From the end of a running attempt's newest committed second to now, by the server's clock.

    A running attempt has a new second every second, so more than about 2 s means that reports are late.
    """
    now = timezone.now()
    readings = []
    for attempt in Attempt.objects.filter(state=AttemptState.RUNNING).select_related("host"):
        newest = Sample.objects.filter(attempt=attempt).aggregate(at=Max("at"))["at"]
        if newest is not None:
            lag_s = (now - newest).total_seconds() - (attempt.clock_offset_ms or 0) / 1000
            readings.append((attempt.host.slug, lag_s))
    yield _gauge("sweetspot_ingest_lag_seconds", "End of the newest committed second to now", "host", readings)


_PARTS: tuple[Callable[[], Iterable[Metric]], ...] = (
    _tasks, _certificates, _counts, _build, _temporary_files, _database, _hosts, _queues, _states, _leases, _ingest_lag,
)  # fmt: skip


_FORWARDED = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA")


@never_cache
@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """Liveness: the process answers. It checks no other part, so a missing database causes no restart."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """Readiness: 200, or 503 with the names of the failed parts. `?without=tasks` checks only what requests need.

    Warnings do not change the status.
    """
    parts = readiness(without=request.GET.getlist("without"))
    good = all(parts.values())
    warnings = [*health.certificate_warnings(), *([] if parts.get("migrations", True) else [OTHER_MIGRATIONS])]
    answer = {"status": "ok" if good else "unavailable", "parts": parts, "warnings": warnings}
    return JsonResponse(answer, status=200 if good else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read_metrics(request):
        words = "Set SWEETSPOT_METRICS_TOKEN at the server and send it as Authorization: Bearer. "
        return HttpResponse(words + "Without it, only loopback may read metrics.\n", "text/plain", 403)
    return HttpResponse(exposition(), CONTENT_TYPE_PLAIN_0_0_4)


def _may_read_metrics(request: HttpRequest) -> bool:
    """If a token is set, the token decides. Otherwise only loopback without a proxy, which may be on loopback too."""
    if settings.METRICS_TOKEN:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(token.encode(), settings.METRICS_TOKEN.encode())
    forwarded = settings.SECURE_PROXY_SSL_HEADER or any(name in request.META for name in _FORWARDED)
    return not forwarded and is_loopback(request.META.get("REMOTE_ADDR", ""))
