"""Published tables with bandwidth only, with p95 only, and with labels that vary, as the library of references has
them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from webapp.bench.alike import Mixed
from webapp.bench.matching import Matched
from webapp.bench.missing import why_not_alone
from webapp.bench.picking import offered, products_of_import, products_of_results
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Row, Selection, SideBySide, side_by_side
from webapp.bench.workloads import P95, RATE
from webapp.imports.references import reading
from webapp.imports.references.reading import load_references
from webapp.results.models import Import, Result
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab

LIBRARY = ("fusionio-duo-320gb", "tachion-400gb", "intel-320-random-read")


@pytest.fixture
def library(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for slug in LIBRARY:
        (tmp_path / slug).symlink_to(reading.DATA / slug)
    monkeypatch.setattr(reading, "DATA", tmp_path)
    load_references()


def of_import(slug: str, part: str = "") -> Product:
    number = Import.objects.get(slug=slug).number
    return Product(Kind.IMPORT, f"{number}/{part}" if part else str(number))


def shown(*products: Product, choice: str = RATE, ignored: Sequence[str] = ()) -> SideBySide:
    return side_by_side(Selection(products, products[0], choice=choice, ignored=frozenset(ignored)))


def ratios(row: Row) -> list[str]:
    """Of all products but the baseline, with two decimals as the source prints them."""
    cells = [cell.cell.against_baseline if cell else None for cell in row.cells[1:]]
    return [f"{one.ratio.value:.2f}" if one else "" for one in cells]


FILLED = {  # of ssdperformanceblog.com: advantage of the tachIOn in percent
    "fill level 20 %": "0.90", "fill level 30 %": "0.97", "fill level 40 %": "1.17", "fill level 50 %": "1.42",
    "fill level 60 %": "1.97", "fill level 70 %": "2.17", "fill level 80 %": "2.58", "fill level 90 %": "4.29",
    "fill level 100 %": "4.21",
}  # fmt: skip


def test_random_patterns_have_bandwidth_if_nobody_states_iops(library: None) -> None:
    page = shown(of_import("fusionio-duo-320gb"), of_import("tachion-400gb"))
    (group,) = page.groups
    assert (group.panel.name, group.panel.metric.key) == ("Random write, bandwidth", "bytes_per_s")
    assert (page.shared, page.headlines[0].title) == (9, "Random write")
    assert page.findings


def test_a_fill_level_is_compared_with_the_same_fill_level(library: None) -> None:
    page = shown(of_import("fusionio-duo-320gb"), of_import("tachion-400gb"))
    assert [(row.title, ratios(row)[0]) for row in page.groups[0].rows] == [*FILLED.items()]
    assert {cell.unstated for row in page.groups[0].rows for cell in row.cells if cell} == {()}
    assert {cell.pooled for row in page.groups[0].rows for cell in row.cells if cell} == {""}


def test_labels_that_are_numbers_have_a_curve(library: None) -> None:
    (curve,) = shown(of_import("fusionio-duo-320gb"), of_import("tachion-400gb")).curves
    assert (curve.label, curve.texts[0], curve.texts[-1]) == ("fill level", "20 %", "100 %")
    assert set(curve.numbers) == {None}  # no logarithmic axis
    assert [len(points) for points in curve.points.values()] == [9, 9]


def test_a_label_keeps_own_results_apart_and_cannot_be_planned(samsung: Lab, library: None) -> None:
    samsung.measure(100.0, iodepth=1)
    own = Product(Kind.MODEL, samsung.target.model)
    page = shown(own, of_import("tachion-400gb"))
    assert page.shared == 0
    assert [one.label for one in page.apart] == ["Pattern", "fill level"]
    reasons = {why_not_alone(one) for one in page.missing[own]}
    assert "No plan sets fill level: an import states it as a label." in reasons
    assert "" not in reasons


def test_a_label_is_ignored_if_asked(library: None) -> None:
    products = of_import("fusionio-duo-320gb"), of_import("tachion-400gb")
    page = shown(*products, ignored=["label:fill level", "label:used size"])
    titles = {row.title: [cell.pooled if cell else "" for cell in row.cells] for row in page.groups[0].rows}
    assert titles == {"Random write": ["9 values of fill level", "2 published tables"]}


THREADS = {  # ratios to the RAID 10 of hard disks: Intel 320, two of them striped
    "1 job": (["8.07", "8.31"], ["11.57", "10.95"]), "2 jobs": (["7.91", "8.67"], ["10.10", "12.32"]),
    "4 jobs": (["7.86", "9.33"], ["11.31", "13.61"]), "8 jobs": (["7.54", "10.06"], ["12.60", "16.45"]),
    "16 jobs": (["6.54", "10.40"], ["14.50", "18.49"]), "32 jobs": (["5.31", "10.69"], ["14.22", "22.02"]),
}  # fmt: skip


@pytest.fixture
def devices(library: None) -> tuple[Product, ...]:
    """RAID 10, one Intel 320, and two of them: the layouts of one drive are products."""
    intel, striped, disks = products_of_import(Import.objects.get(slug="intel-320-random-read"))
    return disks, striped, intel


def test_layouts_of_one_drive_are_products_of_a_published_table(devices: tuple[Product, ...]) -> None:
    assert [product.part for product in devices] == [
        "SAS 2.5-inch hard disk", "Intel 320, single", "Intel 320, RAID 0 × 2",
    ]  # fmt: skip
    (group,) = (one for one in offered() if one.label == "References")
    assert set(devices) < {offer.product for offer in group.offers}
    ids = Result.objects.filter(origin__drive="Intel 320", point__numjobs=1).values_list("pk", flat=True)
    assert set(products_of_results(map(str, ids))) == set(devices[1:])


def test_ratios_of_bandwidth_are_as_published(devices: tuple[Product, ...]) -> None:
    (group,) = shown(*devices).groups
    assert {row.title: ratios(row) for row in group.rows} == {title: own[0] for title, own in THREADS.items()}


def test_ratios_of_p95_are_as_published(devices: tuple[Product, ...]) -> None:
    page = shown(*devices, choice=P95)
    found = {
        row.title: [f"{1 / cell.cell.against_baseline.ratio.value:.2f}" for cell in row.cells[1:]]  # type: ignore[union-attr]
        for row in page.groups[0].rows
    }
    assert found == {title: own[1] for title, own in THREADS.items()}


def test_p95_has_headlines_and_percentiles_if_nobody_states_p99(devices: tuple[Product, ...]) -> None:
    page = shown(*devices)
    assert [row.title for row in page.headlines] == [
        "Random read, highest",
        "Random read, lowest load",
        "Random read, p95",
    ]
    assert page.ladder
    assert [metric.short for metric, summaries in page.ladder.steps if any(summaries)] == ["p95"]


def test_a_drive_with_several_layouts_says_so(devices: tuple[Product, ...]) -> None:
    page = shown(devices[0], of_import("intel-320-random-read", "Intel 320"))
    assert {(row.cells[1], row.mixed[1].words) for row in page.groups[0].rows if row.mixed[1]} == {(None, "2 layouts")}
    number = devices[0].number
    assert page.groups[0].rows[0].mixed[1] == Mixed(
        "2 layouts", tuple(f"import:{number}/Intel 320, {layout}" for layout in ("RAID 0 × 2", "single"))
    )


def test_a_row_never_mixes_iops_and_bandwidth(db: None) -> None:
    """One table has both metrics, the second one IOPS, the third one bandwidth."""
    texts = ("iops,mib_per_s\nrandread,1,100,7", "iops\nrandread,1,300", "mib_per_s\nrandread,1,9")
    imports = [
        an_import(title=f"Table {number}", drive=f"D{number}", text=f"pattern,iodepth,{text}\n")
        for number, text in enumerate(texts)
    ]
    both, iops, bandwidth = (Product(Kind.IMPORT, str(one.number)) for one in imports)
    assert units(shown(both, iops).matched) == {"iops": 2}
    assert units(shown(both, bandwidth).matched) == {"bytes_per_s": 2}
    page = shown(both, iops, bandwidth)
    assert units(page.matched) == {"iops": 2}
    assert page.missing[bandwidth] == []  # it was measured, but without IOPS


def units(matched: Matched) -> dict[str, int]:
    """The number of products by metric of rates."""
    panels = matched.panels_of(RATE)
    return {panel.metric.key: len(matched.measured_by(panel, matched.in_panel(panel)[0].key)) for panel in panels}
