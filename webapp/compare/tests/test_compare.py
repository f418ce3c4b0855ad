import math

import msgspec
import pytest
from pytest_django import DjangoAssertNumQueries
from scipy import stats

from webapp.compare.chart_points import chart_point, chart_points
from webapp.compare.comparison import Comparison, DifferenceKind
from webapp.compare.query import CompareQuery, CompareRefused, read_query
from webapp.compare.selectors import compare, for_latencies, select
from webapp.compare.tests.orders import alternate
from webapp.results.models import Result
from webapp.results.reading.filter import FilterRefused
from webapp.runs.models import Trial
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import FACTS, Lab
from worker.contract.histogram import LAST_BUCKET_NS

pytestmark = pytest.mark.django_db

ENGINES = CompareQuery(x="iodepth", series=("ioengine",), baseline="io_uring")


@pytest.fixture
def lab() -> Lab:
    return Lab(a_target(a_host("a"), "scratch"))


def measure_engines(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0, iodepth=1)
    lab.measure(990.0, 1000.0, 1010.0, iodepth=32)
    lab.measure(61.5, 62.0, 62.5, iodepth=1, ioengine="psync", facts=FACTS)
    lab.measure(800.0, 800.0, 800.0, iodepth=32, ioengine="psync")
    alternate(lab.run)


def sentence(made: Comparison) -> str:
    return next(series.sentence for series in made.panels[0].series if series.sentence)


