"""Headlines, curves, ladder, specifications, offers, and the plan of what is missing."""

from collections import Counter
from itertools import groupby

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.bench.alike import PLACES
from webapp.bench.missing import Grid, merged, missing, plan_for
from webapp.bench.picking import _NEWEST, offered, pairs
from webapp.bench.products import Kind, Product
from webapp.bench.reading import read_history, read_results
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.bench.tests.shown import MODELS, shown
from webapp.plans.grids import part_grid
from webapp.plans.points import effective, point_key
from webapp.results.models import Result
from webapp.results.reading import content
from webapp.runs.models import Run
from webapp.screens.bench.charts import ladder_table
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS, Lab


def test_imported_results_are_read_by_their_own_index(samsung: Lab) -> None:
    with CaptureQueriesContext(connection) as captured:
        read_results([Product(Kind.MODEL, SAMSUNG)])
    assert any('origin_id" IS NOT NULL' in each["sql"] for each in captured.captured_queries)


def test_a_headline_is_the_fastest_shared_workload_of_4_kib(samsung: Lab, intel: Lab) -> None:
    for lab, factor in ((samsung, 1.0), (intel, 2.0)):
        lab.measure(100.0 * factor, iodepth=1)
        lab.measure(900.0 * factor, iodepth=32)
        lab.measure(1000.0 * factor, iodepth=32, block_size=512)
    samsung.measure(5000.0, iodepth=256)  # Intel was not measured
    found = [(one.title, one.workload.point["iodepth"], one.workload.point["block_size"]) for one in shown().headlines]
    assert found == [
        ("Random read, highest", 32, 4096), ("Random read, lowest load", 1, 4096), ("Random read, p99", 1, 4096),
    ]  # fmt: skip


