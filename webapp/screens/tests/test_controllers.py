"""What the host page and its history say of controllers and what is behind them."""

import msgspec
from django.test import Client
from django.utils import timezone

from webapp.hosts.inventory.diff import summary
from webapp.hosts.models import Host, HostInventory, InventoryContent
from webapp.tests.factories.hosts import a_host, storage1_inventory
from worker.contract.inventory import Battery, Controller, PhysicalDrive, VirtualDrive

RAID = Controller(
    address="0000:03:00.0", tool="storcli 7", number="0", model="AVAGO MegaRAID SAS 9361-8i", firmware="4.680.00-8290",
    cache_bytes=2**30, battery=Battery(kind="CacheVault CVPM02", state="Learning"),
    virtual_drives=(
        VirtualDrive(
            number="0", level="RAID5", strip_bytes=262144, size_bytes=10**12, state="Optl", write_cache="write back",
            write_cache_now="write through", read_ahead="adaptive", io_policy="cached", drives=("252:0", "252:9"),
            device="sda",
        ),
    ),
    physical_drives=(
        PhysicalDrive(slot="252:0", model="ST600MM0006", serial="S0M1", link_bits_per_s=12_000_000_000),
        PhysicalDrive(slot="252:3", model="SPARE", state="UGood"),
    ),
)  # fmt: skip
HBA = Controller(address="0000:04:00.0", tool="sysfs", model="SAS9300-8i", problem="")
MUTE = Controller(address="0000:05:00.0", tool="sysfs", problem="ssacli is not installed on this host.")


def store_inventory(host: Host, *controllers: Controller) -> None:
    found = msgspec.structs.replace(storage1_inventory(), controllers=controllers)
    row = InventoryContent.objects.create(digest="d", facts=msgspec.to_builtins(found))
    HostInventory.objects.create(host=host, content=row, taken_at=timezone.now())


def test_it_shows_a_controller_down_to_its_drives(viewer: Client) -> None:
    store_inventory(a_host("storage1"), RAID, HBA, MUTE)
    page = viewer.get("/hosts/storage1/").content.decode()
    for text in (
        "AVAGO MegaRAID SAS 9361-8i", "4.680.00-8290", "CacheVault CVPM02: Learning", "1 GiB", "virtual drive 0",
        "256 KiB strip", '<span class="worse">write through</span> <span class="muted">(set to write back)</span>',
        "adaptive", "cached", "ST600MM0006", ">12<", "252:9", "UGood", "not tested on real hardware",
        "ssacli is not installed on this host.",
    ):  # fmt: skip
        assert text in page, text
    assert page.index("252:9") < page.index("252:3")  # what no virtual drive uses comes last


def test_adapters_that_the_kernel_alone_shows_carry_no_such_mark(viewer: Client) -> None:
    store_inventory(a_host("storage1"), HBA)
    page = viewer.get("/hosts/storage1/").content.decode()
    assert "SAS9300-8i" in page
    assert "not tested on real hardware" not in page


def test_the_history_says_what_changed_behind_a_controller() -> None:
    before = msgspec.structs.replace(storage1_inventory(), controllers=(RAID,))
    drive = msgspec.structs.replace(RAID.virtual_drives[0], write_cache_now="write back", state="Dgrd")
    charged = msgspec.structs.replace(
        RAID, battery=Battery(kind="CacheVault CVPM02", state="Optimal"), virtual_drives=(drive,),
        physical_drives=RAID.physical_drives[:1],
    )  # fmt: skip
    after = msgspec.structs.replace(before, controllers=(charged,))
    assert summary(before, after) == [
        "Controller 0000:03:00.0, drive 252:3 was removed.",
        "Controller 0000:03:00.0: battery state was Learning, is Optimal.",
        "Controller 0000:03:00.0, virtual drive 0: state was Optl, is Dgrd.",
        "Controller 0000:03:00.0, virtual drive 0: write cache now was write through, is write back.",
    ]


def test_the_first_inventory_with_controllers_is_no_change() -> None:
    before = storage1_inventory()
    assert summary(before, msgspec.structs.replace(before, controllers=(RAID,))) == []
