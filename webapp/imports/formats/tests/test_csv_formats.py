from datetime import UTC, datetime

import pytest

from webapp.imports.formats import elbencho, ezfio, iometer, plain_csv, vdbench
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE
MIB = 1024 * 1024


def test_iometer_1_1() -> None:
    read, write = parsed("iometer/1.1.csv")
    assert (read.direction, write.direction) == (READ, WRITE)
    assert (read.tool_version, read.name) == ("1.1.0", "4K 67/33")
    assert read.factors == {
        "block_size": 4096,
        "pattern": "randrw",
        "read_percent": 67,
        "numjobs": 2,
        "iodepth": 16,
    }
    assert read.iops == 2000
    assert read.bytes_per_s == pytest.approx(2000 * 4096)  # decimal MB
    assert (read.ios, read.bytes) == (60000, 245760000)
    assert (read.latency.mean_ns, read.latency.max_ns) == (2.1e6, 80.1e6)
    assert write.latency.mean_ns == 3.6e6


def test_iometer_2006() -> None:
    (read,) = parsed("iometer/2006.07.27.csv")
    assert read.factors["pattern"] == "read"
    assert read.bytes_per_s == 5000 * 32768  # MBps was binary
    assert read.iops == 5000


@pytest.mark.parametrize(
    ("reads", "random", "factors", "other"),
    [
        ("0.5", "100", {"pattern": "randrw"}, {"reads": "0.5 %"}),
        ("99.9", "0", {"pattern": "readwrite"}, {"reads": "99.9 %"}),
        ("100", "30", {}, {"random I/Os": "30 %"}),
        ("70", "0.5", {"read_percent": 70}, {"random I/Os": "0.5 %"}),
    ],
)
def test_an_unusual_mix_of_iometer_is_named(
    reads: str, random: str, factors: dict[str, object], other: dict[str, str]
) -> None:
    changed = text("iometer/1.1.csv").replace("4096,100,67,100,", f"4096,100,{reads},{random},")
    found = iometer.parse(changed)[0]
    assert found.other == other
    assert found.factors == {"block_size": 4096, "numjobs": 2, "iodepth": 16, **factors}


def test_a_share_above_100_percent_is_refused() -> None:
    with pytest.raises(ImportRefused, match="more than 100"):
        iometer.parse(text("iometer/1.1.csv").replace("4096,100,67,100,", "4096,100,67,101,"))


def test_an_unusual_mix_of_vdbench_is_named() -> None:
    changed = text("vdbench/5.04.txt").replace("         70          0          0        100", " 0.5 0 0 30")
    mixed = vdbench.parse(changed)[-1]
    assert mixed.other == {"reads": "0.5 %", "random I/Os": "30 %", "average of intervals": "avg_1-1"}
    assert mixed.factors == {"block_size": 4096, "numjobs": 8}


def test_a_truncated_row_of_iometer_is_refused() -> None:
    with pytest.raises(ImportRefused, match="truncated"):
        iometer.parse(text("iometer/2006.07.27.csv")[:-60])


def test_ezfio() -> None:
    found = parsed("ezfio/1.0.csv")
    read = only(found, READ)
    assert read.factors == {"pattern": "read", "block_size": 131072, "numjobs": 1, "iodepth": 256}
    assert (read.iops, read.bytes_per_s) == (25600, 3200 * MIB)
    assert read.bytes_per_s == 25600 * 131072  # so MB is MiB
    assert read.latency.mean_ns == 9_990_500
    assert read.other["model"] == "EXAMPLE 1000"
    mixed = only(found, None)
    assert mixed.factors["read_percent"] == 70
    assert mixed.metrics == {"read_latency_mean_ns": 1_290_250, "write_latency_mean_ns": 1_310_750}
    assert only(found, WRITE).name == "Sustained 4KB Random Write Tests by Number of Threads"


def test_a_failed_test_of_ezfio_is_refused() -> None:
    with pytest.raises(ImportRefused, match="ERROR"):
        ezfio.parse(text("ezfio/1.0.csv") + "ERROR\n")


def test_vdbench() -> None:
    read, mixed = parsed("vdbench/5.04.txt")
    assert (read.name, read.direction, read.tool_version) == ("run1", READ, "50407")
    assert (read.iops, read.bytes_per_s) == (1300, 5.0781 * MIB)
    assert read.bytes_per_s == pytest.approx(1300 * 4096, rel=1e-4)
    assert read.latency.mean_ns == 650_000
    assert read.factors == {"block_size": 4096, "numjobs": 8, "pattern": "randread"}
    assert [(p.offset_ms, p.iops) for p in read.series] == [(1000, 1000), (2000, 1200), (3000, 1400)]
    assert read.other == {"average of intervals": "avg_2-3"}
    assert (mixed.direction, mixed.factors["pattern"], mixed.factors["read_percent"]) == (None, "randrw", 70)
    assert mixed.metrics["write_latency_mean_ns"] == 1_233_000


