"""Histograms were zlib over LEB128 numbers: of buckets, then each midpoint's distance and count. Packs them as now."""

import zlib
from typing import Any

import msgspec
from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from worker.contract.histogram import Histogram
from worker.contract.packing import pack

_AT_ONCE = 2000
_SAMPLES = """
update results_sample s set latency = new.latency
from unnest(%s::uuid[], %s::int[], %s::int[], %s::text[], %s::bytea[]) new(attempt_id, leg, second, direction, latency)
where (s.attempt_id, s.leg, s.second, s.direction) = (new.attempt_id, new.leg, new.second, new.direction)
"""


def repacked(data: bytes | memoryview) -> bytes:
    """The same histogram as it is packed now."""
    if not data:
        return b""
    numbers = _numbers(zlib.decompress(data))
    latencies, at = [], 0
    for distance in numbers[1::2]:
        at += distance
        latencies.append(at)
    return pack(Histogram(latency_ns=tuple(latencies), counts=tuple(numbers[2::2])))


def _numbers(data: bytes) -> list[int]:
    numbers, number, shift = [], 0, 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return numbers


def repack(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Samples trial by trial, the rest row by row."""
    _repack_samples(apps.get_model("results", "Sample"), schema_editor)
    _repack_results(apps.get_model("results", "Result"))
    _repack_legs(apps.get_model("results", "LegRun"))


def _repack_samples(samples: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for attempt_id in samples.objects.order_by().values_list("attempt_id", flat=True).distinct():
        rows = samples.objects.filter(attempt_id=attempt_id).values_list(
            "attempt_id", "leg", "second", "direction", "latency"
        )
        found = [(*key, repacked(latency)) for *key, latency in rows]
        for begin in range(0, len(found), _AT_ONCE):
            columns = [list(column) for column in zip(*found[begin : begin + _AT_ONCE], strict=True)]
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(_SAMPLES, columns)


def _repack_results(results: Any) -> None:
    for result in results.objects.only("latency").iterator(chunk_size=_AT_ONCE):
        results.objects.filter(pk=result.pk).update(latency=repacked(result.latency))


def _repack_legs(legs: Any) -> None:
    for leg in legs.objects.exclude(directions=b"").only("directions").iterator(chunk_size=_AT_ONCE):
        said = msgspec.json.decode(bytes(leg.directions))
        for direction in said:
            packed = msgspec.convert(direction["latency"], bytes)
            direction["latency"] = repacked(packed)
        legs.objects.filter(pk=leg.pk).update(directions=msgspec.json.encode(said))


class Migration(migrations.Migration):
    dependencies = [("results", "0008_kernel_lines_elsewhere")]
    operations = [migrations.RunPython(repack)]
