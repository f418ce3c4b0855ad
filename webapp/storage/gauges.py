"""Sizes of the database by kind, and the free space of its disk."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from webapp.core.gauges import collector, gauge
from webapp.storage.sizes import read_storage


@collector
def sizes() -> Iterator[Metric]:
    storage = read_storage()
    readings = [(size.kind, size.bytes) for size in storage.sizes]
    yield gauge("sweetspot_storage_bytes", "Size of each kind of data in the database", "kind", readings)
    description = "Free space on the disk of the database"
    yield GaugeMetricFamily("sweetspot_database_disk_free_bytes", description, value=storage.free_bytes)
