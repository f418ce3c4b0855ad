"""Each kind of finding fires on a table that shows it, and stays silent on one that does not."""

import math
from collections.abc import Mapping
from time import process_time

import numpy as np
import pytest
from msgspec.structs import replace

from webapp.analysis.answer import (
    Comparison,
    Difference,
    DifferenceKind,
    FindingKind,
)
from webapp.analysis.findings import findings
from webapp.analysis.findings.curves import Noise
from webapp.analysis.findings.tests.made import Values, found, made
from webapp.analysis.words import apart
from webapp.hosts.inventory.links import read_link
from webapp.results.metrics import METRICS

K = FindingKind


def kinds(comparison: Comparison) -> list[FindingKind]:
    return [one.kind for one in found(comparison)]


DEPTHS = (1, 2, 4, 8, 16, 32)


def test_a_capped_drive_levels_off_where_and_at_what() -> None:
    (one,) = found(made(DEPTHS, {"": {"A": (458, 919, 1820, 2000, 2000, 2000)}}))
    assert (one.kind, one.level, round(one.value or 0), one.single) == (K.SATURATION, 3, 2000, True)
    assert one.sentence == "IOPS level off at 2.00k from queue depth 8 on."


@pytest.mark.parametrize(
    "values",
    [
        (458, 919, 1820, 3600, 7000, 13000),  # it rises to the end
        (1000, 1020, 980, 1010, 990, 1005),  # flat from the start: no limit was reached by load
        (100, 150, 210, 280, 360, 450),  # each step brings less, and none brings nothing
        (458, 919, 1820, 2000, 1500, 900),  # it falls again
    ],
)
def test_a_curve_without_a_limit_does_not_level_off(values: Values) -> None:
    assert K.SATURATION not in kinds(made(DEPTHS, {"": {"A": values}}))


def test_drives_that_stop_at_one_value_have_a_common_limit() -> None:
    """The IOPS of two SATA drives of different makers at depths 1 to 64."""
    intel = (8361, 16127, 28515, 41905, 49340, 52800, 52807)
    samsung = (16225, 32871, 50881, 52412, 52419, 52419, 52415)
    said = found(made((*DEPTHS, 64), {"": {"INTEL": intel, "SAMSUNG": samsung}}))
    assert said[0].kind is K.CEILING
    assert round(said[0].value or 0, -3) in (52000, 53000)
    assert "INTEL" in said[0].sentence
    assert "SAMSUNG" in said[0].sentence


def test_equal_drives_have_no_common_limit_but_level_off() -> None:
    values = (458, 919, 1820, 2000, 2000, 2000)
    assert kinds(made(DEPTHS, {"": {"A": values, "B": values}})) == [K.SATURATION, K.NO_EFFECT]


def test_more_jobs_bring_nothing_more_at_any_block_size() -> None:
    sizes, one = (512, 1024, 2048, 4096, 8192), (10e3, 9.8e3, 9.6e3, 9.3e3, 9e3)
    many = [3 * value for value in one]
    chart = made(sizes, {"": {"1": one, "10": many, "40": [1.01 * value for value in many]}}, x="size", by="numjobs")
    said = next(each for each in found(chart) if each.kind is K.NOTHING_MORE)
    assert said.sentence == (
        "More than 10 jobs do not change IOPS (within 5 % at all 5 points). 10 jobs reach ×3.00 the IOPS of 1 job."
    )
    rising = made(sizes, {"": {"1": one, "10": many, "40": [1.5 * v for v in many]}}, x="size", by="numjobs")
    assert K.NOTHING_MORE not in kinds(rising)


def test_iops_stop_at_small_blocks_and_bandwidth_at_large_ones() -> None:
    sizes = [512 * 2**n for n in range(12)]
    iops = [min(60000.0 - 20 * n, 1.8e9 / size) for n, size in enumerate(sizes)]
    said = [one for one in found(made(sizes, {"": {"A": iops}}, x="block_size")) if one.kind is K.SATURATION]
    assert sorted(one.sentence.partition(" at ")[0] for one in said) == ["Bandwidth levels off", "IOPS stay"]


