"""Distributions and time lines, held against what is counted by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from webapp.analysis.comparing import select
from webapp.analysis.latency import PERCENTS, chart_point, chart_points, distributions
from webapp.analysis.question import CompareQuery, CompareRefused
from webapp.analysis.timeline import Span, rates, time_lines
from webapp.results.models import Result, Sample, known
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import START, Lab
from webapp.tests.peak import measured_cost
from webapp.tests.refusals import refuses
from worker.contract.packing import LAST_BUCKET_NS, Histogram, least_count, merge, pack

ENGINES = CompareQuery("iodepth", ("ioengine",), baseline="io_uring")


@pytest.fixture
def lab(db: None) -> Lab:
    return Lab(a_target(a_host("a"), "scratch"))


def counts(histogram: dict[int, int]) -> Histogram:
    ordered = sorted(histogram)
    return Histogram(latency_ns=tuple(ordered), counts=tuple(histogram[ns] for ns in ordered))


def store(result: Result, histogram: dict[int, int]) -> None:
    Result.objects.filter(pk=result.pk).update(latency=pack(counts(histogram)))


some = st.dictionaries(st.integers(1, 5000), st.integers(1, 40), min_size=1, max_size=12)


@given(st.lists(some, min_size=1, max_size=5))
def test_a_merge_is_the_histogram_of_all_ios_in_any_order(several: list[dict[int, int]]) -> None:
    every = sorted(ns for one in several for ns, count in one.items() for _ in range(count))
    whole = merge(counts(one) for one in several)
    assert whole == merge(counts(one) for one in reversed(several))
    assert whole.total == len(every)
    for percent in PERCENTS:
        rank = max(1, math.ceil(round(len(every) * percent / 100, 9)))
        assert whole.percentile(percent) == every[rank - 1]


@pytest.mark.parametrize(("percent", "least"), [(90.0, 100), (99.0, 1000), (99.9, 10_000), (99.999, 1_000_000)])
def test_a_percentile_takes_ten_ios_beyond_it(percent: float, least: int) -> None:
    assert least_count(percent) == least


def test_repeats_are_taken_together(lab: Lab, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    first, second = lab.measure(10.0, 11.0)
    store(first, {1000: 600, 2000: 300})
    store(second, {1000: 60, 3000: 40})
    selected = select(ENGINES)
    with django_assert_num_queries(1):
        (made,) = distributions(chart_point(selected))
    assert (made.name, made.repeats, made.ios, made.is_baseline) == ("io_uring", 2, 1000, True)
    assert made.percentiles_ns == (1000, 2000, 2000, 3000, None, None, None)
    assert (made.cdf_ns, made.cdf_shares) == ((1000, 2000, 3000), (0.66, 0.96, 1.0))


def test_repeats_without_a_histogram_are_not_counted(lab: Lab) -> None:
    first, second = lab.measure(10.0, 11.0)
    store(first, {1000: 600})
    store(second, {})
    (made,) = distributions(chart_point(select(ENGINES)))
    assert (made.repeats, made.ios) == (1, 600)


def test_of_very_many_buckets_each_that_is_kept_is_exact(lab: Lab) -> None:
    (result,) = lab.measure(10.0)
    store(result, dict.fromkeys(range(1, 1001), 1))
    (made,) = distributions(chart_point(select(ENGINES)))
    assert len(made.cdf_ns) == 240
    assert (made.cdf_ns[0], made.cdf_ns[-1], made.cdf_shares[-1]) == (1, 1000, 1.0)
    assert all(share == pytest.approx(ns / 1000) for ns, share in zip(made.cdf_ns, made.cdf_shares, strict=True))


def test_results_without_a_histogram_are_left_out(lab: Lab) -> None:
    lab.measure(10.0)
    assert distributions(chart_point(select(ENGINES))) == ()


def test_the_default_point_is_the_last_one_with_the_most_series(lab: Lab) -> None:
    for depth in (1, 8, 32):
        lab.measure(10.0, iodepth=depth)
    for depth in (1, 8):
        lab.measure(5.0, ioengine="psync", iodepth=depth)
    selected = select(ENGINES)
    assert chart_points(selected) == {"|1": "Queue depth 1", "|8": "Queue depth 8", "|32": "Queue depth 32"}
    assert chart_point(selected).key == "|8"
    assert [level.text for level in chart_point(selected, "|32").series] == ["io_uring"]
    with refuses("compare_chart_point_unknown"):
        chart_point(selected, "|64")


def samples(result: Result, ios: dict[int, int], length_ms: int = 1000, direction: str = "read") -> None:
    """I/Os by the offset at which their sample ended, in units of its length."""
    Sample.objects.bulk_create(
        Sample(
            attempt=known(result.stream_run).attempt, stream=0, offset_ms=length_ms * number, direction=direction,
            at=START, length_ms=length_ms, ios=count, bytes=4096 * count, p99_ns=count * 10, latency=b"",
        )
        for number, count in ios.items()
    )  # fmt: skip


def test_trials_are_aligned_at_their_start_and_the_mean_uses_existing_values(
    lab: Lab, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first, second = lab.measure(10.0, 11.0)
    samples(first, {1: 100, 2: 200, 4: 400})
    samples(second, {1: 50, 2: 150, 3: 100, 4: 50}, length_ms=500)
    selected = select(ENGINES)
    with django_assert_num_queries(2):
        made = time_lines(chart_point(selected), "iops")
    (series,) = made.series
    assert series.repeats == ((100.0, 200.0, None, 400.0), (200.0, 150.0))
    assert series.mean == (150.0, 175.0, None, 400.0)
    assert (made.bin_s, made.bin_text, made.metric) == (1, "", "iops")


def test_a_second_of_a_mix_is_the_sum_of_its_reads_and_writes(lab: Lab) -> None:
    (result,) = lab.measure(70.0, pattern="randrw", read_percent=70)
    samples(result, {1: 70, 2: 140, 3: 70})
    samples(result, {1: 30, 2: 60, 4: 30}, direction="write")
    result.pk, result.direction, result.iops = None, "write", 30.0
    result.save()
    (series,) = time_lines(chart_point(select(ENGINES)), "iops").series
    assert series.repeats == ((100.0, 200.0, 70.0, 30.0),)
    latencies = select(CompareQuery("iodepth", ("ioengine",), metric="latency_p99"))
    lines = {key: time_lines(chart_point(latencies, key), "latency_p99") for key in chart_points(latencies)}
    assert {key: made.series[0].mean for key, made in lines.items()} == {
        "read|1": (700.0, 1400.0, 700.0), "write|1": (300.0, 600.0, None, 300.0),
    }  # fmt: skip


def test_a_metric_without_samples_is_replaced_and_the_replacement_is_named(lab: Lab) -> None:
    (result,) = lab.measure(10.0)
    samples(result, {1: 7})
    made = time_lines(chart_point(select(ENGINES)), "latency_p95")
    assert (made.metric, made.label, made.series[0].mean) == ("latency_p99", "p99 latency", (70.0,))


def test_of_long_trials_rates_are_averaged_and_of_percentiles_the_worst_is_kept(lab: Lab) -> None:
    (result,) = lab.measure(10.0)
    samples(result, {n: n for n in range(1, 1201)})
    rates = time_lines(chart_point(select(ENGINES)), "iops")
    assert (rates.bin_s, rates.bin_text) == (2, "the mean of each 2 s")
    assert rates.series[0].mean[:2] == (1.5, 3.5)
    assert (rates.series[0].low[:2], rates.series[0].high[:2]) == ((1.0, 3.0), (2.0, 4.0))
    worst = time_lines(chart_point(select(ENGINES)), "latency_p99")
    assert worst.bin_text == "the worst second of each 2 s"
    assert worst.series[0].mean[:2] == (20.0, 40.0)


def test_a_span_of_a_long_trial_shows_its_single_seconds(lab: Lab) -> None:
    (result,) = lab.measure(10.0)
    samples(result, {n: n for n in range(1, 1201)})
    made = time_lines(chart_point(select(ENGINES)), "iops", Span(100, 103))
    assert (made.from_s, made.bin_s, made.series[0].mean) == (100, 1, (101.0, 102.0, 103.0))
    assert (made.series[0].low, made.series[0].high) == ((), ())
    worst = time_lines(chart_point(select(ENGINES)), "latency_p99", Span(100, 103))
    assert worst.series[0].mean == (1010.0, 1020.0, 1030.0)


def test_too_many_seconds_are_refused_with_a_message(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (result,) = lab.measure(10.0)
    result.runtime_ms = 5000
    result.save()
    samples(result, dict.fromkeys(range(1, 6), 1))
    monkeypatch.setattr("webapp.analysis.timeline.MAX_SECONDS", 4)
    with refuses("compare_too_many"):
        time_lines(chart_point(select(ENGINES)), "iops")


def test_of_several_targets_at_once_a_second_is_that_of_all_streams(lab: Lab) -> None:
    alone, together = lab.measure(10.0, at_once=1) + lab.measure(20.0, at_once=2)
    samples(alone, {1: 100, 2: 200})
    for stream, offset_ms, length_ms, histogram in (
        (0, 1000, 1000, {1000: 900, 5000: 100}),
        (0, 2000, 1000, {1000: 900, 5000: 100}),
        (1, 2000, 2000, {1000: 999, 9000: 1}),
    ):
        Sample.objects.create(
            attempt=known(together.stream_run).attempt, stream=stream, offset_ms=offset_ms, length_ms=length_ms,
            direction="read", at=START, ios=1000, bytes=4096000, p99_ns=1, latency=pack(counts(histogram)),
        )  # fmt: skip
    selected = select(CompareQuery("iodepth", ("at_once",), baseline="1"))
    rates = {each.name: each.mean for each in time_lines(chart_point(selected), "iops").series}
    assert list(rates.values()) == [(100.0, 200.0), (1000.0 + 500.0, 1000.0 + 500.0)]
    worst = time_lines(chart_point(selected), "latency_p99").series[1].mean
    assert worst == (5000, 5000)
    median = time_lines(chart_point(selected), "latency_p50").series[1].mean
    assert median == (1000, 1000)


def test_a_span_of_several_targets_has_only_the_samples_that_end_in_its_seconds(lab: Lab) -> None:
    (together,) = lab.measure(20.0, at_once=2)
    latencies = {2300: 9000, 3300: 1000, 4300: 2000, 5300: 3000, 5700: 7000}  # by the end of the sample in ms
    Sample.objects.bulk_create(
        Sample(
            attempt=known(together.stream_run).attempt, stream=stream, offset_ms=offset_ms, length_ms=1000,
            direction="read", at=START, ios=1000, bytes=4096000, p99_ns=latency_ns,
            latency=pack(counts({latency_ns: 1000})),
        )
        for offset_ms, latency_ns in latencies.items()
        for stream in (0, 1)
    )  # fmt: skip
    made = time_lines(chart_point(select(CompareQuery("iodepth"))), "latency_p99", Span(2, 5))
    (series,) = made.series
    assert series.mean == (1000, 2000, 3000)


def test_the_curve_of_ios_above_17_s_rises_at_the_largest_latency(lab: Lab) -> None:
    """fio's last bucket says only that 40 I/Os took more than 17 s."""
    for result, largest_ns in zip(lab.measure(10.0, 11.0), (22_000_000_000, 30_000_000_000), strict=True):
        store(result, {1000: 600, LAST_BUCKET_NS: 20})
        Result.objects.filter(pk=result.pk).update(latency_max_ns=largest_ns)
    (series,) = distributions(chart_point(select(ENGINES)))
    assert series.percentiles_ns[PERCENTS.index(99.0)] == LAST_BUCKET_NS
    assert (series.cdf_ns, series.cdf_shares[-1]) == ((1000, 30_000_000_000), 1.0)


def test_a_log_that_lasts_a_year_is_refused_before_it_takes_memory() -> None:
    """Two points of an import, a year apart, also if the tool states no runtime."""
    year_ms = 365 * 86_400_000.0
    offsets, ones = np.array([1000.0, year_ms]), np.ones(2)
    with measured_cost() as cost, pytest.raises(CompareRefused) as caught:
        rates(offsets, 1000 * ones, ones, Span())
    assert (caught.value.code, cost.memory_bytes < 10 * 2**20) == ("compare_too_many", True)
    assert len(rates(offsets, 1000 * ones, ones, Span(0, 5))) == 5
    assert len(rates(offsets[:1], 1000 * ones[:1], ones[:1], Span(0, 30_000_000))) == 1
