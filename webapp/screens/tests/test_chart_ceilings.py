"""Ceilings on charts of throughput: switched in the address, drawn for scripts, said in words."""

import json
import re
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import HostInventory, InventoryContent
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_inventory
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from worker.contract.inventory import PcieLink, PciFunction

LINK = PcieLink(transfers_per_s=5_000_000_000, lanes=8, payload_bytes=256)
RAID = PciFunction(address="0000:03:00.0", kind="raid", vendor_id="1000", device_id="5d", model="9266-8i", link=LINK)
SAID = "is limited by PCI Express of 0000:03:00.0 9266-8i (5 GT/s × 8 lanes × 8/10 ÷ 8 × 256/282): 3.63 GB/s at most"


def sent(page: str, name: str) -> Any:
    found = re.search(rf'<script id="{name}" type="application/json">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


@pytest.fixture
def run() -> Run:
    host = a_host("storage1")
    found = storage1_inventory()
    drive = msgspec.structs.replace(found.block_devices[0], controller=RAID.address)
    facts = msgspec.to_builtins(msgspec.structs.replace(found, block_devices=(drive,), pci=(RAID,)))
    row = InventoryContent.objects.create(digest="d", facts=facts)
    HostInventory.objects.create(host=host, content=row, taken_at=timezone.now())
    made = first_look_run(first_look(), [storage1_drive(host)], repeats=1)
    finish_run(made)
    return made


COMPARE = "/explore/?run=1&x=iodepth&series=ioengine&metric=bytes_per_s"


def test_compare_draws_them_when_asked(viewer: Client, run: Run) -> None:
    page = viewer.get(f"{COMPARE}&ceilings=on").content.decode()
    (drawn,) = sent(page, "compare-data")["ceilings"]
    assert drawn["text"] == "storage1/nvme0"
    assert drawn["value"] == pytest.approx(3.63e9, rel=1e-3)
    assert (drawn["low"], drawn["high"]) == (3.2e9, 3.4e9)
    assert SAID in page
    assert "3.20 GB/s to 3.40 GB/s in practice" in page
    assert '<option value="on" selected>' in page


def test_compare_shows_none_unless_asked(viewer: Client, run: Run) -> None:
    page = viewer.get(COMPARE).content.decode()
    assert sent(page, "compare-data")["ceilings"] == []
    assert "chart-ceilings" not in page
    assert 'name="ceilings"' in page


def test_other_metrics_have_no_such_ceiling(viewer: Client, run: Run) -> None:
    page = viewer.get("/explore/?run=1&x=iodepth&series=ioengine&metric=iops&ceilings=on").content.decode()
    assert sent(page, "compare-data")["ceilings"] == []
    assert 'id="id-ceilings"' not in page
    assert "chart-ceilings" not in page


def test_the_time_line_draws_them_too(viewer: Client, run: Run) -> None:
    page = viewer.get(f"{COMPARE}&ceilings=on&view=timeline").content.decode()
    assert len(sent(page, "timeline-data")["ceilings"]) == 1
    assert SAID in page


def test_an_unknown_choice_is_dropped_in_words(viewer: Client, run: Run) -> None:
    answer = viewer.get(f"{COMPARE}&ceilings=maybe", follow=True)
    assert answer.status_code == 200
    assert "Dropped choices that do not fit: ceilings maybe." in answer.content.decode()


def test_a_trial_shows_its_targets(viewer: Client, run: Run) -> None:
    page = viewer.get("/runs/1/trials/1/?ceilings=on").content.decode()
    assert [each["text"] for each in sent(page, "trial-ceilings")] == ["storage1/nvme0"]
    assert SAID in page
    plain = viewer.get("/runs/1/trials/1/").content.decode()
    assert sent(plain, "trial-ceilings") == []
    assert "?ceilings=on" in plain


def test_a_target_of_which_nothing_is_known_says_so(viewer: Client, run: Run) -> None:
    HostInventory.objects.all().delete()
    page = viewer.get(f"{COMPARE}&ceilings=on").content.decode()
    assert "No ceiling is known" in page
