"""Links by name: the limits of the specifications, and what a person may enter."""

import pytest

from webapp.core.errors import Refusal
from webapp.hosts.inventory.links import pcie_link, read_link, serial_link, together


@pytest.mark.parametrize(
    ("text", "name", "gb_per_s"),
    [
        ("PCIe 1.1 x8", "PCIe 1.1 x8", 2.0), ("pcie 2.0 x4", "PCIe 2.0 x4", 2.0), ("PCIe 3.0 x4", "PCIe 3.0 x4", 3.94),
        ("PCIe 6.0 x16", "PCIe 6.0 x16", 118.0), ("SAS 6G x4", "SAS 6G x4", 2.4), ("SAS 22.5G", "SAS 22.5G", 2.4),
        ("SATA 1.5G", "SATA 1.5G", 0.15), ("SATA  6G", "SATA 6G", 0.6), ("Expander: 2.2 GB/s", "Expander", 2.2),
        ("Old port:200 MiB/s", "Old port", 0.2097),
    ],
)  # fmt: skip
def test_a_text_is_read_as_a_ceiling(text: str, name: str, gb_per_s: float) -> None:
    link = read_link(text)
    assert link.name == name
    assert link.bytes_per_s / 1e9 == pytest.approx(gb_per_s, rel=2e-3)


@pytest.mark.parametrize(
    "text", ["", "PCIe", "PCIe 7.0 x4", "PCIe 3.0 x0", "PCIe 3.0 x64", "SATA 12G", "SAS 1.5G", "2.2 GB/s", "A: 0 GB/s",
             "A" * 200 + ": 1 GB/s"],
)  # fmt: skip
def test_what_states_no_ceiling_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_link(text)
    assert refusal.value.code == "ceiling_unknown"


def test_a_link_matches_from_its_practical_rate_to_its_limit_and_a_value_within_5_percent() -> None:
    link, value = read_link("PCIe 1.1 x8"), read_link("Expander: 2 GB/s")
    assert [link.is_matched_by(each * 1e9) for each in (1.59, 1.61, 2.01, 2.03)] == [False, True, True, False]
    assert [value.is_matched_by(each * 1e9) for each in (1.89, 1.91, 2.09, 2.11)] == [False, True, True, False]


def test_links_of_an_inventory_have_the_names_that_people_enter() -> None:
    assert pcie_link(8e9, 4) == read_link("PCIe 3.0 x4")
    assert serial_link("sas", 12e9, 4) == read_link("SAS 12G x4")
    assert serial_link("sata", 6e9) == read_link("SATA 6G")
    assert pcie_link(7e9, 4) is serial_link("nvme", 6e9) is serial_link("sata", 12e9) is None


def test_links_side_by_side_are_one_ceiling() -> None:
    sata = read_link("SATA 6G")
    (four,) = together([sata] * 4)
    assert (four.name, four.bytes_per_s) == ("4 × SATA 6G", 4 * sata.bytes_per_s)
