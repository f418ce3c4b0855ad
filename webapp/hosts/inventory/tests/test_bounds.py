"""Which ceiling a chart shows: the link that limits, as the host was when it was measured."""

from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from webapp.hosts.inventory.ceilings import MAX_BOUNDS, Bound, Chain, bound_of, bounds_of, chain_of
from webapp.hosts.inventory.tests.inventories import GT, disk, function, inventory, link
from webapp.hosts.models import Host, HostInventory, InventoryContent, Target
from worker.contract.inventory import Controller, Inventory, PhysicalDrive, VirtualDrive

NOW = timezone.now()


def bound(found: Inventory, device: str) -> Bound:
    made = bound_of("storage1/x", chain_of(found, device))
    assert made is not None
    return made


def test_it_names_the_link_that_limits_with_what_it_gives_in_practice() -> None:
    pci = [function("root", kind="bridge", at=link(5 * GT, 8)), function("raid", "root", "raid", link(5 * GT, 8))]
    made = bound(inventory([disk("sda", "raid")], pci), "sda")
    assert made.bytes_per_s == pytest.approx(3.63e9, rel=1e-3)
    assert made.words == "PCI Express of raid X (5 GT/s × 8 lanes × 8/10 ÷ 8 × 256/282)"
    assert made.realistic is not None
    assert (made.realistic.low_bytes_per_s, made.realistic.high_bytes_per_s) == (3.2e9, 3.4e9)


def test_links_of_one_kind_that_add_up_are_told_together() -> None:
    drives = [disk(name, "ahci", transport="sas", link_bits_per_s=6 * GT, link_lanes=1) for name in ("sda", "sdb")]
    array = disk("md0", kind="raid", parents=("sda", "sdb"))
    made = bound(inventory([array, *drives], [function("ahci", kind="sata")]), "md0")
    assert (made.bytes_per_s, made.words) == (1.2e9, "2 × drive link (6 Gb/s × 1 lane × 8/10 ÷ 8 each)")
    assert made.realistic is not None
    assert (made.realistic.low_bytes_per_s, made.realistic.high_bytes_per_s) == (1.0e9, 1.1e9)


def test_the_drives_behind_a_raid_controller_limit_what_it_shows_as_one() -> None:
    pci = [function("root", kind="bridge", at=link(8 * GT, 8)), function("raid", "root", "raid", link(8 * GT, 8))]
    drives = tuple(PhysicalDrive(slot=str(n), link_bits_per_s=6 * GT) for n in range(4))
    raid = Controller(
        address="raid", tool="storcli", physical_drives=drives,
        virtual_drives=(VirtualDrive(number="0", device="sda", drives=("0", "1", "2", "3")),),
    )  # fmt: skip
    found = msgspec.structs.replace(inventory([disk("sda", "raid")], pci), controllers=(raid,))
    made = bound(found, "sda")
    assert made.bytes_per_s == 2.4e9
    assert made.words == "drive link of sda, 4 drives behind its controller (4 × 6 Gb/s, × 8/10 ÷ 8)"
    silent = msgspec.structs.replace(raid, physical_drives=drives[:3])
    assert bound(msgspec.structs.replace(found, controllers=(silent,)), "sda").bytes_per_s == 1.8e9
    incomplete = msgspec.structs.replace(raid, physical_drives=(*drives[:3], PhysicalDrive(slot="3")))
    assert bound(msgspec.structs.replace(found, controllers=(incomplete,)), "sda").words.startswith("PCI Express")


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert bound_of("storage1/x", Chain()) is None


# ---- from the database


def host_with(slug: str, *lanes: tuple[int, timedelta]) -> Host:
    """Each inventory of the host has its drive with that many lanes."""
    host = Host.objects.create(slug=slug, token_hash=slug)
    for count, ago in lanes:
        facts = inventory([disk("nvme0n1", "nvme")], [function("nvme", at=link(8 * GT, count))])
        row, _ = InventoryContent.objects.get_or_create(
            digest=str(count), defaults={"facts": msgspec.to_builtins(facts)}
        )
        HostInventory.objects.create(host=host, content=row, taken_at=NOW - ago)
    return host


def target(host: Host, slug: str, device: str = "nvme0n1") -> None:
    Target.objects.create(host=host, slug=slug, kind="block", path=f"/dev/{slug}", stable_id=slug, device=device)


@pytest.mark.django_db
def test_it_takes_the_host_as_it_was_then() -> None:
    target(host_with("storage1", (4, timedelta(days=9)), (2, timedelta(days=1))), "a")
    (then,) = bounds_of({"storage1/a": NOW - timedelta(days=2)})
    (now,) = bounds_of({"storage1/a": NOW})
    assert then.bytes_per_s == pytest.approx(2 * now.bytes_per_s)
    (before,) = bounds_of({"storage1/a": NOW - timedelta(days=20)})
    assert before.bytes_per_s == then.bytes_per_s


@pytest.mark.django_db
def test_it_leaves_out_what_it_knows_nothing_of() -> None:
    target(host_with("storage1", (4, timedelta(days=9))), "a")
    target(Host.objects.create(slug="bare", token_hash="b"), "a")
    target(Host.objects.get(slug="storage1"), "share", device="")
    moments = dict.fromkeys(("storage1/a", "bare/a", "storage1/share", "gone/a"), NOW)
    assert [each.target for each in bounds_of(moments)] == ["storage1/a"]
    assert bounds_of({}) == ()


@pytest.mark.django_db
def test_a_chart_gets_so_many_lines_at_most() -> None:
    host = host_with("storage1", (4, timedelta(days=9)))
    for number in range(MAX_BOUNDS + 2):
        target(host, f"t{number}")
    assert len(bounds_of({f"storage1/t{number}": NOW for number in range(MAX_BOUNDS + 2)})) == MAX_BOUNDS


@pytest.mark.django_db
def test_what_targets_at_once_share_counts_once() -> None:
    """Two drives of 4 lanes each behind a bridge of 6: together what the bridge lets through."""
    host = Host.objects.create(slug="storage1", token_hash="s")
    pci = [function("up", kind="bridge", at=link(8 * GT, 6)), *(function(n, "up", at=link(8 * GT, 4)) for n in "xy")]
    facts = inventory([disk("nvme0n1", "x"), disk("nvme1n1", "y")], pci)
    row = InventoryContent.objects.create(digest="d", facts=msgspec.to_builtins(facts))
    HostInventory.objects.create(host=host, content=row, taken_at=NOW)
    for slug, device in (("a", "nvme0n1"), ("b", "nvme1n1"), ("part", "nvme0n1"), ("share", "")):
        target(host, slug, device)
    names = (
        "storage1/a",
        "storage1/b",
        "storage1/a + b",
        "storage1/a + part",
        "storage1/a + share",
        "storage1/a + gone",
    )
    found = {each.target: each.bytes_per_s for each in bounds_of(dict.fromkeys(names, NOW))}
    alone = found["storage1/a (and 1 alike)"]
    assert found == {
        "storage1/a (and 1 alike)": alone, "storage1/a + part": alone, "storage1/a + b": pytest.approx(1.5 * alone),
    }  # fmt: skip
