"""Hosts: when they were heard, what waits for them in the broker and on their own disks."""

from collections import Counter
from collections.abc import Iterator

from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from webapp.core.gauges import collector, gauge
from webapp.core.redis_client import redis_client
from webapp.hosts.models import Host, HostState, Target
from worker.contract.inventory import QUARANTINED
from worker.contract.orders import queue_name

SERVER_QUEUE = "server"


@collector
def heard() -> Iterator[Metric]:
    now = timezone.now()
    hosts = list(Host.objects.exclude(state=HostState.REVOKED))
    silent = [(host.slug, (now - host.last_seen_at).total_seconds()) for host in hosts if host.last_seen_at]
    spools = [(host.slug, host.spool_bytes) for host in hosts]
    yield gauge("sweetspot_host_silent_seconds", "Since a host's last message (accurate to 10 s)", "host", silent)
    hosts_of_targets = Target.objects.filter(in_policy=True, problem__startswith=QUARANTINED).values_list(
        "host__slug", flat=True
    )
    quarantined = Counter(hosts_of_targets)
    yield gauge(
        "sweetspot_host_quarantined_targets",
        "Targets on which nothing runs, because a program on their drive cannot be killed",
        "host",
        [(host.slug, quarantined[host.slug]) for host in hosts],
    )
    yield gauge("sweetspot_host_spool_bytes", "Unconfirmed batches on a host's disk, as last reported", "host", spools)


@collector
def queues() -> Iterator[Metric]:
    """One round trip to the broker for any number of hosts."""
    hosts = list(Host.objects.exclude(state=HostState.REVOKED).values_list("pk", "slug"))
    with redis_client() as client, client.pipeline(transaction=False) as pipeline:
        for queue in [SERVER_QUEUE, *(queue_name(str(pk)) for pk, _ in hosts)]:
            pipeline.llen(queue)
        server, *lengths = pipeline.execute()
    slugs = [slug for _, slug in hosts]
    yield gauge("sweetspot_queue_orders", "Orders in a host's queue", "host", zip(slugs, lengths, strict=True))
    yield GaugeMetricFamily("sweetspot_server_queue_tasks", "Periodic tasks that no worker has taken yet", value=server)
