"""What the host page says of links, stacks and ceilings."""

import msgspec
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import Host, HostInventory, InventoryContent
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_inventory, storage1_scratch
from worker.contract.inventory import FileSystem, Geometry, Inventory, MemoryModule, NumaNode, PcieLink, PciFunction

WELL = PcieLink(
    transfers_per_s=8_000_000_000, lanes=2, max_transfers_per_s=8_000_000_000, max_lanes=4, degraded=True,
    payload_bytes=256,
)  # fmt: skip
PCI = (
    PciFunction(address="0000:40:01.1", kind="bridge", vendor_id="1022", device_id="1483", downstream=True),
    PciFunction(
        address="0000:41:00.0", parent="0000:40:01.1", kind="nvme", vendor_id="144d", device_id="a808", link=WELL
    ),
)


def store_inventory(host: Host, **changes: object) -> None:
    found = storage1_inventory()
    drive = msgspec.structs.replace(found.block_devices[0], controller="0000:41:00.0", parents=())
    array = msgspec.structs.replace(
        drive, name="md0", controller="", parents=(drive.name,), geometry=Geometry(level="raid0", members=1)
    )
    full = msgspec.structs.replace(found, block_devices=(drive, array), pci=PCI, **changes)
    row = InventoryContent.objects.create(digest="d", facts=msgspec.to_builtins(full))
    HostInventory.objects.create(host=host, content=row, taken_at=timezone.now())


def test_it_shows_the_way_to_a_drive_and_what_limits_it(viewer: Client) -> None:
    told = {"device": "nvme0n1", "serial": "S64GNE0R800123", "tool": "smartctl 7.3", "healthy": False}
    told |= {"percent_used": 104, "host_written_bytes": 412_000_000_000_000, "warnings": ["spare capacity is low"]}
    host = a_host("storage1", health=[told, {"device": "sda", "serial": "X", "problem": "smartctl is not installed"}])
    store_inventory(
        host,
        file_systems=(FileSystem(kind="xfs", devices=("md0",), points=("/srv/fast",), options="rw,noatime"),),
        memory_modules=(MemoryModule(slot="DIMM_A1", size_bytes=2**34, kind="DDR4"),),
        numa_nodes=(NumaNode(number=0, cpus="0-31", memory_bytes=2**37),),
    )
    storage1_drive(host, device="md0")
    page = viewer.get("/hosts/storage1/").content.decode()
    for text in (
        "└ <", "0000:41:00.0", "8 GT/s × 2 degraded", "8 GT/s × 4", "raid0", "/srv/fast", "rw,noatime", "DIMM_A1",
        "CPUs 0-31", "8 GT/s × 2 lanes × 128/130 ÷ 8 × 256/282", "1.79 GB/s", "the rate of",
        "failing", "spare capacity is low", ">104<", "412 TB", "smartctl is not installed",
    ):  # fmt: skip
        assert text in page, text


def test_it_reads_inventories_of_older_workers(viewer: Client) -> None:
    host = a_host("storage1")
    facts = msgspec.to_builtins(storage1_inventory())
    for name in ("pci", "file_systems", "numa_nodes", "memory_modules"):
        del facts[name]
    assert isinstance(msgspec.convert(facts, Inventory), Inventory)
    row = InventoryContent.objects.create(digest="d", facts=facts)
    HostInventory.objects.create(host=host, content=row, taken_at=timezone.now())
    storage1_scratch(host, device="nvme0n1")
    page = viewer.get("/hosts/storage1/").content.decode()
    assert "Storage controllers and their links" not in page
    assert "Ceilings" in page
