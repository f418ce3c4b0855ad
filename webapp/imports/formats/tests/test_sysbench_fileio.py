import pytest

from webapp.imports.formats import sysbench_fileio
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.measurement import Latency
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE
MIB = 1024 * 1024


def test_version_1_0() -> None:
    found = parsed("sysbench-fileio/1.0-rndrw.txt")
    read, write = only(found, READ), only(found, WRITE)
    assert (read.iops, read.bytes_per_s) == (14394.84, 224.92 * MIB)
    assert (write.iops, write.bytes_per_s) == (9596.67, 149.95 * MIB)
    assert read.bytes_per_s == pytest.approx(14394.84 * 16384, rel=1e-3)  # so it is MiB
    assert read.factors == {
        "pattern": "randrw",
        "read_percent": 60,
        "block_size": 16384,
        "numjobs": 2,
        "iodepth": 1,
        "files": 4,
        "size": 16 * MIB,
        "direct": True,
    }
    together = only(found)
    assert together.latency.max_ns == 2_890_000
    assert together.latency.percentiles == {95: 130_000}
    assert (together.iops, together.bytes_per_s) == (None, None)
    assert read.latency == write.latency == Latency()  # sysbench does not print them
    assert "reads and writes together" in read.notes[-1]
    assert [(p.offset_ms, p.bytes_per_s) for p in write.series][:2] == [(1000, 144.84 * MIB), (2000, 154.87 * MIB)]


def test_version_1_0_sequential_write() -> None:
    (write,) = parsed("sysbench-fileio/1.0-seqwr.txt")
    assert write.direction is WRITE
    assert write.factors["pattern"] == "write"
    assert write.factors["direct"] is False


def test_version_0_4() -> None:
    found = parsed("sysbench-fileio/0.4-rndrw.txt")
    read, write = only(found, READ), only(found, WRITE)
    assert (read.tool_version, read.ios, write.ios) == ("0.4.12", 40740, 27160)
    assert read.iops == pytest.approx(40740 / 300.0003)
    total = (read.bytes_per_s or 0) + (write.bytes_per_s or 0)
    assert total == pytest.approx(3.5365 * MIB, rel=1e-4)  # as printed, so Mb is MiB
    assert read.factors["size"] == 80 * MIB
    assert only(found).latency.mean_ns == 380_000


def test_version_0_5_has_a_series() -> None:
    (write,) = parsed("sysbench-fileio/0.5-rndwr.txt")
    assert [(p.offset_ms, p.length_ms, p.bytes_per_s) for p in write.series] == [
        (10_000, 10_000, 80.04 * MIB),
        (20_000, 10_000, 10.50 * MIB),
    ]
    assert write.factors["direct"] is True
    assert write.latency.mean_ns == pytest.approx(5_500_000)


def test_runs_in_one_file_are_repeats() -> None:
    twice = text("sysbench-fileio/1.0-seqwr.txt") * 2
    assert [m.repeat for m in sysbench_fileio.parse(twice)] == [1, 2]


def test_a_truncated_run_is_refused() -> None:
    with pytest.raises(ImportRefused, match="truncated"):
        sysbench_fileio.parse(text("sysbench-fileio/1.0-rndrw.txt").split("Throughput")[0])


def test_throughput_of_1_1() -> None:
    (measured,) = parsed("sysbench-fileio/1.1-seqrewr.txt")
    assert (measured.tool_version, measured.direction) == ("1.1.0-df89d34", Direction.WRITE)
    assert measured.iops == 9057.41
    assert measured.bytes_per_s == pytest.approx(88.45 * 2**20)
    assert measured.bytes_per_s == pytest.approx((measured.iops or 0) * 10 * 1024, rel=1e-4)
    assert measured.runtime_ms is None  # not printed
    assert measured.latency.percentiles == {95.0: 1.12e6}


def test_a_run_without_the_line_of_its_version() -> None:
    _, _, rest = text("sysbench-fileio/1.1-seqrewr.txt").partition("\n")
    (measured,) = sysbench_fileio.parse(rest)
    assert (measured.tool_version, measured.iops) == ("", 9057.41)
    assert sysbench_fileio.sniff(rest)
