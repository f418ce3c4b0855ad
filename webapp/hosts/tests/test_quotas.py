"""A stolen token of a host cannot fill the database with inventories."""

from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from webapp.core import health
from webapp.core.models import Heartbeat
from webapp.hosts import services
from webapp.hosts.inventory.store import KEPT_DAYS, thin_inventories
from webapp.hosts.models import EnrolmentToken, Host, HostInventory, InventoryContent
from webapp.hosts.services import MAX_INVENTORIES_A_DAY, record_inventory
from webapp.hosts.tasks import TOKENS_KEPT_FOR, tidy
from webapp.tests.factories.hosts import a_host, storage1_inventory
from webapp.tests.refusals import refuses

pytestmark = pytest.mark.django_db


def record(host: Host, number: int, age: timedelta = timedelta()) -> None:
    inventory = replace(storage1_inventory(), memory_bytes=number, hostname=f"name{number}")
    record_inventory(host, inventory, at=timezone.now() - age)


def test_it_keeps_a_limited_number_of_inventories_a_day_and_always_the_newest() -> None:
    host = a_host()
    for number in range(MAX_INVENTORIES_A_DAY + 10):
        record(host, number)
    assert HostInventory.objects.count() == InventoryContent.objects.count() == MAX_INVENTORIES_A_DAY
    newest = HostInventory.objects.latest("taken_at")
    assert newest.content.facts["memory_bytes"] == MAX_INVENTORIES_A_DAY + 9
    assert len(newest.changes or []) == 11


def test_it_refuses_an_inventory_of_a_size_that_no_host_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_INVENTORY_BYTES", 100)
    with refuses("inventory_too_large"):
        record(a_host(), 1)


def test_it_thins_old_inventories() -> None:
    host, other = a_host(), a_host()
    day = timezone.now().replace(hour=12) - timedelta(days=KEPT_DAYS + 5)
    for number in range(5):
        record_inventory(host, replace(storage1_inventory(), memory_bytes=number), at=day + timedelta(minutes=number))
    record(other, 7, timedelta(days=KEPT_DAYS + 9))
    record(host, 8)
    tidy()
    assert list(host.inventories.values_list("content__facts__memory_bytes", flat=True)) == [8, 0]
    assert (other.inventories.count(), InventoryContent.objects.count()) == (1, 3)
    assert thin_inventories() == 0


def test_an_inventory_with_a_slightly_different_memory_size_is_not_stored() -> None:
    host, now = a_host(), timezone.now()
    for size in (64_000_000_000, 63_000_000_000, 48_000_000_000):
        record_inventory(host, replace(storage1_inventory(), memory_bytes=size), at=now)
        now += timedelta(minutes=1)
    assert set(host.inventories.values_list("content__facts__memory_bytes", flat=True)) == {
        64_000_000_000, 48_000_000_000,
    }  # fmt: skip


def test_a_token_is_deleted_a_month_after_its_end() -> None:
    ends = [timedelta(hours=1), -TOKENS_KEPT_FOR + timedelta(hours=1), -TOKENS_KEPT_FOR - timedelta(hours=1)]
    for number, left in enumerate(ends):
        EnrolmentToken.objects.create(token_hash=str(number), expires_at=timezone.now() + left)
    tidy()
    assert set(EnrolmentToken.objects.values_list("token_hash", flat=True)) == {"0", "1"}


def test_nothing_old_is_deleted_in_the_first_run_after_the_clock_jumped() -> None:
    EnrolmentToken.objects.create(token_hash="0", expires_at=timezone.now() - TOKENS_KEPT_FOR * 2)
    Heartbeat.objects.create(name=health.TIDY_HOSTS, at=timezone.now() - timedelta(days=60))
    tidy()
    assert EnrolmentToken.objects.exists()
    tidy()
    assert not EnrolmentToken.objects.exists()
