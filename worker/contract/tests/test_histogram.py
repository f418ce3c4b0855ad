"""Percentiles from histograms, against the plain definition on the sorted values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.contract.packing import Histogram, merge, supported_percentile

bins = st.dictionaries(st.integers(0, 10**10), st.integers(1, 2000), max_size=30)


def histogram(counts: dict[int, int]) -> Histogram:
    ordered = sorted(counts)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(counts[b] for b in ordered))


@given(bins, st.sampled_from([0.0, 1.0, 50.0, 95.0, 99.0, 99.9, 99.99, 100.0]))
def test_it_gives_the_nearest_rank_percentile(counts: dict[int, int], percent: float) -> None:
    values = sorted(value for value, count in counts.items() for _ in range(count))
    expected = None
    if values:
        thousandths = round(percent * 1000)
        expected = values[max(1, math.ceil(len(values) * thousandths / 100_000)) - 1]
    assert histogram(counts).percentile(percent) == expected


@given(st.lists(bins, max_size=4))
def test_it_merges_without_losing_an_io(parts: list[dict[int, int]]) -> None:
    merged = merge(histogram(part) for part in parts)
    assert merged.total == sum(sum(part.values()) for part in parts)
    for value, count in zip(merged.latency_ns, merged.counts, strict=True):
        assert count == sum(part.get(value, 0) for part in parts)


def test_it_has_no_percentile_and_no_mean_of_nothing() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram().mean_ns() is None


def test_it_gives_the_exact_mean_of_its_buckets() -> None:
    assert histogram({10: 1, 20: 3}).mean_ns() == 17.5


@pytest.mark.parametrize(("percent", "least"), [(50.0, 20), (99.0, 1_000), (99.9, 10_000)])
def test_it_withholds_a_percentile_of_too_few_ios(percent: float, least: int) -> None:
    assert supported_percentile(histogram({5: least - 1}), percent) is None
    assert supported_percentile(histogram({5: least}), percent) == 5


@pytest.mark.parametrize(("values", "counts"), [((1, 2), (1,)), ((2, 1), (1, 1)), ((1, 1), (1, 1))])
def test_it_refuses_a_histogram_out_of_order(values: tuple[int, ...], counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="latency_ns"):
        Histogram(latency_ns=values, counts=counts)
