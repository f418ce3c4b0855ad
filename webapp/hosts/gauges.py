"""Metrics of hosts: last report, orders in the broker, unconfirmed batches on their disks."""

from django.utils import timezone

from webapp.core.gauges import Family, Reading, collector
from webapp.core.redis_client import redis_client
from webapp.hosts.models import Host, HostState
from worker.contract.orders import queue_name

SERVER_QUEUE = "server"


@collector
def heard() -> list[Family]:
    now = timezone.now()
    hosts = list(Host.objects.exclude(state=HostState.REVOKED))
    silent = tuple(
        Reading((now - host.last_seen_at).total_seconds(), {"host": host.slug}) for host in hosts if host.last_seen_at
    )
    spools = tuple(Reading(host.spool_bytes, {"host": host.slug}) for host in hosts)
    return [
        Family("sweetspot_host_silent_seconds", "Seconds since a host's last message (accurate to 10 s)", silent),
        Family("sweetspot_host_spool_bytes", "Unconfirmed batches on a host's disk, as last reported", spools),
    ]


@collector
def queues() -> list[Family]:
    """One round trip to the broker for any number of hosts."""
    hosts = list(Host.objects.exclude(state=HostState.REVOKED).values_list("pk", "slug"))
    with redis_client() as client, client.pipeline(transaction=False) as pipeline:
        for queue in [SERVER_QUEUE, *(queue_name(str(pk)) for pk, _ in hosts)]:
            pipeline.llen(queue)
        server, *lengths = pipeline.execute()
    orders = tuple(Reading(length, {"host": slug}) for (_, slug), length in zip(hosts, lengths, strict=True))
    return [
        Family("sweetspot_queue_orders", "Orders in a host's queue", orders),
        Family("sweetspot_server_queue_tasks", "Periodic tasks that no worker has taken yet", (Reading(server),)),
    ]
