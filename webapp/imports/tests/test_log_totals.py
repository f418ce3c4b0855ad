"""Whether the sums of logs can be those of a test."""

import pytest

from webapp.imports.formats.fio_log import Kind
from webapp.imports.log_series import problem, totals
from webapp.imports.measurement import Measurement, Point
from worker.contract.items import Direction

READ = Direction.READ
JOBS = {Kind.IOPS: 1, Kind.BANDWIDTH: 1}


def reason(rates: list[float], runtime_ms: int) -> str:
    """Of logs with these IOPS, a second each, of a test of 10,000 IOPS."""
    points = [
        Point(offset_ms=1000 * place, length_ms=1000, iops=rate, bytes_per_s=rate * 4096)
        for place, rate in enumerate(rates, start=1)
    ]
    stated = Measurement(
        tool="fio", direction=READ, factors={}, iops=10_000, bytes_per_s=40_960_000, runtime_ms=runtime_ms
    )
    refusal = problem({READ: totals(points, None)}, [stated], JOBS)
    return refusal.message if refusal else ""


def test_logs_of_the_whole_test() -> None:
    assert reason([10_000] * 4, 4000) == ""
    assert "more I/Os" in reason([11_600] * 4, 4000)
    assert "fewer I/Os" in reason([8000] * 4, 4000)


def test_the_time_that_logs_do_not_cover_has_no_negative_number_of_ios() -> None:
    assert "more I/Os" in reason([14_500] * 3, 4000)  # 109 % of the test in 75 % of its time
    assert reason([13_000] * 3, 4000) == ""


@pytest.mark.parametrize(("rates", "known"), [([3000, 5000, 9000], True), ([5000, 5000, 5000], False)])
def test_a_short_test_may_rise_to_its_end(rates: list[float], known: bool) -> None:
    """The last second needs 23,000 IOPS in the one case, and five times the highest logged rate in the other."""
    assert (reason(rates, 4000) == "") is known
