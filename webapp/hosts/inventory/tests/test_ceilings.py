"""Held against published figures: the sheet that the project's arithmetic is taken from, and the specifications."""

import pytest

from webapp.hosts.inventory import ceilings, links
from webapp.hosts.inventory.tests.inventories import GT, disk, function, inventory, link
from worker.contract.inventory import (
    MemoryModule,
)


@pytest.mark.parametrize(
    ("transfers", "lanes", "payload", "gb_per_s"),
    [
        (5 * GT, 8, 256, 3.63),  # the controller of "RAID-Optimierungen"
        (5 * GT, 8, None, 4.0),
        (5 * GT, 4, None, 2.0),
        (2.5 * GT, 1, None, 0.25),
        (8 * GT, 4, None, 3.94),
        (16 * GT, 4, None, 7.88),
        (32 * GT, 4, None, 15.75),
        (64 * GT, 4, None, 29.5),
    ],
)
def test_it_reckons_what_a_pcie_link_can_carry(
    transfers: float, lanes: int, payload: int | None, gb_per_s: float
) -> None:
    assert links.pcie_bytes_per_s(transfers, lanes, payload) / 1e9 == pytest.approx(gb_per_s, abs=0.006)


@pytest.mark.parametrize(
    ("bits", "lanes", "gb_per_s"), [(6e9, 4, 2.4), (6e9, 1, 0.6), (3e9, 1, 0.3), (12e9, 4, 4.8), (22.5e9, 1, 2.4)]
)
def test_it_reckons_what_serial_lanes_can_carry(bits: float, lanes: int, gb_per_s: float) -> None:
    assert links.serial_bytes_per_s(bits, lanes) / 1e9 == pytest.approx(gb_per_s)


def test_it_says_what_such_links_give_in_practice_where_somebody_has_said_so() -> None:
    pcie, sas = links.pcie_realistic(5 * GT, 8, 256), links.serial_realistic(6e9, 4)
    assert pcie is not None
    assert sas is not None
    assert (pcie.low_bytes_per_s, pcie.high_bytes_per_s) == pytest.approx((3.2e9, 3.4e9))
    assert (sas.low_bytes_per_s, sas.high_bytes_per_s) == (2.0e9, 2.2e9)
    assert "Geschke" in pcie.source
    assert pcie.high_bytes_per_s < links.pcie_bytes_per_s(5 * GT, 8, 256)
    assert links.pcie_realistic(8 * GT, 4, 256) is links.serial_realistic(12e9, 4) is None
    assert links.pcie_realistic(5 * GT, 8, 128) is None


def module(bank: str, speed: int | None = 3_200_000_000) -> MemoryModule:
    return MemoryModule(slot="A", bank=bank, size_bytes=2**34, data_bits=64, transfers_per_s=speed)


def test_it_reckons_memory_by_channels() -> None:
    assert ceilings.memory_bytes_per_s((module("P0 CHANNEL A"),)) == 25.6e9
    assert ceilings.memory_bytes_per_s((module("P0 CHANNEL A"), module("P0 CHANNEL A"))) == 25.6e9
    assert ceilings.memory_bytes_per_s((module("P0 CHANNEL A"), module("P1 CHANNEL A", 2_400_000_000))) == 38.4e9
    assert ceilings.memory_bytes_per_s((module("A"), module("A", None))) is None
    assert ceilings.memory_bytes_per_s(()) is None


# ---- chains


def test_it_follows_a_drive_to_memory() -> None:
    pci = [function("root", kind="bridge", at=link(8 * GT, 16)), function("nvme", "root", at=link(8 * GT, 4))]
    found = ceilings.chain_of(inventory([disk("nvme0n1", "nvme")], pci, (module("CHANNEL A"),)), "nvme0n1")
    assert [(each.kind, each.where) for each in found.ceilings] == [("PCI Express", "nvme X"), ("memory", "1 module")]
    assert found.ceilings[0].formula == "8 GT/s × 4 lanes × 128/130 ÷ 8 × 256/282"
    assert found.bytes_per_s == found.ceilings[0].bytes_per_s
    assert found.unknown == ("the rate of the drive nvme0n1",)


def test_drives_behind_one_switch_share_its_link_and_others_add_up() -> None:
    pci = [
        function("root", kind="bridge", at=link(8 * GT, 8)), function("switch", "root", "bridge", link(8 * GT, 4)),
        *(function(f"down{name}", "switch", "bridge", link(8 * GT, 4)) for name in ("n0", "n1")),
        *(function(name, f"down{name}", at=link(8 * GT, 4)) for name in ("n0", "n1")),
        function("n2", "root", at=link(8 * GT, 4)),
    ]  # fmt: skip
    drives = [disk(f"nvme{number}", f"n{number}") for number in range(3)]
    array = disk("md0", kind="raid", parents=("nvme0", "nvme1", "nvme2"))
    found = ceilings.chain_of(inventory([array, *drives], pci), "md0")
    one = links.pcie_bytes_per_s(8 * GT, 4, 256)
    assert found.bytes_per_s == pytest.approx(2 * one)
    shared = next(each for each in found.ceilings if each.where.startswith("switch"))
    assert (shared.drives, shared.bytes_per_s) == (2, one)
    slow = {"nvme0": 0.5e9, "nvme1": 0.5e9, "nvme2": 0.5e9}
    limited = ceilings.chain_of(inventory([array, *drives], pci), "md0", drive_bytes_per_s=slow)
    assert limited.bytes_per_s == pytest.approx(1.5e9)


def test_it_marks_the_degraded_link_and_says_what_a_controller_hides() -> None:
    pci = [
        function("root", kind="bridge", at=link(5 * GT, 8)),
        function("raid", "root", "raid", link(5 * GT, 4, degraded=True)),
    ]
    found = ceilings.chain_of(inventory([disk("sda", "raid")], pci), "sda")
    assert [each.degraded for each in found.ceilings] == [True]
    assert "the lanes behind raid, which its controller hides" in found.unknown
    assert "memory, because the firmware does not report its speed" in found.unknown


def test_it_reckons_the_link_of_a_sata_drive() -> None:
    drive = disk("sda", "ahci", transport="sata", link_bits_per_s=6 * GT, link_lanes=1)
    found = ceilings.chain_of(inventory([drive], [function("ahci", kind="sata")]), "sda")
    assert [(each.kind, each.bytes_per_s, each.formula) for each in found.ceilings] == [
        ("drive link", 0.6e9, "6 Gb/s × 1 lane × 8/10 ÷ 8")
    ]
    assert (found.bytes_per_s, found.ceilings[0].realistic) == (0.6e9, None)


@pytest.mark.parametrize("device", ["", "gone"])
def test_it_says_that_it_knows_nothing(device: str) -> None:
    found = ceilings.chain_of(inventory([disk("vda")], []), device)
    assert (found.ceilings, found.bytes_per_s) == ((), None)
    bare = ceilings.chain_of(inventory([disk("vda")], []), "vda")
    assert (bare.bytes_per_s, "the controller of vda" in bare.unknown) == (None, True)


def test_a_stack_that_goes_round_ends() -> None:
    devices = [disk("a", parents=("b",)), disk("b", parents=("a",))]
    assert ceilings.chain_of(inventory(devices, []), "a").bytes_per_s is None
