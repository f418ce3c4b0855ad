"""Latencies that contradict each other, and impossible dates."""

from datetime import UTC, datetime, timedelta

import pytest

from webapp.imports.files import plausible
from webapp.imports.measurement import Latency, Measurement
from worker.contract.items import Direction

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def measured(latency: Latency = Latency(), when: datetime | None = None) -> Measurement:  # noqa: B008
    return Measurement(
        tool="CSV", direction=Direction.READ, factors={}, iops=5, latency=latency, measured_at=when, notes=("First.",)
    )


@pytest.mark.parametrize(
    ("stated", "kept", "words"),
    [
        (Latency(mean_ns=500, max_ns=10), Latency(), "contradict"),
        (Latency(min_ns=9, mean_ns=5, stddev_ns=1), Latency(), "contradict"),
        (Latency(min_ns=9, max_ns=5), Latency(), "contradict"),
        (Latency(mean_ns=5, percentiles={99.0: 3, 50.0: 900}), Latency(mean_ns=5), "do not ascend"),
        (Latency(kind="lat", mean_ns=5, max_ns=10, percentiles={50.0: 900}), Latency(kind="lat"), "outside"),
        (Latency(min_ns=100, percentiles={50.0: 9}), Latency(), "outside"),
    ],
)
def test_latencies_that_contradict_each_other_are_left_out(stated: Latency, kept: Latency, words: str) -> None:
    found = plausible(measured(stated), NOW)
    assert found.latency == kept
    assert found.iops == 5
    first, note = found.notes
    assert (first, words in note) == ("First.", True)


@pytest.mark.parametrize(
    "stated",
    [
        Latency(),
        Latency(min_ns=0, mean_ns=105, max_ns=100),  # rounded by the tool
        Latency(min_ns=5, mean_ns=9, max_ns=100, percentiles={50.0: 8, 99.0: 90, 99.99: 101}),  # the end of a bin
        Latency(percentiles={99.0: 7, 50.0: 7}),
    ],
)
def test_other_latencies_are_kept(stated: Latency) -> None:
    assert plausible(measured(stated), NOW) == measured(stated)


@pytest.mark.parametrize("when", [datetime(2223, 7, 6, tzinfo=UTC), datetime(1994, 12, 31, tzinfo=UTC)])
def test_an_impossible_date_is_left_out(when: datetime) -> None:
    found = plausible(measured(when=when), NOW)
    assert found.measured_at is None
    assert f"The date {when:%Y-%m-%d} in the file is not possible." in found.notes[1]


@pytest.mark.parametrize("when", [NOW + timedelta(hours=23), datetime(1995, 1, 1, tzinfo=UTC), None])
def test_a_possible_date_is_kept(when: datetime | None) -> None:
    assert plausible(measured(when=when), NOW) == measured(when=when)