def test_one_value_out_of_line_is_named_inside_and_at_an_end() -> None:
    smooth = [1000 * 1.5**n for n in range(14)]
    for place in (0, 6):
        values = [value * (0.1 if n == place else 1) for n, value in enumerate(smooth)]
        (one,) = found(made([2**n for n in range(14)], {"": {"A": values}}, x="iodepth"))
        assert (one.kind, one.level) == (K.OUTLIER, place)
    assert kinds(made([2**n for n in range(14)], {"": {"A": smooth}}, x="iodepth")) == [K.GROWTH]


def test_a_knee_is_no_outlier_and_a_cliff_is_not_either() -> None:
    cliff = (1000, 1010, 990, 1005, 100, 101, 99, 100)
    (one,) = found(made([2**n for n in range(8)], {"": {"A": cliff}}, x="size"))
    assert (one.kind, one.level) == (K.CLIFF, 4)


def test_a_stretch_that_collapses_and_recovers_is_a_gap() -> None:
    values = [1000 * 1.2**n * (0.05 if n in (4, 5, 6) else 1) for n in range(14)]
    gap = next(each for each in found(made([2**n for n in range(14)], {"": {"A": values}})) if each.kind is K.GAP)
    assert (gap.level, gap.marks[0].first, gap.marks[0].last) == (4, 4, 6)


def test_two_drives_change_places_and_equal_ones_do_not() -> None:
    first, second = (100, 180, 320, 500, 600, 640, 660, 670), (60, 120, 240, 480, 800, 1100, 1300, 1400)
    depths = (1, 2, 4, 8, 16, 32, 64, 128)
    repeated = [[(value * 0.99, value, value * 1.01) for value in each] for each in (first, second)]
    said = [one for one in found(made(depths, {"": {"A": repeated[0], "B": repeated[1]}})) if one.kind is K.CROSSING]
    assert [one.sentence for one in said] == [
        "A leads up to queue depth 4 (+67 % at most), B from queue depth 16 on (×2.09 at most)."
    ]
    assert said[0].level == 4
    once = [one for one in found(made(depths, {"": {"A": first, "B": second}})) if one.kind is K.CROSSING]
    assert [(one.single, one.level in (4, 5)) for one in once] == [(True, True)]
    near = [value * (1.01 if n % 2 else 0.99) for n, value in enumerate(first)]
    assert K.CROSSING not in kinds(made(depths, {"": {"A": first, "B": near}}))


def test_a_fall_at_each_level_is_a_trend_and_a_straight_line_says_its_step() -> None:
    fill = ("20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %")
    bandwidth = (1.15e9, 1.05e9, 865e6, 643e6, 416e6, 323e6, 249e6, 123e6, 104e6)
    (one,) = found(made(fill, {"": {"all": bandwidth}}, x="fact.fill level", metric="bytes_per_s"))
    assert (one.kind, one.sentence.partition(", most")[0]) == (
        K.TREND, "Bandwidth falls at each level, from 1.15 GB/s at queue depth 20 % to 104 MB/s at queue depth 100 % "
        "(×0.09)",
    )  # fmt: skip
    (line,) = found(made((0, 1, 2, 3, 4), {"": {"all": (30, 210, 347, 499, 647)}}, x="fact.blades"))
    assert (line.kind, round(line.value or 0)) == (K.LINEAR, 152)


def test_noise_of_the_repeats_silences_what_it_could_explain() -> None:
    quiet = [(value * 0.99, value, value * 1.01) for value in (100, 200, 400, 430, 435, 432)]
    noisy = [(value * 0.7, value, value * 1.4) for value in (100, 200, 400, 430, 435, 432)]
    assert K.SATURATION in kinds(made(DEPTHS, {"": {"A": quiet}}))
    assert K.SATURATION not in kinds(made(DEPTHS, {"": {"A": noisy}}))


def test_a_gain_in_one_chart_that_costs_in_another_is_a_trade_off() -> None:
    chart = made(
        (1, 2, 10),
        {
            "read": {"Read,default": (330, 189, 144), "Read,tuned": (900, 491, 463)},
            "write": {"Read,default": (331, 348, 290), "Read,tuned": (230, 240, 200)},
        },
        x="numjobs",
        by="test,fact.table",
    )
    (one,) = [each for each in found(chart) if each.kind is K.TRADE_OFF]
    assert one.sentence.startswith("tuned showed in IOPS against default: read ×")


