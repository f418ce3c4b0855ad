"""The step before something is overwritten: what it shows, who may take it, and how it ends."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from webapp.core.models import AuditEntry
from webapp.hosts.models import Target
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def drive(db: None) -> Target:
    host = a_host("storage1", boot_id="b")
    an_inventory(host)
    return storage1_drive(host, opens="/dev/nvme0n1")


@pytest.fixture
def run(drive: Target) -> Run:
    """Queued, armed in time, with everything still to be done."""
    run = first_look_run(
        first_look(), [drive], repeats=1, state="queued", started_at=None, queue_position=1,
        armed_serials=[drive.serial], armed_until=timezone.now() + timedelta(minutes=50),
    )  # fmt: skip
    run.trials.filter(point__pattern__contains="write").update(destructive=True)
    return run


def shown(client: Client) -> str:
    return client.get("/runs/1/").content.decode()


def test_it_shows_each_drive_with_what_is_on_it_and_asks_for_its_serial(operator: Client, run: Run) -> None:
    Run.objects.update(armed_until=timezone.now() - timedelta(seconds=5))
    page = shown(operator)
    for words in (
        "SAMSUNG MZQL21T9HCJR", "1.92 TB", "no recognised data", "type its serial: <code>S64GNE0R800123",
        "but it did not start by then", "Arm run 1 for an hour and overwrite storage1/nvme0",
    ):  # fmt: skip
        assert words in page, words
    assert "data-until" not in page


def test_an_armed_run_says_who_and_how_long_and_can_be_disarmed(operator: Client, run: Run) -> None:
    operator.post("/runs/1/disarm/")
    assert "The run was disarmed" in shown(operator)
    assert "type: S64GNE0R800123" in operator.post("/runs/1/arm/", {"serial": "WRONG"}, follow=True).content.decode()
    assert Run.objects.get().armed_until is None
    operator.post("/runs/1/arm/", {"serial": " S64GNE0R800123 "})
    page = shown(operator)
    assert "by olga to overwrite storage1/nvme0" in page
    assert "data-until" in page
    said = list(AuditEntry.objects.order_by("id").values_list("action", "actor__username"))
    assert said == [("run.disarm", "olga"), ("run.arm", "olga")]


def test_a_run_that_began_in_time_counts_no_longer(operator: Client, run: Run) -> None:
    Run.objects.update(started_at=timezone.now(), state="running")
    assert "the arming lasts until its end" in shown(operator)
    assert "data-until" not in shown(operator)


def test_a_viewer_sees_it_and_can_do_nothing(viewer: Client, run: Run) -> None:
    page = shown(viewer)
    assert "Armed</strong>" in page
    assert ">Disarm<" not in page
    Run.objects.update(armed_until=None)
    assert 'name="serial"' not in shown(viewer)
    for action, form in (("arm", {"serial": "S64GNE0R800123"}), ("disarm", {})):
        assert viewer.post(f"/runs/1/{action}/", form).status_code == 403
    assert Run.objects.get().armed_until is None


def test_arming_one_run_arms_no_other(operator: Client, run: Run, drive: Target) -> None:
    other = first_look_run(
        run.version, [drive], repeats=1, state="queued", started_at=None, queue_position=2, armed_serials=[]
    )
    other.trials.update(destructive=True)
    operator.post("/runs/1/arm/", {"serial": drive.serial})
    assert "It waits to be armed" in operator.get("/runs/2/").content.decode()


def test_a_run_with_nothing_to_destroy_says_nothing_of_it(operator: Client, run: Run) -> None:
    run.trials.update(destructive=False)
    assert "rmed" not in shown(operator)
    refused = operator.post("/runs/1/arm/", {"serial": "x"}, follow=True).content.decode()
    assert "The remaining trials of run 1 overwrite nothing" in refused