def test_the_time_of_vdbench_is_known_in_utc_only() -> None:
    one = parsed("vdbench/5.04.txt")[0]
    assert one.measured_at == datetime(2019, 5, 6, 10, 0, 3, tzinfo=UTC)
    for zone, date in (("MDT", "05/06/2019"), ("UTC", "31/12/2019")):
        changed = text("vdbench/5.04.txt").replace("-UTC", f"-{zone}").replace("05/06/2019", date)
        assert vdbench.parse(changed)[0].measured_at is None


def test_the_series_of_vdbench_has_no_rows_of_an_aborted_run() -> None:
    text_lines = text("vdbench/5.04.txt").splitlines()
    average = next(line for line in text_lines if " avg_2-3 " in line)
    again = [line.replace(" run1 ", " run0 ") for line in text_lines if " run1 " in line and line != average]
    place = next(place for place, line in enumerate(text_lines) if " run1 " in line)
    aborted = "\n".join([*text_lines[:place], *again, *text_lines[place:]]) + "\n"
    assert [len(one.series) for one in vdbench.parse(aborted)] == [
        len(one.series) for one in parsed("vdbench/5.04.txt")
    ]


def test_vdbench_without_an_average_is_refused() -> None:
    with pytest.raises(ImportRefused, match="average"):
        vdbench.parse(text("vdbench/5.04.txt").split("avg_")[0].rsplit("\n", 1)[0])


def test_elbencho_csv() -> None:
    write, read, mixed, reads_of_mix = parsed("elbencho/3.1.csv")
    assert (write.direction, write.iops, write.bytes_per_s) == (WRITE, 2941, 2941 * MIB)
    assert (write.runtime_ms, write.tool_version) == (2784, "3.1-1")
    assert write.latency.mean_ns == 9_383_000
    assert write.factors == {
        "pattern": "write",
        "block_size": MIB,
        "numjobs": 8,
        "iodepth": 4,
        "size": 256 * MIB,
        "direct": True,
    }
    assert read.factors["pattern"] == "read"
    assert (mixed.direction, mixed.factors["pattern"], mixed.factors["read_percent"]) == (WRITE, "randrw", 70)
    assert (reads_of_mix.direction, reads_of_mix.iops) == (READ, 4779)
    assert reads_of_mix.latency.mean_ns == 2_500_000
    assert read.measured_at is None  # the time has no zone


def test_the_command_of_elbencho_is_in_quotes_without_commas() -> None:
    (write,) = parsed("elbencho/3.0-command.csv")
    assert (write.iops, write.bytes_per_s, write.runtime_ms) == (1024, 1024 * 2**20, 2000)
    assert (write.tool_version, write.factors["numjobs"]) == ("3.0-1", 2)
    with pytest.raises(ImportRefused, match="truncated"):
        elbencho.parse(text("elbencho/3.0-command.csv").replace(",3.0-1", ""))


def test_a_phase_of_elbencho_without_iops_has_its_bandwidth() -> None:
    read, *_ = parsed("elbencho/3.1.json")
    shortened = text("elbencho/3.1.json").replace('"iops":"20000",', "")
    without, *_ = elbencho.parse(shortened)
    assert (without.iops, without.bytes_per_s) == (None, read.bytes_per_s)


def test_elbencho_json() -> None:
    read, mixed, reads_of_mix = parsed("elbencho/3.1.json")
    assert (read.iops, read.bytes_per_s, read.bytes) == (20000, 81_920_000, 819_200_000)
    assert read.measured_at is not None
    assert read.factors["iodepth"] == 16
    assert (mixed.direction, mixed.latency.mean_ns) == (WRITE, 500_000)
    assert (reads_of_mix.direction, reads_of_mix.iops, reads_of_mix.latency.mean_ns) == (READ, 14000, 450_000)


def test_damaged_json_of_elbencho_is_refused() -> None:
    with pytest.raises(ImportRefused, match="Object 1"):
        elbencho.parse('{"phase_type": "READ", "last_done": ')
    with pytest.raises(ImportRefused, match="deeply"):
        elbencho.parse('{"phase_type": "READ", "other": ' + "[" * 50_000)


def test_plain_csv_with_names_of_fields() -> None:
    read, write = parsed("plain-csv/named.csv")
    assert (read.direction, write.direction) == (READ, WRITE)
    assert read.factors == {"pattern": "randread", "block_size": 4096, "iodepth": 32}
    assert (read.iops, read.bytes_per_s) == (100000, 100000 * 4096)
    assert read.latency.mean_ns == 320_500
    assert read.latency.percentiles == {99: 1_500_000}
    assert read.other == {"firmware": "A1"}