def test_writes_among_reads_cost_more_than_their_share() -> None:
    reads, mixed = (1000, 2000, 4000, 5000), (700, 1000, 1600, 2000)
    chart = made((1, 2, 4, 8), {"randread": {"A": reads}, "randrw": {"A": mixed}})
    (cost,) = [one for one in found(chart) if one.kind is K.MIX_COST]
    assert (
        cost.sentence
        == "randrw: Writes among the reads cost 51 % of the IOPS of randread on average (lower at all 4 points, "
        "by up to 60 %)."
    )
    assert cost.single
    same = made((1, 2, 4, 8), {"randread": {"A": reads}, "randrw": {"A": [0.95 * v for v in reads]}})
    assert K.MIX_COST not in kinds(same)


def test_latencies_have_no_limits_but_places_to_change() -> None:
    values = (90e3, 91e3, 92e3, 150e3, 300e3, 600e3)
    chart = made(DEPTHS, {"": {"A": values}}, metric="latency_mean")
    assert K.SATURATION not in kinds(chart)


def test_two_labels_of_one_size_are_no_axis() -> None:
    labels = ("64 kB", "128 kB", "1 MB", "1000 kB", "2 MB", "4 MB")
    assert not found(made(labels, {"": {"A": (1, 2, 4, 1, 4, 4)}}, x="fact.strip size"))


def test_a_chart_without_values_or_with_one_level_says_nothing() -> None:
    assert not found(made((1,), {"": {"A": (5,)}}))
    empty = made(DEPTHS, {"": {"A": (1, 2, 3, 4, 5, 6)}})
    without = replace(empty, panels=(replace(empty.panels[0], series=()),))
    assert not found(without)


def test_few_repeats_are_a_lower_bound_of_the_noise_and_are_stated() -> None:
    values = (100.0, 200.0, 400.0, 430.0, 435.0, 432.0)
    alike: Values = [[values[0], values[0]], *values[1:]]
    apart: Values = [*values[:4], [300.0, 600.0], values[5]]
    (said,) = [one for one in found(made(DEPTHS, {"": {"A": alike}})) if one.kind is K.SATURATION]
    assert said.sentence.endswith("(n = 1 to 2: too few repeats).")
    assert not said.single
    assert K.SATURATION not in kinds(made(DEPTHS, {"": {"A": apart}}))


def test_a_level_without_a_place_that_is_as_high_leaves_no_peak() -> None:
    levels = ("8 kB", "64 kB", "256 kB", "1 MB", "2 MB/256 kB")
    values = (474.0, 1300.0, 1900.0, 1165.0, 1000.0)
    assert K.PEAK in kinds(made(levels, {"": {"A": values}}, x="fact.strip size"))
    tied = (*values[:4], 1880.0)
    assert K.PEAK not in kinds(made(levels, {"": {"A": tied}}, x="fact.strip size"))


def test_what_more_jobs_brought_is_said_without_values_out_of_line() -> None:
    sizes = [2**n for n in range(8)]
    one, many = [1000.0] * 8, [3000.0] * 8
    one[3] = 30.0
    chart = made(sizes, {"": {"1": one, "10": many, "40": many}}, x="size", by="numjobs")
    said = next(each for each in found(chart) if each.kind is K.NOTHING_MORE)
    assert said.size == pytest.approx(math.log(3))


def test_curves_that_fall_from_one_limit_say_between_which_values() -> None:
    sizes = [512 * 2**n for n in range(8)]
    iops = [60e3, 60e3, 60e3, 59.9e3, 40e3, 20e3, 10e3, 5e3]
    other = [value * 1.002 if n < 4 else value * 1.2 for n, value in enumerate(iops)]
    said = [one.sentence for one in found(made(sizes, {"": {"A": iops, "B": other}}, x="block_size"))]
    assert any("to between 5.00k and 6.00k at queue depth 65536" in sentence for sentence in said), said


READ_WRITE = ("read", "write")


