"""A target's page: what it says of the drive, what it offers, and what came of it."""

import msgspec
import pytest
from django.test import Client

from webapp.hosts.models import Target
from webapp.runs.actions.host_actions import purge_drive
from webapp.runs.models import Attempt, HostAction, SettingChange
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive, storage1_scratch
from worker.contract.tests.examples import PURGED

pytestmark = pytest.mark.usefixtures("broker")
FROZEN = "The host's firmware has frozen the drive's security state."


@pytest.fixture
def drive(transactional_db: None) -> Target:
    host = a_host("storage1")
    an_inventory(host)
    purges = [{"method": "discard", "problem": ""}, {"method": "ata_secure_erase", "problem": FROZEN}]
    purges.append({"method": "nvme_format", "problem": ""})
    return storage1_drive(host, opens="/dev/nvme0n1", purges=purges)


def shown(client: Client) -> str:
    return client.get("/hosts/storage1/targets/nvme0/").content.decode()


def test_it_offers_the_drives_purge_methods_and_explains_unavailable_ones(operator: Client, drive: Target) -> None:
    page = shown(operator)
    for words in ("S64GNE0R800123", "1.92 TB", "no recognised data", "ATA secure erase", "frozen"):
        assert words in page, words
    assert page.count(">not tested on real hardware<") == 1
    assert page.count(">tested on an emulated drive, not on real hardware<") == 1
    assert 'value="ata_secure_erase" required disabled' in page
    assert "No purges from here yet" in page


def test_it_shows_the_warnings_of_the_host(operator: Client, drive: Target) -> None:
    assert "<dt>Warnings</dt>" not in shown(operator)
    Target.objects.filter(pk=drive.pk).update(warnings=["nvme0n1 was purged and not written since."])
    assert "nvme0n1 was purged and not written since." in shown(operator)


def test_a_purge_can_be_requested_and_its_progress_is_shown(operator: Client, drive: Target) -> None:
    form = {"method": "discard", "serial": "S64GNE0R80012", "why": "for <b>you</b>"}
    refused = operator.post("/hosts/storage1/targets/nvme0/purge/", form)
    assert refused.status_code == 422
    assert (
        "Not purged: This destroys all data on the drives. To arm it, type: S64GNE0R800123" in refused.content.decode()
    )
    assert 'value="for &lt;b&gt;you&lt;/b&gt;"' in refused.content.decode()
    assert 'aria-labelledby="purge-title" open>' in refused.content.decode()
    assert 'aria-labelledby="purge-title">' in shown(operator)
    assert not HostAction.objects.exists()
    operator.post("/hosts/storage1/targets/nvme0/purge/", form | {"serial": "S64GNE0R800123"})
    page = shown(operator)
    assert "order sent" in page
    assert "for &lt;b&gt;you&lt;/b&gt;" in page
    assert "works on" not in page
    attempt = HostAction.objects.get().attempt
    purged = [msgspec.to_builtins(PURGED)]
    Attempt.objects.filter(pk=attempt.pk).update(state="done", ended_at=attempt.created_at, purged=purged)
    page = shown(operator)
    assert "256 samples read as zeros; the method promises nothing about zeros" in page
    assert "BLKDISCARD /dev/nvme0n1 0 960197124096" in page


def test_a_discard_can_be_stopped_from_it_and_other_methods_say_that_they_cannot(
    operator: Client, drive: Target
) -> None:
    assert "can be stopped" in shown(operator)
    action = purge_drive(target=drive, method="discard", serial=drive.arming_serial, why="", by=None)
    assert "Stop this purge" in shown(operator)
    assert "partly purged, and its state is unknown" in shown(operator)
    operator.post(f"/hosts/storage1/targets/nvme0/purge/{action.pk}/stop/")
    action.refresh_from_db()
    assert action.stop_requested_at is not None
    assert "Stops after the current piece" in shown(operator)
    HostAction.objects.update(purge="nvme_format", stop_requested_at=None)
    assert "Cannot be stopped: the drive purges itself" in shown(operator)
    refused = operator.post(f"/hosts/storage1/targets/nvme0/purge/{action.pk}/stop/")
    assert (
        refused.status_code,
        "Not stopped: The drive of storage1/nvme0 purges itself" in refused.content.decode(),
    ) == (422, True)
    assert operator.post("/hosts/storage1/targets/nvme0/purge/99/stop/").status_code == 404


def test_a_viewer_sees_everything_and_can_do_nothing(viewer: Client, drive: Target) -> None:
    page = shown(viewer)
    assert "Purging requires the operator role" in page
    assert 'name="serial"' not in page
    assert viewer.post("/hosts/storage1/targets/nvme0/purge/", {}).status_code == 403


def test_only_unprotected_drives_are_purged(operator: Client, drive: Target) -> None:
    storage1_scratch(drive.host)
    assert "Only block devices can be purged" in operator.get("/hosts/storage1/targets/scratch/").content.decode()
    Target.objects.update(destroy=False)
    assert "destroy = true" in shown(operator)
    assert operator.get("/hosts/storage1/targets/gone/").status_code == 404


def test_settings_can_be_changed_and_restored(operator: Client, viewer: Client, drive: Target) -> None:
    address = "/hosts/storage1/targets/nvme0/setting/"
    refused = operator.post(address, {"name": "scheduler", "operation": "set", "value": ""})
    assert refused.status_code == 422
    assert "Not done: Enter the new value" in refused.content.decode()
    operator.post(address, {"name": "scheduler", "operation": "set", "value": "kyber", "why": "to <try>"})
    attempt = HostAction.objects.get().attempt
    Attempt.objects.filter(pk=attempt.pk).update(state="done", ended_at=attempt.created_at)
    SettingChange.objects.create(
        attempt=attempt, at=attempt.created_at, name="scheduler", device="nvme0n1", before="none", asked="kyber",
        observed="kyber",
    )  # fmt: skip
    page = shown(operator)
    assert "none → <strong>kyber</strong>" in page
    assert "to &lt;try&gt;" in page
    assert "Restore scheduler" in page
    assert "Restore scheduler" not in shown(viewer)
    assert viewer.post(address, {"name": "scheduler", "operation": "read"}).status_code == 403
    operator.post(address, {"name": "scheduler", "operation": "restore"})
    assert "restore scheduler" in shown(operator)


def test_a_target_without_allowed_settings_shows_a_message(operator: Client, drive: Target) -> None:
    Target.objects.update(settings_allowed=[])
    assert "does not allow changes of settings of this target" in shown(operator)
