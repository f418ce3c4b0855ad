"""Ratings as people enter them, and what is left of them."""

from typing import Any

import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.inventory.endurance import TB, Endurance, endurance_of, forget_endurance, rate_endurance
from webapp.hosts.models import Target
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db


def worn(percent: int | None, host_bytes: int | None, **changes: Any) -> Target:
    told = {"device": "nvme0n1", "serial": "S1", "percent_used": percent, "host_written_bytes": host_bytes}
    return a_drive(a_host(health=[told]), serial="S1", size_bytes=TB, **changes)


def of(target: Target) -> Endurance:
    return endurance_of([target])[target.pk]


def rate(target: Target, **given: Any) -> Endurance:
    rate_endurance(target=target, by=None, **{"source": "datasheet", **given})
    return of(target)


def test_it_is_terabytes_or_drive_writes_a_day_over_the_warranty() -> None:
    drive, by = worn(None, None), a_user()
    rate_endurance(target=drive, by=by, tbw_tb=1400, source="datasheet, page 3")
    assert of(drive).rated_bytes == 1400 * TB
    found = rate(drive, dwpd=1, years=5, source="the shop")
    assert found.rating
    assert (found.rated_bytes, found.rating.source) == (1825 * TB, "the shop")
    assert found.rating.basis == "1 drive writes per day × 1.00 TB × 5 years"
    entries = AuditEntry.objects.filter(action="host.endurance_set").order_by("pk")
    assert next((entry.label, entry.actor_name) for entry in entries) == (str(drive), by.username)
    assert forget_endurance(target=drive, by=by)
    assert of(drive).rated_bytes is None
    assert not forget_endurance(target=drive, by=by)
    assert AuditEntry.objects.filter(action="host.endurance_delete").count() == 1


def test_what_is_left_is_the_lesser_of_what_bytes_and_percent_say() -> None:
    assert rate(worn(None, None), tbw_tb=100).left_bytes == 100 * TB
    assert rate(worn(None, 30 * TB), tbw_tb=100).left_bytes == 70 * TB
    assert rate(worn(50, 30 * TB), tbw_tb=100).left_bytes == 50 * TB
    assert rate(worn(104, 30 * TB), tbw_tb=100).left_bytes == 0
    assert of(worn(104, 30 * TB)).left_bytes is None


def test_host_bytes_and_percentage_imply_a_rating_within_a_percent() -> None:
    assert of(worn(4, 40 * TB)).implied_bytes == (800 * TB, 40 * TB * 100 / 3)
    assert of(worn(1, 40 * TB)).implied_bytes == (2000 * TB, float("inf"))
    for silent in (worn(0, 40 * TB), worn(None, 40 * TB), worn(4, None)):
        assert of(silent).implied_bytes is None


def test_another_drives_health_is_not_taken() -> None:
    assert of(worn(4, TB, device="sdb")).percent_used == 4
    stranger = worn(4, TB)
    Target.objects.filter(pk=stranger.pk).update(serial="S2", device="")
    assert of(Target.objects.select_related("host").get(pk=stranger.pk)).percent_used is None


@pytest.mark.parametrize(
    "given",
    [
        {"tbw_tb": 0}, {"tbw_tb": -1}, {"tbw_tb": 1e9}, {"tbw_tb": float("nan")}, {"dwpd": 0}, {"dwpd": float("inf")},
        {"dwpd": -1, "years": -5}, {}, {"tbw_tb": 1, "dwpd": 1}, {"tbw_tb": 1, "source": "  "},
        {"tbw_tb": 1, "source": "x" * 501},
    ],
)  # fmt: skip
def test_it_refuses_what_is_no_rating(given: dict[str, Any]) -> None:
    drive = worn(None, None)
    with pytest.raises(Refusal) as refused:
        rate(drive, **given)
    assert refused.value.code == "endurance_bad"
    assert of(drive).rating is None


def test_a_directory_has_no_capacity_that_is_written_daily_and_a_pool_no_rating_of_its_own() -> None:
    with pytest.raises(Refusal, match="Enter TBW"):
        rate(a_target(), dwpd=1)
    with pytest.raises(Refusal, match="each of its drives"):
        rate(a_target(kind="pool"), tbw_tb=1)