def test_an_effect_is_said_for_reads_and_writes_apart_and_a_small_one_only_as_measured() -> None:
    chart = made(READ_WRITE, {"": {"off": (100, 100), "on": (300, 98)}}, x="fact.way", by="scheduler")
    (one,) = found(chart)
    assert (one.kind, one.single) == (K.EFFECT, True)
    assert one.sentence == "on showed in IOPS against off: read ×3.00, write −2.0 %."
    small = made(READ_WRITE, {"": {"off": (100, 100), "on": (131, 91)}}, x="fact.way", by="scheduler")
    assert kinds(small) == [K.RATIOS]


def test_shares_of_reads_are_not_held_against_each_other() -> None:
    values: dict[str, Values] = {"0": (100.0, 200.0), "100": (300.0, 600.0)}
    for by, is_said in (("ioengine", True), ("read_percent", False)):
        said = found(made((1, 4), {"randrw": values}, by=by))
        assert any("100 showed" in one.sentence for one in said) is is_said


def test_what_two_levels_share_is_said_once() -> None:
    (one,) = found(made(("a · 4 KiB · psync", "a · 4 KiB · uring"), {"": {"all": (300.0, 100.0)}}, x="fact.engine"))
    assert one.sentence.startswith("a · 4 KiB: psync showed")
    assert apart(["a · b", "a"]) == ("", ("a · b", "a"))


def test_few_repeats_of_one_application_are_no_effect_at_any_number_of_points() -> None:
    slow = [(80.0, 80.1)] * 4
    chart = made((1, 2, 4, 8), {"": {"A": [(100.0, 100.1)] * 4, "B": slow}}, by="scheduler")
    assert K.EFFECT not in kinds(chart)


def test_a_ratio_with_an_opposite_one_within_the_noise_is_no_trade_off() -> None:
    a, b = ([(99.0, 100.0, 101.0)] * 2, [(199.0, 200.0, 201.0), (98.9, 99.8, 100.8)])
    chart = made(READ_WRITE, {"": {"off": a, "on": b}}, x="fact.way", by="scheduler")
    assert kinds(chart) == [K.EFFECT]


def test_no_difference_is_bounded_by_repeats_and_only_measured_without_them() -> None:
    repeats = [(99.0, 100.0, 101.0), (49.5, 50.0, 50.5)]
    (bounded,) = found(made(READ_WRITE, {"": {"A": repeats, "B": repeats}}, x="fact.way", by="fact.backplane"))
    assert bounded.kind is K.NO_EFFECT
    assert "no difference beyond" in bounded.sentence
    (once,) = found(made(READ_WRITE, {"": {"A": (100, 90), "B": (101, 90)}}, x="fact.way", by="fact.backplane"))
    assert (once.kind, round(once.size, 3)) == (K.NO_EFFECT, 0.01)
    assert "stayed within 1.0 % of A" in once.sentence
    few = [(99.9, 100.1), (90.0,)]
    assert not found(made(READ_WRITE, {"": {"A": few, "B": few}}, x="fact.way", by="fact.backplane"))
    noisy = [(80.0, 100.0, 120.0), (40.0, 50.0, 60.0)]
    assert not found(made(READ_WRITE, {"": {"A": noisy, "B": noisy}}, x="fact.way", by="fact.backplane"))


def test_words_on_x_are_compared_over_all_series() -> None:
    words = ("one socket", "both sockets")
    table: dict[str, dict[str, Values]] = {"": {"small": (88, 139), "large": (98, 155)}}
    (effect,) = found(made(words, table, x="fact.cores", by="fact.buffer"))
    assert (effect.kind, effect.level, round(math.exp(effect.size), 2)) == (K.EFFECT, 1, 1.58)
    assert [(mark.series, mark.first, mark.last) for mark in effect.marks] == [(0, 1, 1), (1, 1, 1)]
    one_point: dict[str, dict[str, Values]] = {"": {"small": (88, 139), "large": (98, math.nan)}}
    against: dict[str, dict[str, Values]] = {"": {"small": (88, 139), "large": (155, 98)}}
    repeated: dict[str, dict[str, Values]] = {
        "": {"small": [(87, 88, 89), (138, 139, 140)], "large": [(97, 98, 99), (154, 155, 156)]}
    }
    for other in (one_point, against, repeated):
        assert not [each for each in found(made(words, other, x="fact.cores", by="fact.buffer")) if each.level == 1]


