import pytest

from webapp.imports.formats import bonnie
from webapp.imports.formats.tests.examples import parsed, text
from webapp.imports.values import ImportRefused
from worker.contract.items import Direction

GIB = 1024**3


def test_csv_of_1_97() -> None:
    found = {m.name: m for m in parsed("bonnie/1.97.csv")}
    write, read = found["Sequential output, block"], found["Sequential input, block"]
    assert (write.direction, write.bytes_per_s) == (Direction.WRITE, 1579117 * 1024)
    assert (read.direction, read.bytes_per_s) == (Direction.READ, 3039371 * 1024)
    assert write.factors == {"pattern": "write", "size": 512 * GIB}
    assert write.other == {"concurrency": "4"}
    assert write.metrics == {"cpu_percent": 93}
    assert write.latency.max_ns == 1402e6
    assert read.latency.max_ns == 203e6
    seeks = found["Random seeks"]
    assert (seeks.iops, seeks.bytes_per_s, seeks.latency.max_ns) == (8350.5, None, 3e9)


@pytest.mark.parametrize("name", ["1.03.csv", "1.03.txt"])
def test_1_03(name: str) -> None:
    found = {m.name: m for m in parsed(f"bonnie/{name}")}
    assert found["Sequential output, block"].bytes_per_s == 351223 * 1024
    assert found["Sequential output, rewrite"].bytes_per_s == 146890 * 1024
    assert found["Random seeks"].iops == 611.2
    assert found["Random seeks"].latency.max_ns is None


@pytest.mark.parametrize("name", ["2.00.csv", "2.00.txt"])
def test_too_short_tests_of_2_00_are_no_measurements(name: str) -> None:
    found = {m.name: m.bytes_per_s for m in parsed(f"bonnie/{name}")}
    assert found == {
        "Sequential output, per character": 1372 * 1024,
        "Sequential input, per character": 2132 * 1024,
    }


def test_a_truncated_line_is_refused() -> None:
    with pytest.raises(ImportRefused, match="truncated"):
        bonnie.parse(text("bonnie/1.97.csv")[:80])


def test_without_the_tests_per_character() -> None:
    """bonnie++ -f."""
    found = parsed("bonnie/1.97-fast.txt")
    assert [m.name for m in found] == [
        "Sequential output, block", "Sequential output, rewrite", "Sequential input, block", "Random seeks",
    ]  # fmt: skip
    assert [m.bytes_per_s for m in found] == [118_414 * 1024, 57_046 * 1024, 140_063 * 1024, None]
    assert [m.latency.max_ns for m in found] == [567e6, 1232e6, 61_231e3, 456e6]
    assert [m.metrics["cpu_percent"] for m in found] == [23, 15, 14, 5]


def test_the_size_of_a_chunk() -> None:
    found = parsed("bonnie/2.00-chunk.txt")
    assert len(found) == 6
    assert {(m.factors["size"], m.other["chunk size"]) for m in found} == {(64 * 2**30, "4k")}
    assert [m.bytes_per_s for m in found[:3]] == [300 * 1024, 16 * 2**20, 60 * 2**20]
