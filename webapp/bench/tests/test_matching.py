"""Which results are compared, and with which statistics."""

from statistics import geometric_mean

import pytest

from webapp.bench.matching import Matched
from webapp.bench.products import BenchRefused, Kind, Product, read_products
from webapp.bench.side_by_side import Selection, SideBySide, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.bench.tests.shown import MODELS, shown
from webapp.bench.workloads import P99, RATE
from webapp.results.models import Result
from webapp.tests.factories.results import FACTS, Lab


def means(page: SideBySide, direction: str = "read") -> list[list[float | None]]:
    """Rows of the first panel in this direction: the mean of each product."""
    group = next(one for one in page.groups if one.panel.direction == direction)
    return [[cell.cell.summary.mean if cell else None for cell in row.cells] for row in group.rows]


def test_equal_workloads_are_one_row(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, 102.0, iodepth=1)
    samsung.measure(1000.0, iodepth=32)
    intel.measure(50.0, 52.0, iodepth=1)
    intel.measure(400.0, iodepth=32)
    page = shown()
    assert means(page) == [pytest.approx([(100 * 102) ** 0.5, (50 * 52) ** 0.5]), [1000.0, 400.0]]
    assert [row.title for row in page.groups[0].rows] == ["4 KiB · QD 1", "4 KiB · QD 32"]


@pytest.mark.parametrize(
    "other", [{"iodepth": 2}, {"block_size": 8192}, {"pattern": "randwrite"}, {"size": 2**21}, {"scheduler": "kyber"}]
)
def test_workloads_that_differ_in_any_factor_are_not_matched(
    samsung: Lab, intel: Lab, other: dict[str, str | int]
) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(50.0, **({"iodepth": 1} | other))  # type: ignore[arg-type]
    page = shown()
    assert page.shared == 0
    assert not page.findings
    assert [len(lacking) for lacking in page.missing.values()] == [1, 1]


def test_it_says_which_factors_keep_products_apart_and_ignores_them_if_asked(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1, runtime=10)
    intel.measure(50.0, iodepth=1, runtime=60)
    page = shown()
    assert [(one.factor, one.levels) for one in page.apart] == [("runtime", ("10 s", "1 min"))]
    assert means(shown(ignored=frozenset({"runtime"}))) == [[100.0, 50.0]]


@pytest.mark.parametrize(("engine", "depth", "shared"), [("io_uring", 8, 1), ("psync", 1, 1), ("psync", 8, 0)])
def test_what_replaces_a_depth_keeps_products_apart_only_where_it_replaces_one(
    samsung: Lab, intel: Lab, engine: str, depth: int, shared: int
) -> None:
    samsung.measure(100.0, ioengine=engine, iodepth=depth, sync_depth="refuse")
    intel.measure(50.0, ioengine=engine, iodepth=depth, sync_depth="threads")
    page = shown()
    assert page.shared == shared
    assert ("sync_depth" in {one.factor for one in page.apart}) is (shared == 0)


def test_means_over_different_levels_of_an_ignored_factor_are_not_compared(samsung: Lab, intel: Lab) -> None:
    """Both are equal with one job."""
    samsung.measure(100.0, 101.0, 102.0, numjobs=1)
    samsung.measure(300.0, 301.0, 302.0, numjobs=4)
    intel.measure(100.0, 101.0, 102.0, numjobs=1)
    page = shown(ignored=frozenset({"numjobs"}))
    one_job, both = geometric_mean((100, 101, 102)), geometric_mean((200, 201, 202))
    assert means(page) == [pytest.approx([both, one_job])]
    assert [cell and cell.cell.against_baseline for cell in page.headlines[0].cells] == [None, None]
    assert not page.findings
    assert page.matched.other_levels == ["numjobs"]
    assert [one.nearest and one.nearest.held for one in page.advice] == [(("numjobs", "1"),)]
    intel.measure(300.0, 301.0, 302.0, numjobs=4)
    page = shown(ignored=frozenset({"numjobs"}))
    assert not page.matched.other_levels
    assert page.findings


def test_a_run_is_not_compared_with_a_product_that_has_its_results(samsung: Lab) -> None:
    """The mean of all runs contains those of this run, so the ratio would be that of the run to itself."""
    samsung.measure(100.0, 101.0, 102.0)
    slow = Lab(samsung.target, number=2)
    slow.measure(50.0, 51.0, 52.0)
    slow.measure(10.0, 11.0, 12.0, iodepth=8)
    products = [Product(Kind.TARGET, "storage1/nvme0"), Product(Kind.RUN, "2"), Product(Kind.RUN, "1")]
    page = shown(products)
    assert [cell and cell.cell.against_baseline for cell in page.headlines[0].cells] == [None, None, None]
    assert not page.findings
    assert page.matched.overlapping == {"run:1", "run:2"}
    assert not shown(products[1:]).matched.overlapping


def test_a_layout_is_no_part_of_the_workload_if_layouts_are_compared(samsung: Lab) -> None:
    samsung.measure(100.0, iodepth=1, layout="raid0 x2")
    samsung.measure(150.0, iodepth=1, layout="raid0 x4")
    layouts = (Product(Kind.LAYOUT, "raid0 x2"), Product(Kind.LAYOUT, "raid0 x4"))
    assert means(shown(layouts)) == [[100.0, 150.0]]