def test_what_else_differs_is_that_of_the_two_series() -> None:
    differs = (Difference(kind=DifferenceKind.CONFOUNDED, name="controller", label="Controller", text=""),)
    table: dict[str, dict[str, Values]] = {"": {"A": (100, 100), "B": (300, 300), "C": (900, 900)}}
    chart = replace(made(READ_WRITE, table, x="matched"), differs=differs)
    said = findings(chart, METRICS["iops"], between=lambda keys: differs if "C" in keys else ())
    assert {(one.about, "controller differs" in one.sentence) for one in said if one.kind is K.EFFECT} == {
        ("iops: B against A", False), ("iops: C against A", True), ("iops: B against C", True),
    }  # fmt: skip


def test_series_that_rise_together_are_stated_once() -> None:
    sizes = [13, 52, 144]
    rising: dict[str, Values] = {"A": (100, 250, 330), "B": (130, 310, 460)}
    (together,) = [one for one in found(made(sizes, {"": rising}, x="fact.pool")) if one.kind is K.TREND]
    assert ([mark.series for mark in together.marks], together.value) == ([0, 1], 460)
    apart: dict[str, Values] = {"A": (100, 250, 330), "B": (460, 310, 130)}
    trends = [one for one in found(made(sizes, {"": apart}, x="fact.pool")) if one.kind is K.TREND]
    assert sorted([mark.series for mark in one.marks] for one in trends) == [[0], [1]]


def test_a_fall_with_more_load_is_not_stated_again_as_measured() -> None:
    falling: dict[str, Values] = {"re-read": (100, 60, 45), "read": (98, 61, 44)}
    assert K.GROWTH not in kinds(made([1, 5, 10], {"": falling}, x="numjobs", metric="bytes_per_s", by="test"))
    rising: dict[str, Values] = {"re-read": (100, 140, 180), "read": (98, 150, 200)}
    assert K.GROWTH in kinds(made([1, 5, 10], {"": rising}, x="numjobs", metric="bytes_per_s", by="test"))


def test_two_curves_that_part_depend_on_x() -> None:
    chart = made(DEPTHS, {"": {"one": (30, 55, 95, 144, 175, 175), "two": (31, 60, 113, 192, 278, 352)}})
    assert K.INTERACTION in kinds(chart)
    alike = made(DEPTHS, {"": {"one": (30, 55, 95, 144, 175, 175), "two": (60, 110, 190, 288, 350, 350)}})
    assert K.INTERACTION not in kinds(alike)


def test_targets_at_once_scale_up_to_a_cap() -> None:
    (one,) = [
        each for each in found(made((1, 2, 3, 4), {"": {"A": (737, 1468, 1770, 1789)}}, x="at_once"))
        if each.kind is K.CAPPED
    ]  # fmt: skip
    assert (one.level, round(one.value or 0)) == (2, 1779)
    assert "2 targets at once reach 100 % of linear scaling" in one.sentence
    assert K.CAPPED not in kinds(made((1, 2, 3, 4), {"": {"A": (737, 1468, 2200, 2900)}}, x="at_once"))


def test_writes_faster_than_reads_and_slow_random_access_are_news() -> None:
    patterns = ("read", "write", "randread")
    (writes, random) = found(made(patterns, {"": {"A": (100, 300, 10)}}, x="pattern"))
    assert [one.kind for one in (writes, random)] == [K.DIRECTION, K.DIRECTION]
    assert {one.sentence for one in (writes, random)} == {
        "write showed ×3.00 in IOPS against read.", "read showed ×10.0 in IOPS against randread.",
    }  # fmt: skip
    assert not found(made(patterns, {"": {"A": (300, 100, 200)}}, x="pattern"))
    chart = made(patterns, {"": {"A": (100, 300, 10)}}, x="pattern")
    sizes: dict[str, frozenset[object]] = dict.fromkeys(("read", "write"), frozenset([131_072]))
    unlike = findings(chart, METRICS[chart.metric], block_sizes=sizes | {"randread": frozenset([4096])})
    assert [one.sentence for one in unlike] == ["write showed ×3.00 in IOPS against read."]


