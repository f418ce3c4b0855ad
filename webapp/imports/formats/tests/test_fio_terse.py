import pytest

from webapp.imports.errors import ImportRefused
from webapp.imports.formats import fio_terse
from webapp.imports.formats.tests.examples import only, parsed, text
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


def test_a_truncated_line_is_refused() -> None:
    line = text("fio-terse/3.33-v3.txt")
    with pytest.raises(ImportRefused, match="truncated"):
        fio_terse.parse(line[: len(line) // 3])


def test_other_lines_are_skipped() -> None:
    assert len(fio_terse.parse("fio: warning\n" + text("fio-terse/3.33-v3.txt") + "\nend\n")) == 2
