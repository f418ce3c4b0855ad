"""The Undo button in messages brings back what was there before."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from webapp.analysis.models import Price
from webapp.core.models import User
from webapp.hosts.groups import MemberSpec, create_group
from webapp.hosts.inventory.endurance import rate_endurance
from webapp.hosts.maintenance_windows import add_weekly_window
from webapp.hosts.models import EnduranceRating, Host, HostGroup, MaintenanceWindow, Target
from webapp.notices.models import Event, Subscription
from webapp.schedules.models import Schedule
from webapp.schedules.services import switch_off
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.notices import a_plan, a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.schedules import a_schedule
from webapp.tests.undoing import undo
from webapp.trends.models import Baseline
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db
PRICE = {"kind": "model", "name": "PM9A3", "amount": "249.90", "currency": "EUR", "priced_on": "2026-11-01"}


@pytest.fixture
def host() -> Host:
    return a_host("storage1")


def posted(client: Client, view: str, /, *args: object, **given: object) -> str:
    answer = client.post(reverse(view, args=args), given, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def baseline(client: Client, **given: str) -> str:
    return posted(client, "set_baseline", plan="nightly", target="storage1/scratch", **given)


def test_a_removed_and_a_replaced_baseline_run_is_set_again(operator: Client, host: Host) -> None:
    nights = Nights(a_version(slug="nightly"), storage1_scratch(host))
    for _ in range(2):
        nights.run(1000)
    assert ">Undo<" not in baseline(operator, run="1", **{"tolerance.iops": "7.5"})
    undo(operator, baseline(operator, run="2", **{"tolerance.iops": "1", "tolerance.latency_p99": "3"}))
    undo(operator, posted(operator, "remove_baseline", Baseline.objects.get().pk))
    found = Baseline.objects.get()
    assert (found.name, found.tolerances) == ("run 1", {"iops": 7.5})


def test_a_removed_and_a_replaced_price_is_set_again(operator: Client) -> None:
    an_import(drive=PRICE["name"])
    assert ">Undo<" not in posted(operator, "set_price", **PRICE)
    changed = PRICE | {"amount": "1", "currency": "USD", "priced_on": "2026-11-02"}
    undo(operator, posted(operator, "set_price", **changed))
    undo(operator, posted(operator, "set_price", **PRICE, remove="1"))
    found = Price.objects.get()
    assert (found.amount, found.currency, str(found.priced_on)) == (Decimal("249.90"), "EUR", "2026-11-01")


def test_a_deleted_weekly_window_is_added_again(operator: Client, host: Host) -> None:
    window = add_weekly_window(
        host=host, days=[5, 6], opens=time(22), closes=time(6, 30), zone="Europe/Berlin", note="Backups", by=None
    )
    undo(operator, posted(operator, "host_window_delete", "storage1", window.pk))
    found = MaintenanceWindow.objects.get()
    assert (found.days, found.opens, found.closes) == ([5, 6], time(22), time(6, 30))
    assert (found.time_zone, found.note) == ("Europe/Berlin", "Backups")


@pytest.mark.parametrize(("begins_in_h", "undone"), [(-1, True), (24, True), (-48, False)])
def test_a_deleted_single_window_is_added_again_unless_it_has_passed(
    operator: Client, host: Host, begins_in_h: int, undone: bool
) -> None:
    starts = timezone.now().astimezone(UTC) + timedelta(hours=begins_in_h)
    moments: tuple[datetime, datetime] = (starts, starts + timedelta(hours=5))
    window = MaintenanceWindow.objects.create(host=host, starts_at=moments[0], ends_at=moments[1], note="Firmware")
    page = posted(operator, "host_window_delete", "storage1", window.pk)
    assert (">Undo<" in page) is undone
    if undone:
        undo(operator, page)
        found = MaintenanceWindow.objects.get()
        assert (found.starts_at, found.ends_at, found.note) == (*moments, "Firmware")


def members() -> list[tuple[str, str, list[str]]]:
    found = HostGroup.objects.get(slug="racks", title="Both racks").members.all()
    return [(one.host.slug, one.label, sorted(one.targets.values_list("slug", flat=True))) for one in found]


def test_a_deleted_and_a_changed_host_group_is_as_before(operator: Client, host: Host) -> None:
    for one in (host, a_host("storage2")):
        storage1_scratch(one)
        storage1_drive(one)
    specs = [MemberSpec("storage2", ["scratch"], "broadcom"), MemberSpec("storage1", ["nvme0", "scratch"], "adaptec")]
    create_group(title="Both racks", members=specs, by=None, slug="racks")
    before = members()
    changed = {"title": "One rack", "member": ["storage1"], "label.storage1": "x", "target.storage1": ["scratch"]}
    page = posted(operator, "host_group", "racks", **changed)
    assert HostGroup.objects.get().members.count() == 1
    undo(operator, page)
    assert members() == before
    page = posted(operator, "delete_host_group", "racks")
    assert not HostGroup.objects.exists()
    undo(operator, page)
    assert members() == before


def endurance(client: Client, target: Target, **given: str) -> str:
    return posted(client, "host_endurance", target.host.slug, target.slug, **given)


def test_a_deleted_and_a_changed_endurance_has_its_basis_again(operator: Client, host: Host) -> None:
    drive = storage1_drive(host)
    rate_endurance(target=drive, by=None, dwpd=1, years=3, source="datasheet")
    before = EnduranceRating.objects.values_list("rated_bytes", "basis", "source").get()
    undo(operator, endurance(operator, drive, amount="600", unit="tbw", source="a web page"))
    assert EnduranceRating.objects.values_list("rated_bytes", "basis", "source").get() == before
    undo(operator, endurance(operator, drive, do="forget"))
    assert EnduranceRating.objects.values_list("rated_bytes", "basis", "source").get() == before


def test_only_a_rating_that_was_there_is_restored(operator: Client, host: Host) -> None:
    drive, other = storage1_drive(host), storage1_scratch(host)
    assert "This is not a former rating" in endurance(operator, drive, do="restore", rating="['made up']")
    rate_endurance(target=drive, by=None, tbw_tb=600, source="datasheet")
    page = endurance(operator, drive, do="forget")
    token = page.split('name="rating" value="')[1].split('"')[0]
    assert "This is not a former rating" in endurance(operator, other, do="restore", rating=token)
    assert not EnduranceRating.objects.exists()


@pytest.mark.parametrize("paused", [False, True])
def test_a_deleted_subscription_by_e_mail_is_added_again(viewer: Client, settings: Settings, paused: bool) -> None:
    settings.EMAIL_HOST = "mail.example"
    vera = User.objects.get(username="vera")
    User.objects.filter(pk=vera.pk).update(email="vera@example.com")
    plan = a_plan()
    paused_at = timezone.now() if paused else None
    found = a_subscription(user=vera, plan=plan, events=[Event.ENDED, Event.LATE])
    Subscription.objects.filter(pk=found.pk).update(paused_at=paused_at)
    page = posted(viewer, "delete_notice", found.pk)
    assert not Subscription.objects.exists()
    undo(viewer, page)
    again = Subscription.objects.get(user=vera)
    assert (again.channel, again.plan, again.events) == ("email", plan, ["ended", "late"])
    assert (again.paused_at is not None) is paused


def test_a_deleted_webhook_says_that_its_secret_is_gone(viewer: Client) -> None:
    found = a_subscription("https://hooks.example/x", user=User.objects.get(username="vera"))
    page = posted(viewer, "delete_notice", found.pk)
    assert "The secret of the webhook is deleted too" in page
    assert ">Undo<" not in page


@pytest.mark.parametrize("on", [False, True])
def test_a_deleted_schedule_is_restored_and_as_before(operator: Client, host: Host, on: bool) -> None:
    nightly = a_schedule(a_user("otto"), name="nightly", version=a_version(), targets=[storage1_scratch(host)])
    if not on:
        switch_off(schedule=nightly, by=nightly.owner)
    page = undo(operator, posted(operator, "delete_schedule", nightly.pk))
    found = Schedule.objects.get()
    assert (found.deleted_at, found.enabled) == (None, on)
    assert ("was restored and is switched on." if on else "was restored. It is switched off.") in page


def test_a_schedule_that_cannot_run_any_more_is_restored_and_stays_off(operator: Client, host: Host) -> None:
    nightly = a_schedule(a_user("otto"), name="nightly", version=a_version(), targets=[storage1_scratch(host)])
    page = posted(operator, "delete_schedule", nightly.pk)
    nightly.version.plan.deleted_at = timezone.now()
    nightly.version.plan.save()
    assert "was restored. It is switched off: The plan" in undo(operator, page)
    assert not Schedule.objects.get().enabled