def test_a_headline_of_a_sequential_pattern_is_bandwidth_of_the_largest_block(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        lab.measure(100.0, pattern="read", block_size=131072)
        lab.measure(900.0, pattern="read", block_size=4096)
    (only,) = shown().headlines
    assert (only.title, only.panel.metric.key, only.workload.point["block_size"]) == (
        "Sequential read",
        "bytes_per_s",
        131072,
    )


def test_a_curve_has_the_workloads_that_differ_in_one_factor(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        for depth in (1, 2, 4):
            lab.measure(100.0 * depth, iodepth=depth)
        lab.measure(100.0, iodepth=1, numjobs=4)
    (curve,) = shown().curves
    assert (curve.factor, curve.levels, curve.words) == ("iodepth", (1, 2, 4), "4 KiB")
    assert [len(points) for points in curve.points.values()] == [3, 3]


def test_of_equally_full_curves_the_one_of_the_lowest_concurrency_is_shown(samsung: Lab, intel: Lab) -> None:
    for lab in (samsung, intel):
        for jobs in (1, 2, 16):
            for depth in (1, 2, 4):
                lab.measure(100.0, iodepth=depth, numjobs=jobs)
    assert [(curve.factor, curve.words) for curve in shown().curves] == [
        ("iodepth", "4 KiB · 1 job"),
        ("numjobs", "4 KiB · QD 1"),
    ]


def test_the_ladder_has_the_values_of_the_rows(samsung: Lab, intel: Lab) -> None:
    """Also of repeats that have too few I/Os for the percentile of the headlines."""
    for lab in (samsung, intel):
        lab.measure(100.0, 101.0, 102.0)
    Result.objects.filter(run=samsung.run, repeat__gt=1).update(p99_ns=None, p50_ns=8000)
    page = shown(choice="latency_p50")
    (row,) = page.groups[0].rows
    assert row.cells[0]
    p50 = (2000 * 8000 * 8000) ** (1 / 3)
    assert row.cells[0].cell.summary.mean == pytest.approx(p50)
    assert page.ladder is not None
    summaries = {metric.short: [one and (one.mean, one.n) for one in found] for metric, found in page.ladder.steps}
    assert summaries["p50"] == [(pytest.approx(p50), 3), (2000, 3)]
    assert summaries["p99"] == [(4000, 1), (4000, 3)]
    texts = {row.level: row.cells for row in ladder_table(page.ladder).rows}
    assert (texts["p50"], texts["p99"]) == (("5,040", "2,000"), ("4,000 (n = 1)", "4,000"))


def test_the_ladder_has_all_percentiles_of_one_workload(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, 110.0, iodepth=1)
    intel.measure(100.0, iodepth=1)
    page = shown()
    assert page.ladder is not None
    assert page.ladder.title == "Random read · 4 KiB · QD 1"
    steps = {metric.short: [one and one.mean for one in summaries] for metric, summaries in page.ladder.steps}
    assert steps["p99"] == [4000.0, 4000.0]
    assert steps["p99.9"] == [None, None]  # too few I/Os
    assert steps["Maximum"] == [9e9, 9e9]


def test_the_header_says_unknown_and_lists_several_values(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1, facts=FACTS | {"device.firmware": "GDC5602Q"})
    samsung.measure(100.0, iodepth=1, facts=FACTS | {"device.firmware": "GDC5902Q"})
    intel.measure(50.0, iodepth=1, facts={})
    page = shown()
    header = {one.label: one.values for one in page.header}
    assert header["Firmware"] == (("GDC5602Q", "GDC5902Q"), ())
    assert header["Kernel"] == (("6.1.0",), ())
    assert header["Model"] == ((SAMSUNG,), (INTEL,))


def test_specifications_show_only_what_differs(samsung: Lab, intel: Lab) -> None:
    seen = {"device.nvme0n1.size_bytes": "1920000000000", "drive_state": "unknown"}
    samsung.measure(100.0, iodepth=1, facts=FACTS | seen)
    intel.measure(50.0, iodepth=1, facts=FACTS | {"device.nvme1n1.size_bytes": "3840000000000"})
    differing = {one.label: one.values for one in shown().differing}
    assert differing == {"Size": (("1.92 TB",), ("3.84 TB",))}


def test_specifications_have_units(samsung: Lab, intel: Lab) -> None:
    seen = {"device.read_ahead_kb": "128", "device.logical_block_size": "512", "device.max_hw_sectors_kb": "1024"}
    samsung.measure(100.0, iodepth=1, facts=FACTS | seen)
    other = {"device.read_ahead_kb": "4096", "device.logical_block_size": "4096", "device.max_hw_sectors_kb": "128"}
    intel.measure(50.0, iodepth=1, facts=FACTS | other)
    differing = {one.label: one.values for one in shown().differing}
    assert differing["Read-ahead"] == (("128 KiB",), ("4096 KiB",))
    assert differing["Logical block size"] == (("512 B",), ("4 KiB",))
    assert differing["Largest request of the hardware"] == (("1 MiB",), ("128 KiB",))


def test_the_plan_of_what_is_missing_measures_exactly_that(samsung: Lab, intel: Lab) -> None:
    for depth in (1, 8):
        for block in (4096, 8192):
            samsung.measure(100.0, iodepth=depth, block_size=block)
    intel.measure(50.0, iodepth=1, block_size=4096)
    page = shown()
    lacking = missing(page.matched, MODELS[1])
    document = plan_for(lacking, "What Intel lacks")
    grids = [part_grid(document, part) for part in document.parts]
    points = {point_key(effective(point)) for grid in grids for point in grid.points}
    wanted = [{name: level for name, level in one.point.items() if name not in PLACES} for one in lacking]
    assert points == {point_key(point) for point in wanted}
    assert len(points) == 3


def test_grids_that_differ_in_one_factor_are_merged() -> None:
    grids: list[Grid] = [
        {"pattern": ("read",), "iodepth": (depth,), "block_size": (size,)} for depth in (1, 2) for size in (1, 2)
    ]
    assert merged(grids) == [{"pattern": ("read",), "iodepth": (1, 2), "block_size": (1, 2)}]


def test_it_offers_what_has_results_by_kind(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    a_drive(a_host("storage9"), "unused", model="NEVER MEASURED")
    groups = {group.label: [offer.text for offer in group.offers] for group in offered()}
    assert groups["Drive models"] == [SAMSUNG]
    assert groups["Drives"] == [f"{SAMSUNG} S1"]
    assert groups["Hosts"] == ["storage1"]
    assert groups["Targets"] == ["storage1/nvme0"]
    assert groups["Runs"] == ["Run 1"]
    assert len(groups["Configurations"]) == 1


def test_an_offer_of_the_newest_runs_says_that_it_is_one(samsung: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.bench.picking.MAX_RUNS", 2)
    monkeypatch.setitem(_NEWEST, Kind.RUN, 2)
    for number in (1, 2, 3):
        (samsung if number == 1 else Lab(samsung.target, number=number)).measure(100.0)
    groups = {group.label: [offer.text for offer in group.offers] for group in offered()}
    assert groups["Runs, the newest 2"] == ["Run 3", "Run 2"]


def test_configurations_that_differ_in_their_targets_say_so(samsung: Lab) -> None:
    for name in ("nvme0", "nvme1"):
        samsung.measure(100.0, iodepth=1, facts=FACTS | {"stream.0.target": name})
    (group,) = [group for group in offered() if group.label == "Configurations"]
    assert {offer.note for offer in group.offers} == {"nvme0 · none · 6.1.0", "nvme1 · none · 6.1.0"}


def test_it_proposes_models_that_ran_the_same_plan(samsung: Lab) -> None:
    elsewhere = a_drive(a_host("storage2"), "nvme0", model="ELSE")  # drives are compared only in one host
    other = Lab(a_drive(samsung.target.host, "nvme1", model=INTEL), version=samsung.run.version, number=2)
    for lab in (samsung, other, Lab(elsewhere, version=samsung.run.version, number=3)):
        lab.measure(100.0, iodepth=1)
    (pair,) = pairs()
    assert {offer.product for offer in pair.offers} == set(MODELS)


@pytest.mark.parametrize("count", [2, 8])
def test_the_number_of_queries_does_not_depend_on_the_number_of_products(samsung: Lab, count: int) -> None:
    products = []
    for number in range(count):
        lab = Lab(a_drive(a_host(f"h{number}"), "nvme0", model=f"M{number}"), number=10 + number)
        lab.measure(100.0, 101.0, iodepth=1)
        products.append(Product(Kind.MODEL, f"M{number}"))
    content.clear()
    with CaptureQueriesContext(connection) as queries:
        read = read_results(products)
    assert [len(rows) for rows in read.rows.values()] == [2] * count
    assert len(queries) == 7, [query["sql"][:90] for query in queries]


def test_of_too_many_results_each_plan_has_its_newest_run(samsung: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A characterisation is older than nine runs of a nightly plan, which alone have as many results as are read."""
    monkeypatch.setattr("webapp.bench.reading.MAX_RESULTS", 12)
    whole = Lab(samsung.target, number=20)
    for depth in (1, 2, 4, 8):
        whole.measure(100.0, iodepth=depth)
    nightly = a_version(slug="nightly")
    for night in range(9):
        lab = Lab(samsung.target, version=nightly, number=30 + night)
        lab.measure(100.0, 101.0, iodepth=16)
    Run.objects.filter(number=20).update(trial_count=4)
    Run.objects.filter(number__gte=30).update(trial_count=2)
    product = Product(Kind.MODEL, SAMSUNG)
    read = read_history(product)
    assert read.cut == (product,)
    assert [(run, len(list(rows))) for run, rows in groupby(read.rows[product], lambda row: row.run)] == [
        (20, 4), (35, 2), (36, 2), (37, 2), (38, 2),
    ]  # fmt: skip
    assert cells_of(product) == {1: 1, 2: 1, 4: 1, 8: 1, 16: 15}


def cells_of(product: Product) -> Counter[object]:
    """The number of results that Bench reads of each queue depth."""
    return Counter(row.point["iodepth"] for row in read_results([product]).rows[product])


def test_a_cell_is_read_whole_or_not_at_all(samsung: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many results of a cell whether or not a product has too many results. Reads and writes of a mix are two."""
    product = Product(Kind.TARGET, "storage1/nvme0")
    for number, depth in enumerate((1, 2, 4), start=2):
        lab = Lab(samsung.target, number=number)
        for direction in ("read", "write"):
            lab.measure(*(float(n + depth) for n in range(20)), iodepth=depth, direction=direction)
        Run.objects.filter(number=number).update(trial_count=40)
    whole = read_results([product])
    assert (whole.cut, whole.has_more, cells_of(product)) == ((), True, {1: 30, 2: 30, 4: 30})
    monkeypatch.setattr("webapp.bench.reading.MAX_RESULTS", 100)
    read = read_results([product])
    assert (read.cut, read.has_more) == ((product,), True)
    assert {row.id for row in read.rows[product]} == {row.id for row in whole.rows[product]}
    monkeypatch.setattr("webapp.bench.reading.MAX_CELLS", 4)
    assert cells_of(product) == {4: 30, 2: 30}, "the newest runs"
