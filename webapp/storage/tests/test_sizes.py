"""Sizes by kind, their growth, and the time until the disk is full."""

from collections import namedtuple
from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.core import health
from webapp.core.models import Heartbeat
from webapp.probes import exposition, measured_storage
from webapp.results.retention import ensure_partition
from webapp.runs.models import Run
from webapp.storage import sizes
from webapp.storage.models import DailySize
from webapp.storage.sizes import KINDS, note_sizes, read_storage
from webapp.storage.tasks import tidy
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.runs import a_run

pytestmark = pytest.mark.django_db

Usage = namedtuple("Usage", "total used free")


def earlier(kind: str, days: int, smaller_by: int) -> None:
    now_bytes = {size.kind: size.bytes for size in read_storage().sizes}
    day = timezone.now().date() - timedelta(days=days)
    DailySize.objects.create(day=day, kind=kind, bytes=now_bytes[kind] - smaller_by)


def test_the_kinds_have_every_byte_of_the_database_once() -> None:
    storage = read_storage()
    assert {size.kind for size in storage.sizes} == set(KINDS)
    assert sum(size.bytes for size in storage.sizes) == storage.database_bytes
    assert [size.bytes for size in storage.sizes] == sorted((size.bytes for size in storage.sizes), reverse=True)


def test_a_partition_counts_as_samples() -> None:
    before = {size.kind: size.bytes for size in read_storage().sizes}
    ensure_partition(timezone.now().date() + timedelta(days=400))
    after = {size.kind: size.bytes for size in read_storage().sizes}
    assert after["samples"] > before["samples"]


def test_the_growth_is_that_since_the_earliest_of_the_last_30_days() -> None:
    earlier("samples", 31, 9_000_000)
    earlier("samples", 30, 3_000_000)
    earlier("samples", 2, 1_000_000)
    earlier("results", 10, -100)
    storage = read_storage()
    rates = {size.kind: size.bytes_per_day for size in storage.sizes}
    assert rates["samples"] == 100_000
    assert rates["results"] == -10
    assert rates["audit"] is None
    assert storage.bytes_per_day == 99_990
    assert storage.fastest is not None
    assert storage.fastest.kind == "samples"


def test_it_says_when_the_disk_is_full(monkeypatch: pytest.MonkeyPatch, settings: object) -> None:
    settings.DATABASE_DISK = "/"  # type: ignore[attr-defined]
    monkeypatch.setattr(sizes, "disk_usage", lambda _path: Usage(10, 9, 5_000_000))
    assert read_storage().days_left is None
    earlier("samples", 10, 10_000_000)
    assert read_storage().days_left == 5


@pytest.mark.parametrize("folder", ["", "/does/not/exist"])
def test_it_says_nothing_about_a_disk_that_it_cannot_see(folder: str, settings: object) -> None:
    settings.DATABASE_DISK = folder  # type: ignore[attr-defined]
    earlier("samples", 10, 10_000_000)
    assert read_storage().free_bytes is None
    assert read_storage().days_left is None


def test_the_daily_task_notes_each_kind_once_a_day() -> None:
    old = timezone.now().date() - timedelta(days=401)
    DailySize.objects.create(day=old, kind="samples", bytes=1)
    tidy()
    tidy()
    assert DailySize.objects.count() == len(KINDS)
    assert not DailySize.objects.filter(day=old).exists()


def test_a_day_is_replaced_by_a_later_size() -> None:
    note_sizes()
    DailySize.objects.update(bytes=1)
    note_sizes()
    assert not DailySize.objects.filter(bytes=1).exists()


def test_no_run_is_deleted_while_the_clock_may_be_wrong(settings: object) -> None:
    settings.RUN_DAYS = 1  # type: ignore[attr-defined]
    a_run(a_target(), state="done", ended_at=timezone.now() - timedelta(days=3))
    Heartbeat.objects.create(name=health.TIDY_STORAGE, at=timezone.now() - timedelta(days=5))
    tidy()
    assert Run.objects.exists()
    tidy()
    assert not Run.objects.exists()


def test_prometheus_gets_the_sizes(settings: object) -> None:
    settings.DATABASE_DISK = "/"  # type: ignore[attr-defined]
    measured_storage.cache_clear()
    text = exposition()
    for kind in KINDS:
        assert f'sweetspot_storage_bytes{{kind="{kind}"}}' in text
    assert "\nsweetspot_database_disk_free_bytes " in text
