import pytest

from webapp.imports.formats import iozone
from webapp.imports.formats.tests.examples import only, parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

READ, WRITE = Direction.READ, Direction.WRITE
MIB = 1024 * 1024


def test_throughput_mode() -> None:
    found = parsed("iozone/throughput.txt")
    assert [(m.name, m.direction) for m in found] == [
        ("Initial write", WRITE),
        ("Rewrite", WRITE),
        ("Random read", READ),
        ("Mixed workload", None),
        ("Random write", WRITE),
    ]
    first = found[0]
    assert first.bytes_per_s == pytest.approx(363782.66 * 1024)
    assert first.iops is None
    assert first.factors == {
        "pattern": "write",
        "block_size": MIB,
        "size": 8192 * MIB,
        "numjobs": 2,
        "direct": True,
        "end_fsync": True,
    }
    assert first.tool_version == "3.397"
    assert first.other == {"command": "iozone -i 0 -i 2 -i 8 -e -I -r 1M -s 8G -t 2"}


def test_the_report_alone() -> None:
    found = parsed("iozone/report.txt")
    assert [m.name for m in found][4:6] == ["Reverse read", "Stride read"]
    assert found[0].bytes_per_s == pytest.approx(11058.47 * 1024)
    assert found[0].factors == {"pattern": "write", "block_size": 64 * 1024}
    assert found[4].factors == {"block_size": 64 * 1024}  # no pattern of ours reads backwards


def test_a_list_of_phases() -> None:
    found = parsed("iozone/two-lists.txt")
    assert [m.name for m in found] == ["Initial write", "Rewrite", "Read", "Re-read"] * 2
    kib = [290692.31, 359531.20, 503044.62, 496045.61, 297497.92, 279933.16, 473969.33, 481384.16]
    assert [m.bytes_per_s for m in found] == pytest.approx([one * 1024 for one in kib])
    assert found[0].factors == {"pattern": "write", "block_size": MIB, "size": 16 * 1024 * MIB, "numjobs": 2}
    assert found[-1].factors == {"pattern": "read", "block_size": MIB, "size": 4 * 1024 * MIB, "numjobs": 10}
    assert {m.repeat for m in found} == {1}


def test_a_shortened_head() -> None:
    found = parsed("iozone/automatic-short-head.txt")
    assert len(found) == 2 * 6
    assert only(found, READ, pattern="randread", block_size=4096).bytes_per_s == 10197 * 1024
    assert only(found, WRITE, pattern="randwrite", block_size=16 * MIB).bytes_per_s == 64214 * 1024


def test_automatic_mode_fills_the_columns_of_the_chosen_tests() -> None:
    found = parsed("iozone/automatic.txt")
    assert len(found) == 2 * 6
    one = only(found, READ, pattern="randread", block_size=4096)
    assert (one.name, one.bytes_per_s) == ("Random read", 1900500 * 1024)
    assert one.factors["size"] == 64 * MIB
    assert only(found, WRITE, pattern="randwrite", block_size=8192).bytes_per_s == 1500600 * 1024


def test_automatic_mode_with_all_tests() -> None:
    found = parsed("iozone/automatic-all.txt")
    assert [m.bytes_per_s for m in found] == [(100000 + n) * 1024 for n in range(1, 14)]
    assert [m.name for m in found][6:9] == ["Reverse read", "Record rewrite", "Stride read"]


def test_missing_columns_without_the_command_are_refused() -> None:
    lines = text("iozone/automatic.txt").split("\n")
    with pytest.raises(ImportRefused, match="Command line used"):
        iozone.parse("\n".join(line for line in lines if "Command" not in line))


def test_the_report_of_automatic_mode() -> None:
    found = parsed("iozone/automatic-report.txt")
    assert len(found) == 8  # a 0 is not a measurement
    assert only(found, WRITE, size=128 * 1024, block_size=16 * 1024).bytes_per_s == 600 * 1024
    assert only(found, READ, size=64 * 1024, block_size=8 * 1024).name == "Reverse read"


def test_operations_per_second() -> None:
    write, read = parsed("iozone/operations.txt")
    assert (write.iops, write.bytes_per_s) == (1074.97, None)
    assert (read.iops, read.direction) == (952.91, READ)


def test_microseconds_per_operation_are_refused() -> None:
    """They were read as KiB/s, so that a faster drive looked slower."""
    head = "Microseconds/op Mode. Output is in microseconds per operation."
    with pytest.raises(ImportRefused, match="iozone -N"):
        iozone.parse(text("iozone/operations.txt").replace("OPS Mode. Output is in operations per second.", head))
