"""Histograms of an installation that packed them with zlib are read after the upgrade."""

import zlib
from importlib import import_module

import msgspec
import pytest
from django.apps import apps
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from webapp.core.tests.factories import a_host, a_run, a_target
from webapp.core.tests.worker import ACCEPTED, DONE, RESULT, STARTED, sample, say
from webapp.results.models import LegRun, Result, Sample
from webapp.runs.dispatch import dispatch_host
from worker.contract.histogram import Histogram
from worker.contract.packing import unpack

migration = import_module("webapp.results.migrations.0009_histograms_without_zlib")

BINS = {0: 3, 100: 1, 78336: 70_000}


def packed_with_zlib(bins: dict[int, int]) -> bytes:
    """As it was: how many, then the distance of each midpoint and its count."""
    text, before = _number(len(bins)), 0
    for midpoint, count in sorted(bins.items()):
        text += _number(midpoint - before) + _number(count)
        before = midpoint
    return zlib.compress(text, 1) if bins else b""


def _number(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _number(value >> 7)


def as_histogram(bins: dict[int, int]) -> Histogram:
    ordered = sorted(bins)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(bins[midpoint] for midpoint in ordered))


@given(st.dictionaries(st.integers(0, 2**49 - 1), st.integers(1, 2**48 - 1), max_size=50))
def test_it_is_the_same_histogram(bins: dict[int, int]) -> None:
    assert unpack(migration.repacked(packed_with_zlib(bins))) == as_histogram(bins)


@pytest.mark.django_db
@pytest.mark.usefixtures("broker")
def test_every_histogram_that_is_kept_is_packed_anew() -> None:
    host = a_host()
    a_run(a_target(host), trials=1)
    attempt = dispatch_host(host.pk)
    assert attempt
    say(host, attempt, (1, (ACCEPTED, STARTED, sample(0), sample(1), RESULT, DONE)))
    old = packed_with_zlib(BINS)
    said = msgspec.json.encode([{"direction": "read", "latency": old}])
    Result.objects.update(latency=old)
    LegRun.objects.update(directions=said)
    Sample.objects.update(latency=old)
    Sample.objects.filter(second=0).update(latency=b"")
    migration.repack(apps, connection.schema_editor())
    kept = [bytes(each) for each in Sample.objects.order_by("second").values_list("latency", flat=True)]
    assert [unpack(each) for each in kept] == [Histogram(), as_histogram(BINS)]
    assert unpack(Result.objects.get().latency) == as_histogram(BINS)
    (direction,) = msgspec.json.decode(bytes(LegRun.objects.get().directions))
    assert unpack(msgspec.convert(direction["latency"], bytes)) == as_histogram(BINS)
