"""CrystalDiskMark, KDiskMark, YABS, bench.sh, ioping, DiskSpd and pgbench."""

from datetime import UTC, datetime

import pytest

from webapp.imports.formats import disk_mark, diskspd, diskspd_xml, ioping
from webapp.imports.formats.tests.examples import parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE


@pytest.mark.parametrize("name", ["crystal-8", "kdiskmark-3"])
def test_the_unit_of_a_disk_mark_follows_from_its_iops(name: str) -> None:
    for one in parsed(f"disk-mark/{name}.txt"):
        block = one.factors["block_size"]
        assert isinstance(block, int)
        assert one.bytes_per_s == pytest.approx((one.iops or 0) * block, rel=4e-3)


def test_crystaldiskmark_8() -> None:
    found = parsed("disk-mark/crystal-8.txt")
    assert [(one.direction, one.factors["pattern"], one.factors["iodepth"]) for one in found] == [
        (READ, "read", 8), (READ, "randread", 32), (WRITE, "write", 8), (WRITE, "randwrite", 1),
    ]  # fmt: skip
    assert (found[0].tool, found[0].tool_version) == ("CrystalDiskMark", "8.0.4")
    assert (found[0].iops, found[0].bytes_per_s, found[0].latency.mean_ns) == (366.3, 384_064_000, 21_765_430)
    assert {one.factors["size"] for one in found} == {2**30}


def test_crystaldiskmark_6_states_no_block_size_of_sequential_tests() -> None:
    read, write, random_read, _ = parsed("disk-mark/crystal-6.txt")
    assert (read.direction, read.bytes_per_s, write.direction) == (READ, 91_559_000, WRITE)
    assert "block_size" not in read.factors
    assert (random_read.factors["block_size"], random_read.factors["numjobs"]) == (4096, 8)


def test_kdiskmark() -> None:
    found = parsed("disk-mark/kdiskmark-3.txt")
    assert [(one.tool, one.tool_version, one.iops) for one in found] == [
        ("KDiskMark", "3.2.0", 49.7), ("KDiskMark", "3.2.0", 81.7),
    ]  # fmt: skip


def test_a_row_without_its_section_is_refused() -> None:
    with pytest.raises(ImportRefused, match="read or wrote"):
        disk_mark.parse(text("disk-mark/crystal-8.txt").replace("[Read]", ""))


@pytest.mark.parametrize(("name", "unit"), [("older", 1_024_000), ("newer", 1_000_000)])
def test_the_unit_of_yabs_follows_from_its_iops(name: str, unit: int) -> None:
    found = parsed(f"yabs/{name}.txt")
    first = found[0]
    assert (first.direction, first.iops) == (READ, 83_900)
    assert first.iops_step == pytest.approx(100)
    assert first.factors == {"pattern": "randrw", "read_percent": 50, "block_size": 4096}
    printed = float(text(f"yabs/{name}.txt").split("Read       | ")[1].split(" ")[0])
    assert first.bytes_per_s == pytest.approx(printed * unit)
    assert [one.direction for one in found[:4]] == [READ, READ, WRITE, WRITE]


def test_yabs_has_two_tables() -> None:
    reads = [one.factors["block_size"] for one in parsed("yabs/older.txt") if one.direction is READ]
    assert reads == [4096, 65_536, 524_288, 1_048_576]


def test_bench_sh() -> None:
    found = parsed("bench-sh/speeds.txt")
    assert [(one.bytes_per_s, one.repeat) for one in found] == [(255e6, 1), (1.1e9, 2), (1.1e9, 3)]
    assert found[1].bytes_per_s_step == pytest.approx(0.1e9)
    assert found[0].factors["end_fsync"] is True
    assert [one.bytes_per_s for one in parsed("bench-sh/older.txt")] == [11.9e6, 11.8e6, 11.9e6]


def test_ioping() -> None:
    (measured,) = parsed("ioping/1.2.txt")
    assert (measured.direction, measured.iops, measured.ios, measured.factors["block_size"]) == (READ, 160, 9, 4096)
    assert measured.bytes_per_s == pytest.approx(638.3 * 1024)
    latency = measured.latency
    assert (latency.min_ns, latency.mean_ns, latency.max_ns, latency.stddev_ns) == (531_200, 9.93e6, 23.7e6, 12.5e6)
    (rate,) = parsed("ioping/1.3-rate.txt")
    assert (rate.iops, rate.ios) == (23_800, None)
    assert rate.iops_step == pytest.approx(100)
    assert rate.other["target"] == "/dev/sdf (block device 1.75 TiB)"


def test_an_ioping_that_does_not_print_its_direction_is_refused() -> None:
    old = (
        "--- . (ext4 /dev/sda3) ioping statistics ---\n5 requests completed in 4794.0 ms, 364 iops, 1.4 MiB/s\n"
        "min/avg/max/mdev = 0.2/2.8/12.7/5.0 ms\n"
    )
    with pytest.raises(ImportRefused, match="read or wrote"):
        ioping.parse(old)