def test_it_summarises_repeats_and_holds_them_against_the_baseline(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(ENGINES)
    assert [(level.text, level.number) for level in made.levels] == [("1", 1.0), ("32", 32.0)]
    uring, psync = made.panels[0].series
    assert (uring.name, uring.is_baseline, psync.name, psync.is_baseline) == ("io_uring", True, "psync", False)
    cell = psync.cells[0]
    assert (cell.summary.values, cell.summary.n, cell.summary.mean, cell.summary.sd) == (
        (61.5, 62.0, 62.5),
        3,
        62.0,
        0.5,
    )
    factor = math.exp(stats.t.ppf(0.975, 2) * 0.5 / 62 / 3**0.5)
    assert (cell.summary.low, cell.summary.high) == pytest.approx((62 / factor, 62 * factor))
    assert cell.against_baseline is not None
    assert cell.against_baseline.ratio.value == pytest.approx(0.62, rel=1e-4)
    assert (cell.against_baseline.text, cell.against_baseline.better) == ("−38 %", False)
    assert (cell.text, cell.spread_text) == ("62.0", "60.8 to 63.3")
    assert uring.cells[0].against_baseline is None
    assert made.ratio_as == "percent"


def test_it_says_what_the_numbers_say(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made) == "psync 38 % slower than io_uring (95 % CI −40 % to −36 %, n = 3)."
    assert (made.single_factor, made.verdict) == (True, "Single-factor: series differ in I/O engine alone.")


def test_over_several_places_it_says_the_average_and_the_range(lab: Lab) -> None:
    measure_engines(lab)
    said = sentence(compare(ENGINES))
    assert said == (
        "psync 30 % slower than io_uring (95 % CI −31 % to −28 %, n = 3), 2 points; all from −38 % to −20 %."
    )


def test_no_difference_is_said_only_if_the_whole_interval_is_inside_the_margin(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(101.0, 100.0, 100.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made) == (
        "psync and io_uring: no difference in IOPS beyond ±5 % (95 % CI −3.4 % to +4.3 %, n = 3)."
    )
    against = made.panels[0].series[1].cells[0].against_baseline
    assert against is not None
    assert (against.better, against.equal) == (None, True)
    narrower = compare(read_query([("x", "iodepth"), ("series", "ioengine"), ("margin", "2")]))
    assert narrower.margin == 0.02
    assert sentence(narrower) == (
        "psync and io_uring: cannot tell a difference in IOPS (95 % CI −3.4 % to +4.3 %, n = 3)."
    )


def test_a_difference_inside_the_margin_says_so(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(101.0, 102.1, 103.0, ioengine="psync")
    alternate(lab.run)
    assert sentence(compare(ENGINES)).endswith(", n = 3), within ±5 %.")


def test_repeats_that_lie_far_apart_say_nothing_rather_than_no_difference(lab: Lab) -> None:
    lab.measure(40.0, 100.0, 160.0)
    lab.measure(101.0, 50.0, 152.0, ioengine="psync")
    said = sentence(compare(ENGINES))
    assert said.startswith("psync and io_uring: cannot tell a difference in IOPS (95 % CI −8")
    assert "no difference" not in said


def test_a_series_that_always_ran_after_the_other_may_have_drifted(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    made = compare(ENGINES)
    assert sentence(made).endswith("), or drift: it always ran after io_uring.")
    against = made.panels[0].series[1].cells[0].against_baseline
    assert against is not None
    assert (against.better, made.panels[0].series[1].order) == (None, "after")
    assert any("always ran in the same order" in note for note in made.notes)


def test_two_repeats_never_make_a_claim(lab: Lab) -> None:
    lab.measure(100.0, 100.0)
    lab.measure(50.0, 50.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made).startswith("psync against io_uring: ×0.50 IOPS (95 % CI ×0.")
    assert sentence(made).endswith(", n = 2: too few repeats).")
    assert made.panels[0].series[1].cells[0].against_baseline.better is None  # type: ignore[union-attr]


def test_one_point_far_from_the_others_is_set_apart_from_the_mean(lab: Lab) -> None:
    for depth in range(1, 15):
        psync = (1.0, 1.0, 1.0) if depth == 3 else (101.0, 100.0, 100.0)
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(*psync, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    said = sentence(compare(ENGINES))
    assert said.startswith("psync and io_uring: no difference in IOPS beyond ±5 % (95 % CI ×0.96 to ×1.05, n = 3)")
    assert said.endswith(", 13 of 14 points; ×0.01 at 3.")


def test_a_point_with_failed_repeats_is_set_apart_from_the_mean(lab: Lab) -> None:
    for depth in (1, 2, 4):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(*(62.0, 62.0, 62.0)[: depth if depth == 1 else 3], iodepth=depth, ioengine="psync")
    alternate(lab.run)
    said = sentence(compare(ENGINES))
    assert said.startswith("psync 38 % slower than io_uring (95 % CI −40 % to −36 %, n = 3), 2 of 3 points; ")
    assert said.endswith("; ×0.62 at 1 (n = 1).")


def test_a_zero_is_shown_and_not_averaged(lab: Lab) -> None:
    for depth in (1, 2):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(62.0, 62.0, 62.0, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    Result.objects.filter(point__ioengine="psync", point__iodepth=2).update(iops=0.0)
    made = compare(ENGINES)
    assert (
        sentence(made) == "psync ×0.62 the IOPS of io_uring (95 % CI ×0.60 to ×0.64, n = 3), 1 of 2 points; ×0.00 at 2."
    )
    cell = made.panels[0].series[1].cells[1]
    assert (cell.summary.low, cell.spread_text, cell.doubts) == (None, "n = 3", ("contains 0",))


def test_missing_points_are_counted(lab: Lab) -> None:
    for depth in (1, 2, 4):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
    lab.measure(62.0, 62.0, 62.0, iodepth=2, ioengine="psync")
    made = compare(ENGINES)
    assert "2 of 6 points have no result: they failed or were not measured." in made.notes
    assert ", 1 of 3 points" in sentence(made)


def test_repeats_of_different_workloads_are_not_compared(lab: Lab) -> None:
    lab.measure(100.0, 100.0, 100.0)
    lab.measure(10.0, ioengine="psync", numjobs=1)
    (other,) = lab.measure(40.0, ioengine="psync", numjobs=4)
    Trial.objects.filter(pk=other.trial_id).update(repeat=2)
    made = compare(ENGINES)
    assert sentence(made) == "psync and io_uring: not comparable at 1: repeats mix workloads."
    assert made.panels[0].series[1].cells[0].doubts[0] == "not comparable: repeats mix Jobs 1, 4"


def test_several_places_that_were_measured_once_are_told_by_their_mean_and_range(lab: Lab) -> None:
    for depth, psync in ((1, 200.0), (2, 400.0), (4, 800.0)):
        lab.measure(100.0, iodepth=depth)
        lab.measure(psync, iodepth=depth, ioengine="psync")
    said = sentence(compare(ENGINES))
    assert said == "psync against io_uring: ×4.00 IOPS (n = 1: may be chance), 3 points."


def test_one_repeat_says_nothing_about_chance(lab: Lab) -> None:
    lab.measure(100.0)
    lab.measure(150.0, ioengine="psync")
    made = compare(ENGINES)
    cell = made.panels[0].series[1].cells[0]
    assert (cell.summary.sd, cell.summary.low, cell.spread_text) == (None, None, "n = 1")
    against = cell.against_baseline
    assert against is not None
    assert (against.text, against.interval_text, against.better) == ("+50 %", "", None)
    assert "may be chance" in sentence(made)
    assert "2 of 2 points were measured once and have no interval." in made.notes


def test_a_column_that_doubles_is_written_in_ratios_throughout(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(259.0, 260.0, 261.0, ioengine="libaio")
    lab.measure(89.0, 90.0, 91.0, ioengine="psync")
    alternate(lab.run)
    texts = [against.text for s in compare(ENGINES).panels[0].series if (against := s.cells[0].against_baseline)]
    assert texts == ["×2.60", "×0.90"]
    assert sentence(compare(ENGINES)).startswith("libaio ×2.60 the IOPS of io_uring (95 % CI ×2.5")


def test_lower_is_better_for_latency(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    alternate(lab.run)
    made = compare(CompareQuery(x="iodepth", series=("ioengine",), metric="latency_mean"))
    cell = made.panels[0].series[1].cells[0]
    assert cell.against_baseline is not None
    assert (cell.against_baseline.text, cell.against_baseline.better) == ("+61 %", False)
    assert sentence(made).startswith("psync 61 % higher mean latency than io_uring (95 % CI +5")


def test_any_series_can_be_the_baseline(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(CompareQuery("iodepth", ("ioengine",), baseline="psync"))
    assert [series.is_baseline for series in made.panels[0].series] == [False, True]
    with pytest.raises(CompareRefused) as caught:
        compare(CompareQuery("iodepth", ("ioengine",), baseline="libaio"))
    assert "Use io_uring, psync." in caught.value.message


def test_a_panel_factor_makes_charts_that_have_levels_and_baseline_in_common(lab: Lab) -> None:
    measure_engines(lab)
    lab.measure(50.0, 51.0, pattern="randwrite", direction="write", iodepth=1)
    made = compare(CompareQuery("iodepth", ("ioengine",), panel="pattern"))
    assert [(panel.name, len(panel.series)) for panel in made.panels] == [("randread", 2), ("randwrite", 1)]
    assert made.single_factor


def test_sizes_are_in_order_and_names_say_the_factor_of_a_number(lab: Lab) -> None:
    lab.measure(1.0, 2.0, block_size=131072, iodepth=4)
    lab.measure(1.0, 2.0, block_size=4096, iodepth=4)
    made = compare(CompareQuery("block_size", ("iodepth",)))
    assert [level.text for level in made.levels] == ["4 KiB", "128 KiB"]
    assert made.panels[0].series[0].name == "Queue depth 4"


def test_what_varies_inside_a_point_is_pooled_and_said(lab: Lab) -> None:
    for engine in ("io_uring", "psync"):
        lab.measure(10.0, 11.0, ioengine=engine, numjobs=1)
        lab.measure(40.0, 41.0, ioengine=engine, numjobs=4)
    made = compare(ENGINES)
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.POOLED, "numjobs")]
    assert "Jobs has several levels in one point (1, 4)" in made.differs[0].text
    assert not made.single_factor
    assert made.verdict == "Series differ in I/O engine alone; pooled over Jobs."


def test_reads_and_writes_of_one_mix_are_not_averaged_silently(lab: Lab) -> None:
    lab.measure(10.0, 11.0, pattern="randrw", read_percent=70)
    lab.measure(4.0, 5.0, pattern="randrw", read_percent=70, direction="write")
    assert [d.name for d in compare(ENGINES).differs] == ["direction"]


def test_that_one_pattern_reads_and_the_other_writes_follows_from_comparing_patterns(lab: Lab) -> None:
    lab.measure(10.0, 11.0, pattern="randread")
    lab.measure(4.0, 5.0, pattern="randwrite", direction="write")
    patterns = CompareQuery("iodepth", ("pattern",))
    made = compare(patterns)
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "direction")]
    assert made.differs[0].text.endswith("it follows from Pattern.")
    assert made.single_factor
    lab.measure(7.0, 8.0, pattern="randrw", read_percent=50, iodepth=1)
    lab.measure(5.0, 6.0, pattern="randrw", read_percent=50, iodepth=64, direction="write")
    assert (DifferenceKind.CONFOUNDED, "direction") in {(d.kind, d.name) for d in compare(patterns).differs}


def test_what_differs_between_series_confounds_them(lab: Lab) -> None:
    lab.measure(10.0, 11.0, numjobs=1)
    lab.measure(40.0, 41.0, ioengine="psync", numjobs=4, facts=FACTS | {"kernel.release": "6.18.0"}, fio="fio-3.36")
    made = compare(ENGINES)
    assert {d.name: d.kind for d in made.differs} == dict.fromkeys(
        ("numjobs", "kernel.release", "engine version"), DifferenceKind.CONFOUNDED
    )
    assert made.verdict == "Confounded by Jobs, kernel.release, engine version."
    assert "(io_uring: 6.1.0; psync: 6.18.0)" in next(d.text for d in made.differs if d.name == "kernel.release")


def test_the_compared_setting_as_observed_does_not_confound(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none")
    lab.measure(20.0, 21.0, scheduler="mq-deadline", facts=FACTS | {"device.scheduler": "mq-deadline"})
    made = compare(CompareQuery("iodepth", ("scheduler",)))
    assert made.differs == ()
    assert made.single_factor


def test_what_the_kernel_sets_along_with_the_compared_setting_is_said_and_does_not_confound(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none", facts=FACTS | {"device.loop0.nr_requests": "128"})
    lab.measure(20.0, 21.0, scheduler="bfq", facts=FACTS | {"device.loop0.nr_requests": "256"})
    made = compare(CompareQuery("iodepth", ("scheduler",)))
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "device.nr_requests")]
    assert made.differs[0].text == (
        "device.nr_requests differs between series (bfq: 256; none: 128); the kernel sets it along with I/O scheduler."
    )
    assert made.single_factor
    made = compare(CompareQuery("scheduler"))
    assert made.differs[0].kind is DifferenceKind.ALONG_X


def test_layouts_are_compared_like_any_factor_and_what_they_make_of_the_drives_follows(lab: Lab) -> None:
    made = {"xfs": ("single / xfs", "xfs", "128"), "btrfs": ("2 drives / btrfs", "btrfs", "4096")}
    for line, kind, ahead in made.values():
        facts = FACTS | {"stream.0.file_system": kind, "device.loop0.read_ahead_kb": ahead, "layout": line}
        lab.measure(10.0, 11.0, layout=line, facts=facts)
    found = compare(CompareQuery("iodepth", ("layout",)))
    assert {series.name for series in found.panels[0].series} == {line for line, _, _ in made.values()}
    assert {(d.kind, d.name) for d in found.differs} == {
        (DifferenceKind.FOLLOWS, "file_system"),
        (DifferenceKind.FOLLOWS, "device.read_ahead_kb"),
    }
    assert found.single_factor


def test_firmware_that_changed_between_runs_confounds(lab: Lab) -> None:
    second = Lab(lab.target, number=2)
    lab.measure(10.0, 11.0, facts=FACTS | {"device.nvme0n1.firmware": "A"})
    second.measure(20.0, 21.0, ioengine="psync", facts=FACTS | {"device.nvme0n1.firmware": "B"})
    assert [d.name for d in compare(ENGINES).differs] == ["run", "device.firmware"]


def test_what_follows_x_in_every_series_is_said_and_does_not_confound(lab: Lab) -> None:
    for engine in ("io_uring", "psync"):
        lab.measure(10.0, 11.0, ioengine=engine, iodepth=1, numjobs=1)
        lab.measure(40.0, 41.0, ioengine=engine, iodepth=2, numjobs=2)
    made = compare(ENGINES)
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.ALONG_X, "numjobs")]
    assert made.single_factor


def test_repeats_in_several_runs_are_repeats_and_series_from_different_runs_are_not_alike(lab: Lab) -> None:
    second = Lab(lab.target, number=2)
    lab.measure(10.0)
    second.measure(11.0)
    lab.measure(20.0, ioengine="psync")
    assert compare(ENGINES).differs == ()
    second.measure(5.0, ioengine="libaio", iodepth=8)
    lab.measure(6.0, iodepth=8)
    assert [(d.kind, d.name) for d in compare(ENGINES).differs] == [(DifferenceKind.CONFOUNDED, "run")]


def test_targets_can_be_the_series_and_their_serials_do_not_confound(lab: Lab) -> None:
    other = a_target(lab.target.host, "fast")
    lab.measure(10.0, 11.0, facts=FACTS | {"device.sda.serial": "A", "stream.0.device": "sda"})
    lab.measure(20.0, 21.0, target=other, facts=FACTS | {"device.sdb.serial": "B", "device.scheduler": "bfq"})
    made = compare(CompareQuery("iodepth", ("target",)))
    assert [series.name for series in made.panels[0].series] == ["a/fast", "a/scratch"]
    assert [d.name for d in made.differs] == ["device.scheduler"]


def test_two_factors_together_are_no_single_factor(lab: Lab) -> None:
    lab.measure(10.0, 11.0, scheduler="none")
    lab.measure(20.0, 21.0, scheduler="bfq", ioengine="psync")
    made = compare(CompareQuery("iodepth", ("ioengine", "scheduler")))
    assert [series.key for series in made.panels[0].series] == ["io_uring,none", "psync,bfq"]
    assert made.verdict == "Series differ in I/O engine and I/O scheduler together."


def test_a_percentile_that_is_not_supported_leaves_its_result_out(lab: Lab) -> None:
    lab.measure(10.0, 11.0)
    made = compare(CompareQuery("iodepth", metric="latency_p999"))
    assert made.results == 0
    assert "2 results are left out: too few I/Os for p99.9 latency." in made.notes


def test_percentiles_above_17_s_are_not_said_to_be_equal(lab: Lab) -> None:
    """fio's histogram ends there: one may be 18 s and the other 60 s."""
    for ioengine in ("io_uring", "psync"):
        for result in lab.measure(10.0, 10.0, 10.0, 10.0, ioengine=ioengine):
            Result.objects.filter(pk=result.pk).update(p99_ns=LAST_BUCKET_NS)
    made = compare(CompareQuery("iodepth", ("ioengine",), metric="latency_p99"))
    assert not any("no difference" in series.sentence for series in made.panels[0].series)
    assert "A percentile above 17 s counts as 17 s, because fio's histogram ends there." in made.notes


def test_no_results_are_no_error() -> None:
    made = compare(CompareQuery("iodepth", ("ioengine",)))
    assert (made.results, made.panels, made.levels) == (0, (), ())
    assert "No valid results match." in made.notes


def test_it_takes_six_queries_however_much_there_is(
    lab: Lab, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    measure_engines(lab)
    lab.measure(1.0, 2.0, iodepth=64, facts={"kernel.release": "5"})
    with django_assert_num_queries(6):
        compare(ENGINES)


def test_it_can_be_sent_as_json(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(ENGINES)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Comparison) == made


def test_a_query_is_read_from_an_address() -> None:
    pairs = [("x", "iodepth"), ("series", "ioengine,scheduler"), ("panel", ""), ("metric", "latency_p99"), ("run", "3")]
    read = read_query([*pairs, ("factor.block_size", "4k")])
    assert (read.x, read.series, read.panel, read.metric) == ("iodepth", ("ioengine", "scheduler"), "", "latency_p99")
    assert (read.results.runs, read.results.factors) == ((3,), {"block_size": (4096,)})


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([], "compare_x_missing"),
        ([("x", "blocksize")], "compare_factor_unknown"),
        ([("x", "iodepth"), ("series", "iodepth")], "compare_factor_twice"),
        ([("x", "iodepth"), ("metric", "speed")], "compare_metric_unknown"),
        ([("x", "fact."), ("metric", "speed")], "compare_factor_unknown"),
        ([("x", "iodepth"), ("ratios", "odds")], "compare_ratios_unknown"),
        ([("x", "iodepth"), ("series", "ioengine,numjobs,direct,sync")], "compare_too_many"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_in_words(pairs: list[tuple[str, str]], code: str) -> None:
    with pytest.raises(CompareRefused) as caught:
        read_query(pairs)
    assert caught.value.code == code
    with pytest.raises(FilterRefused):
        read_query([("x", "iodepth"), ("colour", "red")])


def test_drives_models_and_repeats_can_be_told_apart(lab: Lab) -> None:
    other = a_target(a_host("b"), "scratch", model="FAST", serial="S2")
    lab.measure(10.0, 11.0)
    lab.measure(20.0, 21.0, target=other)
    by_drive = compare(CompareQuery("iodepth", ("serial",)))
    assert [(s.key, s.name) for s in by_drive.panels[0].series] == [
        ("S2", "FAST S2"), ("a/scratch", "a/scratch (no serial)"),
    ]  # fmt: skip
    assert by_drive.single_factor
    lab.measure(10.0, 11.0, target=a_target(lab.target.host, "other"))
    assert len(compare(CompareQuery("iodepth", ("serial",))).panels[0].series) == 3
    by_model = compare(CompareQuery("iodepth", ("model",)))
    assert [(d.kind, d.name) for d in by_model.differs] == [(DifferenceKind.POOLED, "target")]
    by_repeat = compare(CompareQuery("repeat", ("host",)))
    assert [level.text for level in by_repeat.levels] == ["repeat 1", "repeat 2"]


def test_a_fact_of_the_configuration_can_be_what_is_compared(lab: Lab) -> None:
    lab.measure(10.0, 11.0, facts=FACTS | {"device.nvme0n1.firmware": "A"})
    lab.measure(20.0, 21.0, facts=FACTS | {"device.nvme0n1.firmware": "B"})
    made = compare(CompareQuery("iodepth", ("fact.device.firmware",)))
    assert [series.name for series in made.panels[0].series] == ["A", "B"]
    assert made.verdict == "Single-factor: series differ in device.firmware alone."


def test_configurations_that_differ_in_one_fact_are_single_factor_and_in_two_are_not(lab: Lab) -> None:
    lab.measure(10.0, 11.0)
    lab.measure(20.0, 21.0, facts=FACTS | {"kernel.release": "6.18.0"})
    made = compare(CompareQuery("iodepth", ("configuration",)))
    assert made.single_factor
    assert [(d.kind, d.name) for d in made.differs] == [(DifferenceKind.FOLLOWS, "kernel.release")]
    assert made.differs[0].text.endswith("the only fact in which the configurations differ.")
    lab.measure(30.0, 31.0, facts={"kernel.release": "6.19.0", "device.scheduler": "bfq"})
    assert compare(CompareQuery("iodepth", ("configuration",))).verdict.startswith("Confounded by ")


def test_numbers_in_doubt_say_why(lab: Lab) -> None:
    lab.measure(10.0, 10.1, iodepth=1)
    lab.measure(10.0, iodepth=2)
    lab.measure(10.0, 30.0, iodepth=4)
    lab.measure(10.0, 10.1, iodepth=8, invalid=True)
    query = read_query([("x", "iodepth"), ("invalid", "1")])
    doubts = [cell.doubts for cell in compare(query).panels[0].series[0].cells]
    assert doubts == [
        (),
        ("n = 1: its spread is unknown",),
        ("noisy (±57,327 %)",),
        ("includes invalid results: marked as invalid",),
    ]


def test_the_form_of_ratios_can_be_chosen(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(read_query([("x", "iodepth"), ("series", "ioengine"), ("ratios", "ratio")]))
    assert made.ratio_as == "ratio"
    assert [cell.against_baseline.text for cell in made.panels[0].series[1].cells if cell.against_baseline] == [
        "×0.62",
        "×0.80",
    ]


def test_a_factor_that_is_to_be_in_two_places_is_refused_in_words() -> None:
    with pytest.raises(CompareRefused, match="Queue depth is chosen for both the x axis and charts"):
        read_query([("x", "iodepth"), ("panel", "iodepth")])


def measure_mix(lab: Lab, read: float, write: float, repeat: int = 1) -> None:
    """One trial of a mix of 70 % reads, with a result for each direction."""
    (result,) = lab.measure(read, pattern="randrw", read_percent=70)
    Trial.objects.filter(pk=result.trial_id).update(repeat=repeat)
    result.pk, result.direction, result.iops, result.bytes_per_s = None, "write", write, write * 4096
    result.latency_mean_ns = 1e9 / write
    result.save()


@pytest.mark.parametrize(("metric", "of_one"), [("iops", 1), ("bytes_per_s", 4096)])
def test_iops_and_bandwidth_of_a_mix_are_the_sum_of_its_reads_and_writes(lab: Lab, metric: str, of_one: int) -> None:
    measure_mix(lab, 700.0, 300.0)
    measure_mix(lab, 707.0, 303.0, repeat=2)
    made = compare(CompareQuery("iodepth", ("ioengine",), metric=metric))
    assert [panel.series[0].cells[0].summary.values for panel in made.panels] == [(1000.0 * of_one, 1010.0 * of_one)]
    assert made.differs == ()
    assert any(
        note.startswith("For mixed workloads, ") and note.endswith("is the sum of both directions.")
        for note in made.notes
    )


def test_one_direction_of_a_mix_can_be_chosen_and_all_can_be_told_apart(lab: Lab) -> None:
    measure_mix(lab, 700.0, 300.0)
    writes = compare(read_query([("x", "iodepth"), ("direction", "write")]))
    assert [panel.series[0].cells[0].summary.values for panel in writes.panels] == [(300.0,)]
    told = compare(CompareQuery("iodepth", ("direction",)))
    assert [(s.name, s.cells[0].summary.values) for s in told.panels[0].series] == [
        ("read", (700.0,)),
        ("write", (300.0,)),
    ]


@pytest.mark.parametrize(("panel", "names"), [("", ["read", "write"]), ("pattern", ["randrw, read", "randrw, write"])])
def test_latencies_of_a_mix_have_a_chart_for_each_direction(lab: Lab, panel: str, names: list[str]) -> None:
    measure_mix(lab, 700.0, 300.0)
    made = compare(CompareQuery("iodepth", ("ioengine",), panel=panel, metric="latency_mean"))
    assert [panel.name for panel in made.panels] == names
    assert [panel.series[0].cells[0].summary.mean for panel in made.panels] == [1e9 / 700, 1e9 / 300]
    assert made.differs == ()
    assert made.notes[0] == "Latencies are not added up, so each direction has its own chart."


def test_the_latency_view_keeps_directions_of_a_mix_apart_whatever_the_metric(lab: Lab) -> None:
    measure_mix(lab, 700.0, 300.0)
    selected = select(CompareQuery("iodepth", ("ioengine",)))
    assert list(chart_points(selected).values()) == ["Queue depth 1"]
    assert len(chart_point(selected).result_ids) == 2
    apart = for_latencies(selected)
    assert list(chart_points(apart).values()) == ["read · Queue depth 1", "write · Queue depth 1"]
    assert [len(chart_point(apart, key).result_ids) for key in chart_points(apart)] == [1, 1]


def test_results_that_may_not_be_the_speed_of_the_drive_are_doubted(lab: Lab) -> None:
    first, second, _ = lab.measure(10.0, 11.0, 12.0, direct=True)
    Result.objects.filter(pk=first.pk).update(steadiness="drifting", steadiness_numbers={"seconds": 60, "drift": 0.2})
    Result.objects.filter(pk=second.pk).update(steadiness="steady", device_share=0.07)
    made = compare(ENGINES)
    (cell,) = made.panels[0].series[0].cells
    assert cell.doubts[:2] == ("drifting (1 of 3)", "reads not from the drive (1 of 3)")
    words = "May not be the speed of the drive: 1 drifting, 1 reads not from the drive, of 3 results."
    assert any(note.startswith(words) for note in made.notes)


def test_reads_of_a_purged_drive_are_doubted_as_such(lab: Lab) -> None:
    lab.measure(10.0, direct=True, facts=FACTS | {"stream.0.drive_state": "purged"})
    (cell,) = compare(ENGINES).panels[0].series[0].cells
    assert cell.doubts[0] == "reads of a purged drive (1 of 1)"