def test_plain_csv_with_a_mapping() -> None:
    found = plain_csv.parse(
        "Block;Kind;kIOPS;MB/s\n8k;read;12;98.304\n",
        {"Block": "block_size", "Kind": "direction", "MB/s": "mb_per_s"},
    )
    assert found[0].direction is READ
    assert found[0].bytes_per_s == 98_304_000
    assert found[0].other == {"kIOPS": "12"}


def test_a_mapping_counts_before_a_column_with_the_name_of_the_field() -> None:
    text = "pattern,iops,IO/s best,model,layout\nrandread,5,12,PM9A3,RAID 5\n"
    (found,) = plain_csv.parse(text, {"IO/s best": "kiops", "model": "drive"})
    assert (found.iops, found.factors) == (12_000, {"pattern": "randread"})
    assert found.other == {"iops": "5", "drive": "PM9A3", "layout": "RAID 5"}


@pytest.mark.parametrize(
    ("csv", "mapping", "reason"),
    [
        ("a,b\n1,2\n", {"a": "iopz"}, "`iopz` is not a field.*`mib_per_s`.*`block_size`"),
        ("a,b\n1,2\n", {"c": "iops"}, "no column `c`. It has `a`, `b`."),
        ("a,b\n1,2\n", {"a": "iops", "b": "kiops"}, "columns `a`, `b` state the same value"),
        ("pattern,mib_per_s,mb_per_s\nread,2,2\n", {}, "columns `mib_per_s`, `mb_per_s` state the same value"),
        ("a,b\n1,2\n", {"a": "iops"}, "direction or the pattern"),
        ("a,b\n1,upwards\n", {"a": "iops", "b": "direction"}, "not read, write"),
        ("a,b\nnan,read\n", {"a": "iops", "b": "direction"}, "not a number"),
        ("a,b\n-5,read\n", {"a": "iops", "b": "direction"}, "not a number"),
        ("a,b\n1\n", {"a": "iops", "b": "direction"}, "truncated"),
        ("a,b\n1,9x\n", {"a": "iops", "b": "block_size"}, "Block size"),
        ("a,b\n", {"a": "iops"}, "at least one row"),
    ],
)
def test_plain_csv_refuses_with_a_reason(csv: str, mapping: dict[str, str], reason: str) -> None:
    with pytest.raises(ImportRefused, match=reason):
        plain_csv.parse(csv, mapping)


@pytest.mark.parametrize(("pattern", "way"), [("randread", "write"), ("randwrite", "read"), ("trim", "write")])
def test_a_direction_that_contradicts_the_pattern_is_refused(pattern: str, way: str) -> None:
    with pytest.raises(ImportRefused, match=f"direction {way} and the pattern {pattern}"):
        plain_csv.parse(f"pattern,direction,iops\n{pattern},{way},100\n")
    assert len(plain_csv.parse("pattern,direction,iops\nrandrw,write,100\nrandrw,read,100\nrandrw,mixed,200\n")) == 3


def test_a_bandwidth_with_a_wrong_unit_is_noted() -> None:
    head = "pattern,block_size,iops,mb_per_s\n"
    right, wrong = plain_csv.parse(f"{head}randread,4k,1000,4.1\nrandread,4k,1000,4096\n")
    assert right.notes == ()
    assert wrong.notes == ("The bandwidth is 1,000 times IOPS × block size. Check the units of these columns.",)


def test_a_csv_with_too_many_results_or_fields_is_refused() -> None:
    with pytest.raises(ImportRefused, match="more than 60,000 results"):
        plain_csv.parse("direction,iops\n" + "read,1\n" * 60_001)
    with pytest.raises(ImportRefused, match="more than 1,000,000"):
        plain_csv.parse("direction,iops,comment\n" + "read,1,x\n" * 400_000)


def test_rates_of_plain_csv_are_decimal_or_binary() -> None:
    (decimal,) = plain_csv.parse("pattern,gb_per_s\nread,1.5\n")
    (binary,) = plain_csv.parse("pattern,gib_per_s\nread,1.5\n")
    assert (decimal.bytes_per_s, binary.bytes_per_s) == (1.5e9, 1.5 * 1024**3)


def test_plain_csv_can_state_the_sum_of_reads_and_writes() -> None:
    (measured,) = plain_csv.parse("direction,iops\nmixed,100\n")
    assert measured.direction is None


def test_a_point_that_may_separate_thousands_is_noted() -> None:
    (doubtful,) = plain_csv.parse("direction;iops\nread;1.000\n")
    assert doubtful.iops == 1
    assert doubtful.notes == ("The point in numbers such as 1.000 is read as a decimal point.",)
    for clear in ("direction;iops\nread;1.5\n", "direction,iops\nread,1.000\n"):
        assert not plain_csv.parse(clear)[0].notes
