import pytest

from webapp.imports.formats import fio_terse
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction


@pytest.mark.parametrize("version", ["2", "3", "4", "5"])
def test_it_reads_both_directions(version: str) -> None:
    found = parsed(f"fio-terse/3.33-v{version}.txt")
    fields = text(f"fio-terse/3.33-v{version}.txt").split(";")
    head = 4 if version == "2" else 5
    read = only(found, Direction.READ)
    assert read.bytes == int(fields[head]) * 1024
    assert read.bytes_per_s == int(fields[head + 1]) * 1024
    assert read.iops == int(fields[head + 2])
    assert read.runtime_ms == int(fields[head + 3])
    assert read.latency.mean_ns == pytest.approx(float(fields[head + 10]) * 1000)
    assert read.latency.percentiles[99.99] > read.latency.percentiles[50] > 0
    assert read.tool_version == ("" if version == "2" else "3.33")
    assert read.metrics["sys_cpu_percent"] < 50
    assert only(found, Direction.WRITE).iops == pytest.approx(80, rel=0.1)  # as the job asked
    assert only(found, Direction.READ).iops == pytest.approx(120, rel=0.1)


def test_reads_and_writes_together() -> None:
    """unified_rw_reporting=1 with randrw."""
    (mixed,) = parsed("fio-terse/3.33-v4-unified.txt")
    fields = text("fio-terse/3.33-v4-unified.txt").split(";")
    assert mixed.direction is None
    assert (mixed.bytes, mixed.iops) == (int(fields[5]) * 1024, int(fields[7])) == (1_638_400, 399)
    assert mixed.latency.mean_ns == pytest.approx(float(fields[15]) * 1000)


def test_a_truncated_line_is_refused() -> None:
    line = text("fio-terse/3.33-v3.txt")
    with pytest.raises(ImportRefused, match="truncated"):
        fio_terse.parse(line[: len(line) // 3])


def test_other_lines_are_skipped() -> None:
    assert len(fio_terse.parse("fio: warning\n" + text("fio-terse/3.33-v3.txt") + "\nend\n")) == 2


def _line(name: str = "j", *, iops: int, group: int = 0, disk: str = "vda;100;0;2;0;51;0;51;75.96%") -> str:
    """A line of the example with other IOPS, reads only."""
    fields = text("fio-terse/3.33-v3.txt").strip().split(";")
    fields[2:4] = [name, str(group)]
    fields[5:9] = [str(iops * 4), str(iops * 4), str(iops), "1000"]
    fields[46] = "0"  # KiB written
    return ";".join([*fields[:121], *disk.split(";")]) + "\n"


def test_jobs_of_one_run_are_added() -> None:
    (one,) = fio_terse.parse("".join(_line(iops=iops) for iops in (100, 200, 300)))
    assert (one.repeat, one.iops, one.bytes_per_s, one.bytes, one.runtime_ms) == (1, 600, 2_457_600, 2_457_600, 1000)
    assert one.latency.mean_ns == pytest.approx(only(parsed("fio-terse/3.33-v3.txt"), Direction.READ).latency.mean_ns)
    assert one.latency.percentiles == {}
    assert "ran beside" not in one.other
    assert one.notes == ("The sum of 3 jobs of one run. Their percentiles cannot be combined.",)


def test_runs_appended_to_one_file_are_repeats() -> None:
    found = fio_terse.parse(_line(iops=100) + _line(iops=200, disk="vda;101;0;2;0;51;0;51;75.96%"))
    assert [(one.repeat, one.iops) for one in found] == [(1, 100), (2, 200)]


@pytest.mark.parametrize("disk", ["", "vda;0;0;0;0;0;0;0;0.00%"])
def test_equal_lines_without_counters_of_disks_are_doubtful(disk: str) -> None:
    found = fio_terse.parse(_line(iops=100, disk=disk) + _line(iops=200, disk=disk))
    assert [one.iops for one in found] == [100, 200]
    assert {one.other["ran beside"] for one in found} == {"j, unless the equal lines are repeated runs"}


def test_different_jobs_of_one_group_ran_beside_each_other() -> None:
    found = fio_terse.parse(_line("reader", iops=100) + _line("writer", iops=200) + _line("later", iops=300, group=1))
    assert [one.other.get("ran beside") for one in found] == ["writer", "reader", None]