def test_settings_are_no_part_of_the_workload_if_configurations_are_compared(samsung: Lab) -> None:
    samsung.measure(100.0, iodepth=1, scheduler="none", facts=FACTS)
    samsung.measure(150.0, iodepth=1, scheduler="kyber", facts=FACTS | {"device.scheduler": "kyber"})
    digests = Result.objects.order_by("id").values_list("stream_run__configuration_id", flat=True)
    assert means(shown([Product(Kind.CONFIGURATION, digest[:10]) for digest in digests])) == [[100.0, 150.0]]


def test_the_ratio_is_to_the_chosen_baseline(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(50.0, iodepth=1)
    assert ratios(shown()) == [None, pytest.approx(0.5)]
    assert ratios(side_by_side(Selection(MODELS, MODELS[1]))) == [pytest.approx(2.0), None]


def ratios(page: SideBySide) -> list[float | None]:
    against = [cell.cell.against_baseline if cell else None for cell in page.groups[0].rows[0].cells]
    return [one.ratio.value if one else None for one in against]


def test_a_difference_is_claimed_only_with_repeats(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(50.0, iodepth=1)
    page = shown()
    cell = page.groups[0].rows[0].cells[1]
    assert cell is not None
    assert cell.cell.against_baseline is not None
    assert cell.cell.against_baseline.better is None
    assert "measured once" in page.findings[0].sentence
    assert page.single == len(page.shown_values) == 2  # not those of p99, which the page does not show


def test_repeats_give_an_interval_and_a_finding(samsung: Lab, intel: Lab) -> None:
    samsung.measure(99.0, 100.0, 101.0, 100.0, iodepth=1)
    intel.measure(49.0, 50.0, 51.0, 50.0, iodepth=1)
    page = shown()
    cell = page.groups[0].rows[0].cells[1]
    assert cell is not None
    assert (cell.cell.summary.n, cell.cell.summary.low is None) == (4, False)
    assert f"{INTEL} has ×0.50 the IOPS of {SAMSUNG}" in page.findings[0].sentence


def test_claims_about_rates_and_about_a_latency_are_corrected_by_themselves(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        lab.measure(100.0, 101.0, iodepth=1)
        lab.measure(100.0, 101.0, iodepth=1, pattern="randwrite", direction="write")
    matched = shown().matched
    assert matched.comparisons == {RATE: 2, P99: 2}  # two patterns each
    assert {panel.choice for panel in matched.panels} == {RATE, P99}


def test_a_cell_with_results_of_several_kernels_says_so(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    samsung.measure(120.0, iodepth=1, facts=FACTS | {"kernel.release": "6.5.0"})
    intel.measure(50.0, iodepth=1)
    cells = shown().groups[0].rows[0].cells
    assert [cell and cell.pooled for cell in cells] == ["2 kernels", ""]


def test_a_cell_of_equal_conditions_says_nothing(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, 101.0, 102.0, iodepth=1)
    intel.measure(50.0, iodepth=1)
    cell = shown().groups[0].rows[0].cells[0]
    assert cell is not None
    assert (cell.pooled, cell.runs) == ("", 1)


def test_directions_of_a_mix_are_summed_for_rates_and_kept_apart_for_latencies(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        (read,) = lab.measure(100.0, iodepth=1, pattern="randrw", read_percent=70)
        Result.objects.create(**{
            field.attname: getattr(read, field.attname) for field in Result._meta.concrete_fields if field.name != "id"
        } | {"direction": "write", "iops": 40.0})  # fmt: skip
    matched = shown().matched
    assert [panel.direction for panel in matched.panels_of(RATE)] == ["mixed"]
    assert [panel.name for panel in matched.panels_of(P99)] == ["Random mix, reads", "Random mix, writes"]
    assert summed(matched) == [140.0, 140.0]


def summed(matched: Matched) -> list[float]:
    panel = matched.panels_of(RATE)[0]
    (one,) = matched.in_panel(panel)
    cells = [matched.cell(panel, product, one.key) for product in matched.products]
    return [cell.summary.mean for cell in cells if cell]


def test_results_of_several_drives_at_once_belong_to_no_single_drive(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    samsung.measure(1.0, iodepth=1, invalid=True)
    page = shown([Product(Kind.SERIAL, "S1"), Product(Kind.SERIAL, "nothing")])
    assert means(page) == []
    assert page.empty == (Product(Kind.SERIAL, "nothing"),)
    assert [len(rows) for rows in page.read.rows.values()] == [1, 0]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["drive:S1"], "write kind:name"),
        (["model:"], "no drive model"),
        (["run:one"], "number of the run"),
        ([f"host:h{n}" for n in range(9)], "at most 8"),
    ],
)
def test_products_that_cannot_be_read_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(BenchRefused, match=words):
        read_products(texts)


def test_a_product_counts_once() -> None:
    assert read_products(["host:a", "", "host:b", "host:a"]) == (Product(Kind.HOST, "a"), Product(Kind.HOST, "b"))
    assert read_products(["import:1", "import:01"]) == (Product(Kind.IMPORT, "1"),)
    assert read_products(["import:01/PM 9A3"]) == (Product(Kind.IMPORT, "1/PM 9A3"),)
