from dataclasses import replace
from datetime import timedelta

import pytest

from webapp.analysis.answer import BaselineRatio, Conclusion, Sentence
from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery, read_query
from webapp.analysis.tests.measuring import ENGINES, measure_engines, sentence
from webapp.analysis.tests.orders import alternate
from webapp.analysis.words import RATIO, interval, shown, unclear
from webapp.core.statistics import Ratio
from webapp.results.models import Result
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_its_sentences_agree_with_the_numbers(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0, 100.0)
    lab.measure(62.0, 62.0, 62.0, 62.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made) == "psync is 38 % slower than io_uring (95 % CI −39 % to −37 %, n = 4)."
    assert (made.single_factor, made.verdict) == (True, "Single-factor: series differ in I/O engine alone.")


def test_a_headline_has_claim_certainty_and_doubt_as_fields(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    series = compare(ENGINES).panels[0].series[1]
    assert series.certainty.startswith("95 % CI")
    assert series.doubt.startswith("may be drift")
    assert series.headline == Sentence((series.claim, series.certainty), series.doubt).texts["sentence"]


def test_several_points_are_summarised_by_average_and_range(lab: Lab) -> None:
    measure_engines(lab)
    said = sentence(compare(ENGINES))
    assert said == (
        "psync is 30 % slower than io_uring (95 % CI −31 % to −28 %, n = 3), 2 points "
        "(certain at both points: −38 % to −20 %)."
    )


def test_no_difference_is_claimed_only_if_the_whole_interval_is_inside_the_margin(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(101.0, 100.0, 100.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made) == ("psync and io_uring differ by less than 5 % in IOPS (95 % CI −3.4 % to +4.3 %, n = 3).")
    against = made.panels[0].series[1].cells[0].against_baseline
    assert against is not None
    assert (against.better, against.equal) == (None, True)
    narrower = compare(read_query([("x", "iodepth"), ("series", "ioengine"), ("margin", "2")]))
    assert narrower.margin == 0.02
    assert sentence(narrower) == (
        "The repeats cannot tell psync from io_uring in IOPS (95 % CI −3.4 % to +4.3 %, n = 3)."
    )


def test_a_difference_inside_the_margin_is_reported_as_such(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0, 100.0)
    lab.measure(101.0, 102.1, 103.0, 102.0, ioengine="psync")
    alternate(lab.run)
    assert sentence(compare(ENGINES)).endswith(", n = 4), within ±5 %.")


def test_repeats_with_a_wide_interval_do_not_show_no_difference(lab: Lab) -> None:
    lab.measure(40.0, 100.0, 160.0)
    lab.measure(101.0, 50.0, 152.0, ioengine="psync")
    said = sentence(compare(ENGINES))
    assert said.startswith("The repeats cannot tell psync from io_uring in IOPS (95 % CI −8")
    assert "differ by less" not in said


def test_a_series_that_always_ran_last_may_have_drifted(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    made = compare(ENGINES)
    assert sentence(made).endswith("). This may be drift: psync always ran after io_uring.")
    against = made.panels[0].series[1].cells[0].against_baseline
    assert against is not None
    assert (against.better, made.panels[0].series[1].order) == (None, "after")
    assert any("always ran in the same order" in note for note in made.notes)


def test_two_repeats_never_make_a_claim(lab: Lab) -> None:
    lab.measure(100.0, 100.0)
    lab.measure(50.0, 50.0, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made).startswith("psync showed ×0.50 the IOPS of io_uring (95 % CI ×0.")
    assert sentence(made).endswith(", n = 2: too few repeats).")
    assert made.panels[0].series[1].cells[0].against_baseline.better is None  # type: ignore[union-attr]


def test_one_point_far_from_the_others_is_set_apart_from_the_mean(lab: Lab) -> None:
    for depth in range(1, 15):
        psync = (1.0, 1.0, 1.0) if depth == 3 else (101.0, 100.0, 100.0)
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(*psync, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    said = sentence(compare(ENGINES))
    assert said.startswith("psync and io_uring differ by less than 5 % in IOPS (95 % CI ×0.96 to ×1.05, n = 3)")
    assert said.endswith(", 13 of 14 points; ×0.01 at queue depth 3.")


def test_all_points_that_are_set_apart_are_named(lab: Lab) -> None:
    far = {3: 1.0, 8: 2.0, 13: 3.0, 18: 4.0, 23: 5.0}
    for depth in range(1, 25):
        psync = [far[depth]] * 3 if depth in far else [101.0, 100.0, 100.0]
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(*psync, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    parts = sentence(compare(ENGINES)).split("; ")
    assert [part.partition(" at ")[0] for part in parts[-4:]] == ["×0.01", "×0.02", "×0.03", "×0.04 to ×0.05"]
    assert all(depth in parts[-1] for depth in ("18", "23"))


def test_a_point_with_failed_repeats_is_set_apart_from_the_mean(lab: Lab) -> None:
    for depth in (1, 2, 4):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(*(62.0, 62.0, 62.0)[: depth if depth == 1 else 3], iodepth=depth, ioengine="psync")
    alternate(lab.run)
    said = sentence(compare(ENGINES))
    assert said.startswith("psync is 38 % slower than io_uring (95 % CI −40 % to −36 %, n = 3), 2 of 3 points (certain")
    assert said.endswith("; ×0.62 at queue depth 1 (n = 1).")


def test_a_zero_is_shown_and_not_averaged(lab: Lab) -> None:
    for depth in (1, 2):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(62.0, 62.0, 62.0, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    Result.objects.filter(point__ioengine="psync", point__iodepth=2).update(iops=0.0)
    made = compare(ENGINES)
    assert "; not compared at queue depth 2: a value is 0." in sentence(made)
    cell = made.panels[0].series[1].cells[1]
    assert (cell.summary.low, cell.spread_text, cell.doubts) == (None, "n = 3", ("0 in 3 of 3 repeats",))
    assert cell.against_baseline is None


def test_missing_points_are_counted(lab: Lab) -> None:
    for depth in (1, 2, 4):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
    lab.measure(62.0, 62.0, 62.0, iodepth=2, ioengine="psync")
    made = compare(ENGINES)
    assert "2 of 6 points were not measured: they have no valid result." in made.notes
    assert ", 1 common point of 3" in sentence(made)


def test_points_without_the_metric_are_not_said_to_have_failed(lab: Lab) -> None:
    for depth in (1, 2):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(62.0, 63.0, 64.0, iodepth=depth, ioengine="psync")
    Result.objects.filter(point__ioengine="psync", point__iodepth=1).update(p99_ns=None)
    lab.measure(99.0, iodepth=4)
    notes = compare(replace(ENGINES, metric="latency_p99")).notes
    assert "1 of 6 points has no value: its results do not state p99 latency." in notes
    assert "1 of 6 points was not measured: it has no valid result." in notes
    assert "3 results are left out: too few I/Os for p99 latency." in notes


def test_results_without_ios_do_not_have_too_few_of_them(lab: Lab) -> None:
    lab.measure(1.0, engine="file_copy", direction="none")
    Result.objects.update(p99_ns=None, ios=None)
    lab.measure(1.0)
    notes = compare(replace(ENGINES, metric="latency_p99")).notes
    assert "1 result is left out: it has no value for p99 latency." in notes


def test_a_certain_difference_that_is_rounded_away_is_none(lab: Lab) -> None:
    """Long trials can tell 0.04 % apart, and the sentence cannot show it."""
    for engine, iops in (("io_uring", 100_000.0), ("psync", 100_040.0)):
        lab.measure(*[iops + noise for noise in (0.0, 1.0, 2.0, 1.0, 0.0)], ioengine=engine)
    Result.objects.update(runtime_ms=600_000, ios=60_000_000)
    alternate(lab.run)
    said = sentence(compare(ENGINES))
    assert said.startswith("psync and io_uring differ by less than 5 % in IOPS (95 % CI 0.0 % to +0.1 %, n = 5)")


def test_one_series_of_means_over_other_workloads_has_no_conclusion(lab: Lab) -> None:
    """The second level of x lacks the slow block size."""
    lab.measure(999.0, 1000.0, 1001.0, iodepth=1)
    lab.measure(9.9, 10.0, 10.1, iodepth=1, block_size=2**20)
    lab.measure(999.0, 1000.0, 1001.0, iodepth=32)
    (series,) = compare(CompareQuery("iodepth", ())).panels[0].series
    assert series.sentence == ""


def test_a_ratio_is_that_of_the_values_also_if_a_run_has_one_series_only(lab: Lab) -> None:
    """A ratio of the run that measured both would be ×2.00 beside values of 100 and 141."""
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(198.0, 200.0, 202.0, ioengine="psync")
    Lab(lab.target, number=2).measure(99.0, 100.0, 101.0, ioengine="psync")
    (uring,), (psync,) = (series.cells for series in compare(ENGINES).panels[0].series)
    assert psync.against_baseline is not None
    assert psync.against_baseline.ratio.value == pytest.approx(psync.summary.mean / uring.summary.mean)
    assert psync.against_baseline.ratio.value == pytest.approx(2**0.5)
    assert psync.against_baseline.better is None


def test_several_points_measured_once_are_summarised_by_mean_and_range(lab: Lab) -> None:
    for depth, psync in ((1, 200.0), (2, 400.0), (4, 800.0)):
        lab.measure(100.0, iodepth=depth)
        lab.measure(psync, iodepth=depth, ioengine="psync")
    said = sentence(compare(ENGINES))
    assert said == "psync showed ×4.00 the IOPS of io_uring (measured once), 3 points from ×2.00 to ×8.00."


def test_one_repeat_gives_no_interval(lab: Lab) -> None:
    lab.measure(100.0)
    lab.measure(150.0, ioengine="psync")
    made = compare(ENGINES)
    cell = made.panels[0].series[1].cells[0]
    assert (cell.summary.sd, cell.summary.low, cell.spread_text) == (None, None, "n = 1")
    against = cell.against_baseline
    assert against is not None
    assert (against.text, against.interval_text, against.better) == ("+50 %", "", None)
    assert sentence(made) == "psync showed 50 % higher IOPS than io_uring (100 → 150, measured once)."
    assert "2 of 2 points were measured once and have no interval." in made.notes


def test_a_column_that_doubles_is_written_in_ratios_throughout(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(259.0, 260.0, 261.0, ioengine="libaio")
    lab.measure(89.0, 90.0, 91.0, ioengine="psync")
    alternate(lab.run)
    texts = [against.text for s in compare(ENGINES).panels[0].series if (against := s.cells[0].against_baseline)]
    assert texts == ["×2.60", "×0.90"]
    assert sentence(compare(ENGINES)).startswith("libaio has ×2.60 the IOPS of io_uring (95 % CI ×2.5")


def test_lower_is_better_for_latency(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0)
    lab.measure(62.0, 62.0, 62.0, ioengine="psync")
    alternate(lab.run)
    made = compare(CompareQuery(x="iodepth", series=("ioengine",), metric="latency_mean"))
    cell = made.panels[0].series[1].cells[0]
    assert cell.against_baseline is not None
    assert (cell.against_baseline.text, cell.against_baseline.better) == ("+61 %", None)
    assert cell.against_baseline.conclusion is made.panels[0].series[1].conclusion is Conclusion.MAY_BE_MODES
    assert sentence(made).startswith("psync has 61 % higher mean latency than io_uring (95 % CI +5")


def test_the_form_of_ratios_can_be_chosen(lab: Lab) -> None:
    measure_engines(lab)
    made = compare(read_query([("x", "iodepth"), ("series", "ioengine"), ("ratios", "ratio")]))
    assert made.ratio_as == "ratio"
    assert [cell.against_baseline.text for cell in made.panels[0].series[1].cells if cell.against_baseline] == [
        "×0.62",
        "×0.80",
    ]


def test_percentages_above_1000_are_shown_as_factors(lab: Lab) -> None:
    lab.measure(1.0, 1.0, 1.0)
    lab.measure(6175.0, 6176.0, 6175.0, ioengine="psync")
    alternate(lab.run)
    made = compare(CompareQuery(x="iodepth", series=("ioengine",), baseline="io_uring", ratios="percent"))
    assert sentence(made).startswith("psync has ×6,180 the IOPS of io_uring")
    assert shown(11.0, "percent") == "+1,000 %"
    assert shown(11.02, "percent") == "×11.0"
    assert shown(0.38, "percent") == "−62 %"


def test_opposite_differences_are_named_and_not_averaged(lab: Lab) -> None:
    for depth, speed in ((1, 1.5), (2, 1.4), (4, 1.3), (8, 1.0), (16, 0.8)):
        lab.measure(*(1000.0 * depth * noise for noise in (0.999, 1.0, 1.001, 1.0)), iodepth=depth)
        values = (1000.0 * depth * speed * noise for noise in (1.001, 1.0, 0.999, 1.0))
        lab.measure(*values, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    made = compare(ENGINES)
    assert sentence(made) == (
        "psync is faster than io_uring at queue depth 1 to 4 (+30 % to +50 %), but slower at queue depth 16 (−20 %); "
        "no certain difference at 1 other point."
    )
    against = made.panels[0].series[1].against_baseline
    assert against is not None
    assert (against.better, against.equal) == (None, False)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.234, 1.236, "×1.23 to ×1.24"),
        (12.36, 12.44, "×12.3 to ×12.5"),
        (120.6, 121.4, "×120 to ×122"),
        (1234.0, 1236.0, "×1,230 to ×1,240"),
        (9.991, 9.998, "×9.99 to ×10.0"),
    ],
)
def test_an_interval_never_looks_narrower_than_it_is(low: float, high: float, text: str) -> None:
    assert interval(Ratio((low + high) / 2, low, high), RATIO) == text


def test_a_mean_over_points_that_disagree_has_their_range(lab: Lab) -> None:
    """The geometric mean of ×0.71 and ×1.41 is ×1.00, and one repeat is no evidence of a difference."""
    for depth, value in ((1, 71.0), (2, 141.0), (4, 100.0)):
        lab.measure(100.0, iodepth=depth)
        if depth < 4:
            lab.measure(value, iodepth=depth, ioengine="psync")
    said = sentence(compare(ENGINES))
    assert "measured once), 2 common points of 3 from −29 % to +41 %" in said


def test_one_level_of_another_factor_in_each_series_confounds_but_is_compared(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0, numjobs=1)
    lab.measure(50.0, 50.0, 50.0, numjobs=4, ioengine="psync")
    made = compare(ENGINES)
    assert made.warnings == ()
    assert made.panels[0].series[1].against_baseline is not None


def test_the_order_of_imports_without_a_time_is_unknown() -> None:
    for drive, factor in (("A", 1), ("B", 3)):
        rows = "".join(f"randread,4k,1,{factor * iops}\n" for iops in (1000, 1001, 1002))
        an_import(title=drive, drive=drive, text=f"pattern,block_size,iodepth,iops\n{rows}")
    made = compare(read_query([("x", "iodepth"), ("series", "model"), ("baseline", "A")]))
    assert sentence(made).endswith("This may be drift: imported files do not state when they were measured.")
    assert not any("always ran in the same order" in note for note in made.notes)


@pytest.mark.parametrize(
    ("conclusion", "low", "why"),
    [
        (Conclusion.MAY_BE_DRIFT, 1.01, "May be drift"),
        (Conclusion.NONE, 0.99, "May be chance."),
        (Conclusion.NONE, 1.01, "May be chance: a claim is stricter than this interval of 95 %. All"),
    ],
)
def test_a_ratio_without_a_colour_says_why(conclusion: Conclusion, low: float, why: str) -> None:
    against = BaselineRatio(
        ratio=Ratio(1.1, low, 1.2), conclusion=conclusion, better=None, equal=False, p=0.01, n=3, text="",
        interval_text="",
    )  # fmt: skip
    assert unclear(against).startswith(why)


def test_charts_and_points_are_named_with_their_factor(lab: Lab) -> None:
    """`32` alone does not say of what, and “none is faster” has no subject."""
    for scheduler in ("none", "kyber"):
        for depth in (1, 32):
            lab.measure(99.0 * depth, 100.0 * depth, 101.0 * depth, iodepth=depth, scheduler=scheduler)
    made = compare(CompareQuery(x="block_size", series=("scheduler",), panel="iodepth"))
    assert [panel.name for panel in made.panels] == ["Queue depth 1", "Queue depth 32"]
    assert [series.name for series in made.panels[0].series] == ["kyber", "I/O scheduler none"]
    assert [series.key for series in made.panels[0].series] == ["kyber", "none"]
    made = compare(CompareQuery(x="iodepth", series=("scheduler",), panel="block_size"))
    assert [panel.name for panel in made.panels] == ["4 KiB"]


def test_points_without_a_ratio_are_listed_with_one_reason(lab: Lab) -> None:
    for depth in (1, 2, 4, 8):
        lab.measure(99.0, 100.0, 101.0, iodepth=depth)
        lab.measure(62.0, 62.0, 62.0, iodepth=depth, ioengine="psync")
    alternate(lab.run)
    Result.objects.filter(point__ioengine="psync", point__iodepth__in=(2, 8)).update(iops=0.0)
    assert sentence(compare(ENGINES)).count("a value is 0") == 1


def test_points_that_may_be_drift_are_not_named_if_the_mean_is_not_certain(lab: Lab) -> None:
    for depth, speeds in ((1, (0.9, 1.1, 0.9, 1.1)), (2, (0.9, 1.1, 0.9, 1.1)), (4, (1.35, 1.35, 1.35, 1.35))):
        lab.measure(100.0, 100.1, 99.9, 100.0, iodepth=depth)
        lab.measure(*(100.0 * speed for speed in speeds), iodepth=depth, ioengine="psync")
    drifting = compare(ENGINES)
    assert drifting.panels[0].series[1].order == "after"
    assert drifting.panels[0].series[1].conclusion is Conclusion.NONE
    assert "certain at" not in sentence(drifting)
    alternate(lab.run)
    assert "certain at 1 point:" in sentence(compare(ENGINES))


def test_a_run_of_one_series_between_those_of_the_other_is_no_fixed_order() -> None:
    """Run 2 measured both engines. psync was also measured in run 1, and io_uring in run 3."""
    target = a_target(a_host("a"), "scratch")
    speeds = {"psync": (150.0, 151.0, 149.0), "io_uring": (100.0, 101.0, 99.0)}
    for number, engines in ((1, ("psync",)), (2, ("io_uring", "psync")), (3, ("io_uring",))):
        lab = Lab(target, number=number)
        for engine in engines:
            lab.measure(*speeds[engine], ioengine=engine)
        for result in lab.run.results.all():
            later = timedelta(hours=number)
            Result.objects.filter(pk=result.pk).update(measured_at=result.measured_at + later)

    def order(runs: str) -> str:
        query = [("x", "iodepth"), ("series", "ioengine"), ("baseline", "io_uring"), ("run", runs)]
        return compare(read_query(query)).panels[0].series[1].order

    assert order("2") == "after"
    assert order("1,3") == "before"
    assert order("1,2") == order("2,3") == order("1,2,3") == ""


def test_single_values_never_claim(lab: Lab) -> None:
    lab.measure(32_500.0)
    lab.measure(32_500.0, ioengine="psync")
    assert sentence(compare(ENGINES)).startswith("psync showed the same IOPS as io_uring (")
    Result.objects.filter(point__ioengine="psync").update(iops=32_501.0)
    assert sentence(compare(ENGINES)).startswith("psync showed almost the same IOPS as io_uring (")


def test_two_repeats_are_too_few_to_compare_levels_of_x(lab: Lab) -> None:
    for depth in (1, 32):
        lab.measure(99.0 * depth, 101.0 * depth, iodepth=depth)
    said = sentence(compare(CompareQuery(x="iodepth")))
    assert said.endswith("(n = 2: too few repeats).")