def test_diskspd_counts_and_parameters() -> None:
    (read,) = parsed("diskspd/2.0-read.txt")  # no writes
    assert (read.direction, read.ios, read.bytes, read.runtime_ms) == (READ, 88_354, 361_897_984, 10_020)
    assert read.iops == pytest.approx(8821.85, rel=1e-3)  # as printed
    assert read.bytes_per_s == pytest.approx(34.46 * 2**20, rel=1e-3)
    assert read.factors == {
        "pattern": "randread", "block_size": 4096, "iodepth": 32, "numjobs": 2, "direct": True,
    }  # fmt: skip


def test_diskspd_latencies_of_a_mixed_test() -> None:
    read, write = parsed("diskspd/2.1-mix.txt")
    assert (read.factors["pattern"], read.factors["read_percent"], read.factors["direct"]) == ("randrw", 70, False)
    assert (read.latency.mean_ns, write.latency.mean_ns) == (272_000, 2_180_000)
    assert read.latency.percentiles == {50.0: 240_000, 95.0: 600_000, 99.9: 1_700_000}
    assert write.latency.percentiles[99.9] == 12_000_000


def test_diskspd_of_several_targets_has_no_parameters() -> None:
    one = text("diskspd/2.0-read.txt")
    (read,) = diskspd.parse(one.replace("\tpath: ", "\tpath: 'other.dat'\n\tpath: ", 1))
    assert read.factors == {}


def test_diskspd_xml() -> None:
    read, write = parsed("diskspd-xml/2.0-mix.xml")
    assert (read.direction, read.ios, read.bytes, read.runtime_ms) == (READ, 37_162, 152_215_552, 120_010)
    assert (write.direction, write.ios, write.bytes) == (WRITE, 15_753, 64_524_288)
    assert read.iops == pytest.approx(37_162 / 120.01)
    assert read.bytes_per_s == pytest.approx((read.iops or 0) * 4096)
    assert read.factors == {
        "pattern": "randrw", "read_percent": 70, "block_size": 4096, "iodepth": 1, "numjobs": 1, "direct": True,
    }  # fmt: skip
    assert (read.latency.min_ns, read.latency.mean_ns, read.latency.stddev_ns) == (45_000, 2_477_000, 2_732_000)
    assert write.latency.percentiles[99.9] == 6_649_000
    assert (read.tool_version, read.measured_at) == ("2.0.21a", datetime(2021, 4, 14, 23, 25, 42, tzinfo=UTC))


def test_diskspd_xml_adds_all_threads_and_leaves_out_the_parameters_of_several_targets() -> None:
    one = text("diskspd-xml/2.0-mix.xml")
    thread = one[one.index("<Thread>") : one.index("</Thread>") + len("</Thread>")]
    read, _ = diskspd_xml.parse(one.replace(thread, thread * 2))
    assert (read.ios, read.factors["iodepth"]) == (2 * 37_162, 1)
    target = one[one.index("<Target>") : one.index("</Target>") + len("</Target>")]
    read, _ = diskspd_xml.parse(one.replace(target, target * 2, 1))
    assert (read.ios, read.factors) == (37_162, {})


def test_diskspd_xml_of_partly_random_ios_and_of_sequential_ones() -> None:
    one = text("diskspd-xml/2.0-mix.xml")
    random = "<Random>4096</Random>"
    partly, _ = diskspd_xml.parse(one.replace(random, f"{random}<RandomRatio>20</RandomRatio>"))
    assert ("pattern" in partly.factors, partly.other) == (False, {"random I/Os": "20 %"})
    sequential, _ = diskspd_xml.parse(one.replace(random, "<StrideSize>4096</StrideSize>"))
    assert sequential.factors["pattern"] == "readwrite"


@pytest.mark.parametrize("damage", ["</Thread>", "</Results>"])
def test_damaged_diskspd_xml_is_refused(damage: str) -> None:
    with pytest.raises(ImportRefused):
        diskspd_xml.parse(text("diskspd-xml/2.0-mix.xml").replace(damage, ""))


def test_diskspd_xml_with_entities_is_refused() -> None:
    with pytest.raises(ImportRefused):
        diskspd_xml.parse('<!DOCTYPE r [<!ENTITY a "aa">]>' + text("diskspd-xml/2.0-mix.xml"))


def test_pgbench() -> None:
    (old,) = parsed("pgbench/11.txt")
    assert old.metrics == {"latency_mean_ms": 23.269, "transactions_per_s": 429.761791}
    assert not old.is_io
    assert old.other["number of clients"] == "10"
    (new,) = parsed("pgbench/16.txt")
    assert new.metrics["transactions_per_s"] == 20_000.123456
    assert new.metrics["latency_stddev_ms"] == 0.11