def test_one_of_many_variants_stands_out_and_the_others_are_alike() -> None:
    values: dict[str, Values] = {f"try {n}": (100 + n % 5,) for n in range(24)}
    said = found(made(("read",), {"": {**values, "odd": (30,)}}, x="fact.way", by="variant"))
    assert [(one.kind, round(one.value or 0)) for one in said] == [(K.STANDOUT, 30), (K.NO_EFFECT, 0)]
    assert "24 of 25 variants" in said[1].sentence
    assert kinds(made(("read",), {"": values}, x="fact.way", by="variant")) == [K.NO_EFFECT]


@pytest.mark.parametrize("by", ["target", "model", "serial", "host"])
def test_drives_and_hosts_are_no_variants_of_one_thing(by: str) -> None:
    """A hard disk among NVMe drives is no news."""
    values: dict[str, Values] = {f"nvme{n}": (100 + n % 5,) for n in range(24)}
    assert found(made(("read",), {"": {**values, "disk": (1,)}}, x="fact.way", by=by)) == ()


def test_all_curves_that_fall_between_two_levels_do_so_for_one_reason() -> None:
    sizes = [2**n for n in range(8)]
    curves: dict[str, Values] = {
        name: [1000 * 0.8**n * (0.1 if n > 4 else 1) for n in range(8)] for name in ("1", "10", "40")
    }
    said = [one for one in found(made(sizes, {"": curves}, x="size", by="numjobs")) if "all 3 curves" in one.sentence]
    assert [(one.kind, one.level) for one in said] == [(K.CLIFF, 5)]
    one_only = {**curves, "40": [1000 * 0.8**n for n in range(8)]}
    others = found(made(sizes, {"": one_only}, x="size", by="numjobs"))
    assert not [one for one in others if "all 3 curves" in one.sentence]


def test_rates_that_fall_with_load_are_a_trend_and_rising_ones_are_not() -> None:
    falling: dict[str, Values] = {"Read": (338, 194, 148), "Re-read": (321, 194, 149)}
    assert K.TREND in kinds(made((1, 2, 10), {"read": falling}, x="numjobs", by="test"))
    rising: dict[str, Values] = {name: values[::-1] for name, values in falling.items()}
    assert K.TREND not in kinds(made((1, 2, 10), {"read": rising}, x="numjobs", by="test"))


def test_a_change_between_two_levels_has_its_interval_and_is_not_said_without_a_certain_one() -> None:
    def said(write: Values, read: Values = ((99, 100, 101), (399, 400, 401))) -> list[str]:
        charts: dict[str, dict[str, Values]] = {"randread": {"A": read}, "randwrite": {"A": write}}
        return [one.sentence for one in found(made((1, 32), charts)) if one.sentence.startswith("From ")]

    certain = ((95, 100, 105), (1150, 1200, 1250))
    assert said(certain) == [
        "From queue depth 1 to queue depth 32, IOPS change: randwrite ×12.0 (95 % CI ×10.7 to ×13.4, n = 3), "
        "randread ×4.00 (95 % CI ×3.90 to ×4.10, n = 3)."
    ]
    assert said((100, 1200), (100, 400)) == [
        "From queue depth 1 to queue depth 32, IOPS change: randwrite ×12.0, randread ×4.00."
    ]
    for uncertain in (((50, 100, 400), (150, 300, 600)), ((100,), (1150, 1200, 1250)), ((20, 100), (1100, 1200))):
        assert not said(uncertain)


def test_learned_noise_decides_where_a_table_has_single_values() -> None:
    chart = made(READ_WRITE, {"": {"off": (100, 100), "on": (140, 100)}}, x="fact.way", by="scheduler")
    with_noise = findings(chart, METRICS["iops"], Noise(0.02, of_repeats=True))
    assert [one.kind for one in with_noise] == [K.EFFECT]
    assert kinds(chart) == [K.RATIOS]


def test_what_else_differs_is_said_with_an_effect() -> None:
    chart = made(READ_WRITE, {"": {"cfq": (100, 100), "noop": (300, 98)}}, x="fact.way", by="scheduler")
    other = Difference(kind=DifferenceKind.CONFOUNDED, name="cache", label="Write cache", text="")
    (one,) = found(replace(chart, differs=(other,)))
    assert one.sentence.endswith("; write cache differs, too.")


