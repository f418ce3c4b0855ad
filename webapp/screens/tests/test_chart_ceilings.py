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
from webapp.tests.factories.hosts import a_drive, a_host, an_inventory, storage1_drive, storage1_inventory
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_run
from webapp.tests.factories.runs import first_look_run
from worker.contract.inventory import BlockDevice, PcieLink, PciFunction

LINK = PcieLink(transfers_per_s=5_000_000_000, lanes=8, payload_bytes=256)
RAID = PciFunction(address="0000:03:00.0", kind="raid", vendor_id="1000", device_id="5d", model="9266-8i", link=LINK)
NVME = PciFunction(
    address="0000:01:00.0", kind="nvme", vendor_id="144d", device_id="a80a", model="PM9A3",
    link=PcieLink(transfers_per_s=8_000_000_000, lanes=4, payload_bytes=256),
)  # fmt: skip
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


COMPARE = "/explore/?run=1&x=matched&series=ioengine&metric=bytes_per_s"


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
    page = viewer.get("/explore/?run=1&x=matched&series=ioengine&metric=iops&ceilings=on").content.decode()
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


@pytest.fixture
def two_links(viewer: Client) -> None:
    """An SSD at SATA 6 Gb/s: 6 × 8/10 ÷ 8 = 0.6 GB/s, and an NVMe drive at PCIe 3.0 x4: 8 × 4 × 128/130 ÷ 8 × 256/282 =
    3.5755 GB/s."""
    host = a_host("storage1")
    ssd = BlockDevice(
        name="sda", path="/dev/sda", kind="disk", major_minor="8:0", stable_id="sda", transport="sata",
        link_bits_per_s=6_000_000_000, link_lanes=1,
    )  # fmt: skip
    nvme = msgspec.structs.replace(storage1_inventory().block_devices[0], controller=NVME.address)
    an_inventory(host, block_devices=(ssd, nvme), pci=(NVME,))
    fast = a_drive(host, "nvme0", device="nvme0n1", serial="N1")
    lab = Lab(fast)
    for target, bytes_per_s in ((fast, 2.86e9), (a_drive(host, "ssd0", device="sda", serial="S1"), 540e6)):
        for depth in (1, 8, 32):
            lab.measure(bytes_per_s / 4096, target=target, pattern="read", block_size=131072, iodepth=depth)


def test_bench_draws_the_ceiling_of_each_link(viewer: Client, two_links: None) -> None:
    page = viewer.get("/bench/?product=serial:N1&product=serial:S1&ceilings=on").content.decode()
    drawn = {each["text"]: each["value"] for each in sent(page, "bench-data")["charts"][0]["ceilings"]}
    assert drawn == {"storage1/ssd0": 600e6, "storage1/nvme0": pytest.approx(3.5755e9, rel=1e-4)}
    assert "storage1/ssd0 is limited by drive link of sda (6 Gb/s × 1 lane × 8/10 ÷ 8): 600 MB/s at most." in page
    assert "PM9A3 (8 GT/s × 4 lanes × 128/130 ÷ 8 × 256/282): 3.58 GB/s at most." in page


def test_the_share_of_the_ceiling_is_on_the_page(viewer: Client, two_links: None) -> None:
    page = viewer.get("/explore/?run=1&x=iodepth&series=target&metric=ceiling_share").content.decode()
    series = sent(page, "compare-data")["comparison"]["panels"][0]["series"]
    shares = {each["name"]: {cell["text"] for cell in each["cells"]} for each in series}
    assert shares == {"storage1/nvme0": {"80.0 %"}, "storage1/ssd0": {"90.0 %"}}
