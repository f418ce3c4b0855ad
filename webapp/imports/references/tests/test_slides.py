"""The slides “RAID-Optimierungen”: every row, as printed."""

import pytest

from webapp.imports.references.tests.library import GIB, KIB, LIBRARY, entries_of, entry_of, rate, values_of
from worker.contract.items import Direction

BONNIE = {  # write, read of each row; sums of arrays
    "RAID mit 6 SSDs": "1186652 1713403 1151185 1739247 1519895 1742583 1447835 1740164",
    "RAID-0 mit 2x4 SSDs": "1419002 1818083 1441311 1801801",
    "RAID-0 4 SSDs auf einer Backplane": "1407529 1746556 1405938 1726442",
    "(Software-) RAID-00": "1428675 3012491 1447650 2992583 1527926 2999098 1579117 3039371 1592776 3011215 "
    "1733286 2179877",
    "zeitgleicher Benchmark, 2 RAID-0, kB/s": "2800002 2610648",
    "zeitgleicher Benchmark, 2 RAID-0, gleiche Backplane": "1836159 2127088 1818786 2141128",
    "Elevator: noop": "1319920 1868901 1490747 2015505 1437696 2263168 1404564 1907931",
    "Kernel 3.6": "1618012 1644082 1551156 1783303 1370977 1591597",
    "IRQ via zweiter CPU": "1531611 1764494",
    "IRQ verteilt auf 16 Cores, noop": "1611591 1762749 1591267 1724631 1558705 1809124",
    "IRQ verteilt auf 16 Cores, 4/8 disks, noop": "1851210 2212858 1739895 2249762",
    "cfq mit ionice versus deadline und noop": "1615423 1731223 1034862 1666484 1601699 2094683",
    "WriteBack vs. WriteThrough mit noop": "1615423 1731223 1497058 2314050 1448679 2234858",
    "Kein Read Ahead mit noop": "1604035 496854 1467815 483319 1508270 501029",
    "Read Ahead mit neuer Firmware und noop": "1504866 1993970 1479499 1755349 1565605 1648603 1546453 1654260 "
    "1590832 1679014 1335200 1775061",
    "cfq-Optionen": "1588987 1682927 1559710 1684906 1534921 1685089",
    "Effekt der Strip-Size": "473883 990133 1225679 1973300 1370498 1686235 1559710 1684906 1164984 2177400 "
    "1551860 1804623",
}


def test_every_row_of_the_slides_by_bonnie() -> None:
    slug = "lsi9266-vertex4-bonnie"
    assert {path: values_of(entries_of(slug, path), KIB) for path in BONNIE} == {
        path: [float(value) for value in row.split()] for path, row in BONNIE.items()
    }
    assert {one.path for one in LIBRARY[slug].entries} == set(BONNIE)
    patterns = [one.measurement.factors["pattern"] for one in LIBRARY[slug].entries]
    assert patterns == ["write", "read"] * (len(patterns) // 2)


def test_a_row_that_is_printed_in_two_tables_is_the_same_measurement_in_both() -> None:
    slug = "lsi9266-vertex4-bonnie"
    for first, second, pair in (
        ("cfq mit ionice versus deadline und noop", "WriteBack vs. WriteThrough mit noop", [1615423, 1731223]),
        ("cfq-Optionen", "Effekt der Strip-Size", [1559710, 1684906]),
    ):
        for path, other in ((first, second), (second, first)):
            same = [
                one for one in entries_of(slug, path) if any("same measurement" in n for n in one.measurement.notes)
            ]
            assert values_of(same, KIB) == pair
            assert all(f"of the table {other}" in one.measurement.notes[0] for one in same)
    strips = [one.labels["strip size"] for one in entries_of(slug, "Effekt der Strip-Size")]
    assert strips[::2] == ["8 kB", "64 kB", "64 kB", "256 kB", "1 MB", "2 MB/256 kB"]
    assert not any("scheduler" in one.measurement.factors for one in entries_of(slug, "Effekt der Strip-Size"))


SDB = {
    "Ergebnisse ohne Dateisystem, 10 und 100 GB": "1.98 1.85 1.71",
    "Schreibergebnisse abhängig von der Größe": "2.83 2.90 3.17 3.17 2.73 3.36",
    "Ergebnisse mit Dateisystem": "3.16 1.85 1.76 1.94 1.94",
    "Ergebnisse paralleles schreiben, 2 Backplanes": "2.85 2.81 2.74 3.16",
    "Ergebnisse 2 Backplanes": "3.15 2.83 4.77",
}


def test_every_row_of_the_slides_by_sdb() -> None:
    found = {path: values_of(entries_of("lsi9266-vertex4-sdb", path), GIB) for path in SDB}
    assert found == {path: [float(value) for value in row.split()] for path, row in SDB.items()}


def test_every_row_of_the_slides_by_dd() -> None:
    assert values_of(LIBRARY["lsi9266-vertex4-dd"].entries, 1e6) == [
        876 + 888, 943 + 950, 1212, 880 + 878, 1314, 888 + 849 + 893 + 845, 451 + 451 + 454 + 452,
        737, 1468, 1770, 1789,
    ]  # fmt: skip


def test_every_row_of_the_slides_about_memory() -> None:
    entries = LIBRARY["xeon-e5-2690-memory"].entries
    assert values_of(entries[:3], 1e9) == [1.4, 1.6, 2.0]
    assert values_of(entries[3:], GIB) == [148.30, 10.08, 3.81, 5.00, 10.56, 8.82, 11.89, 13.85, 15.53, 9.75]
    means = [one.measurement.metrics["mean_gib_per_s"] for one in entries[7:]]
    assert means == [2.56, 2.20, 2.97, 3.46, 3.88, 2.44]


@pytest.mark.parametrize(
    ("slug", "unit", "tolerance"),
    [("lsi9266-vertex4-bonnie", KIB, 0), ("lsi9266-vertex4-dd", 1e6, 0), ("lsi9266-vertex4-sdb", GIB, 0.0101)],
)
def test_the_result_of_arrays_at_once_is_their_sum(slug: str, unit: float, tolerance: float) -> None:
    """One alone has no parts."""
    sums = [one for one in LIBRARY[slug].entries if one.measurement.factors.get("at_once", 1) != 1]
    assert sums
    for entry in sums:
        parts = entry.measurement.metrics.values()
        assert len(parts) == entry.measurement.factors["at_once"]
        assert rate(entry) / unit == pytest.approx(sum(parts), abs=tolerance)


def test_tools_of_the_slides_have_different_units() -> None:
    bonnie = entries_of("lsi9266-vertex4-bonnie", "RAID mit 6 SSDs", file_system="ext4")
    assert rate(entry_of(bonnie, Direction.WRITE)) == 1186652 * 1024
    dd = entries_of("lsi9266-vertex4-dd", "paralleles Lesen von 2 RAID-0 in MB/s", layout="RAID 0 × 4")
    assert rate(entry_of(dd, Direction.READ)) == 1212e6
    sdb = entries_of("lsi9266-vertex4-sdb", "Ergebnisse ohne Dateisystem, 10 und 100 GB")
    assert rate(entry_of(sdb, Direction.READ)) == 1.98 * GIB
    memory = entries_of("xeon-e5-2690-memory", "Schreiben von /dev/zero nach /dev/null", blocks="3")
    assert rate(entry_of(memory)) == 2.0e9