def test_a_small_load_explains_a_low_first_value_unless_the_rise_is_steeper() -> None:
    levels, rest = (1, 4, 16, 32, 64), (3070.0, 3520.0, 3520.0, 3520.0)
    explained = found(made(levels, {"": {"A": (998.0, *rest)}}))
    assert [one.kind for one in explained] == [K.SATURATION]
    assert K.OUTLIER in kinds(made(levels, {"": {"A": (300.0, *rest)}}))


def test_ratios_that_differ_by_level_are_stated_for_each_level() -> None:
    charts: dict[str, dict[str, Values]] = {
        "randread": {"uring": (2636.0, 4452.0), "vcl": (3828.0, 4474.0)},
        "randwrite": {"uring": (2365.0, 4469.0), "vcl": (3523.0, 4452.0)},
    }
    said = found(made((4, 64), charts, by="engine"))
    (one,) = [each for each in said if each.kind is K.RATIOS]
    assert "+45 % to +49 % at queue depth 4" in one.sentence
    assert "within 0.5 % at queue depth 64" in one.sentence
    same: dict[str, dict[str, Values]] = {name: {"uring": (1000.0, 4000.0), "vcl": (1100.0, 4400.0)} for name in charts}
    assert K.RATIOS not in kinds(made((4, 64), same, by="engine"))


def test_a_curve_of_many_levels_costs_little() -> None:
    """Each stretch that might be a gap was read in full: 100 levels took 3 s for 100 curves."""
    levels = range(1, 401)
    values = [1000.0 * min(level, 20) * (1 + 0.01 * (level % 3)) for level in levels]
    started = process_time()
    assert K.GAP not in kinds(made(levels, {"": {str(number): values for number in range(5)}}))
    assert process_time() - started < 4


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_10_000_results_cost_less_than_a_second(power: float) -> None:
    """Gaps and cliffs read each pair of levels: ten curves of 1,000 levels took 2.3 s."""
    chance = np.random.default_rng(1)
    rates = 1000 * np.arange(1, 1001) ** power
    curves: dict[str, Values] = {str(n): list(rates * np.exp(0.02 * chance.normal(size=1000))) for n in range(10)}
    comparison = made(range(1, 1001), {"": curves})
    started = process_time()
    found(comparison)
    assert process_time() - started < 1.5  # 0.6 s here


CAPPED = (458, 919, 1820, 2000, 2000, 2000)  # MB/s


def matches(links: Mapping[str, tuple[str, ...]], *, metric: str = "bytes_per_s", unit: float = 1e6) -> list[list[str]]:
    """Names of the known ceilings that each limit of a chart with the series A and B matches."""
    values = [each * unit for each in CAPPED]
    slower = [each * 0.5 for each in values[:3]] + values[3:]
    comparison = made(DEPTHS, {"": {"A": values, "B": slower}}, metric=metric)
    known = {name: tuple(map(read_link, texts)) for name, texts in links.items()}
    said = findings(comparison, METRICS[metric], None, {"read": frozenset({4096})}, known)
    return [[each.name for each in one.matches] for one in said if one.kind in (K.CEILING, K.SATURATION)]


def test_a_limit_matches_all_known_ceilings_at_its_value() -> None:
    own = ("PCIe 1.0 x8", "SAS 6G x4", "PCIe 3.0 x4", "Backplane: 2.05 GB/s")
    assert matches({"A": own, "B": own}) == [["PCIe 1.0 x8", "Backplane", "SAS 6G x4"]]


def test_a_common_limit_matches_only_a_ceiling_of_all_its_series() -> None:
    assert matches({"A": ("PCIe 1.0 x8",), "B": ("PCIe 2.0 x4", "PCIe 1.0 x8")}) == [["PCIe 1.0 x8"]]
    assert matches({"A": ("PCIe 1.0 x8",), "B": ("PCIe 2.0 x4",)}) == matches({}) == [[]]


def test_iops_of_one_block_size_match_a_ceiling_and_other_metrics_none() -> None:
    own = {"A": ("PCIe 1.0 x8",), "B": ("PCIe 1.0 x8",)}
    assert matches(own, metric="iops", unit=1e6 / 4096) == [["PCIe 1.0 x8"]]
    assert matches(own, metric="iops", unit=1e6) == [[]]
