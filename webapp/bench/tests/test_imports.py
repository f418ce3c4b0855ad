"""Imports and references beside own results."""

import pytest
from django.db.models import F

from webapp.analysis.comparing import comparison_of, select
from webapp.analysis.question import CompareQuery
from webapp.bench.alike import Mixed
from webapp.bench.assembly import answer
from webapp.bench.picking import offered, pairs
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, SideBySide, side_by_side
from webapp.bench.tests.conftest import SAMSUNG
from webapp.results.models import Import, Result
from webapp.results.reading.filter import ResultFilter
from webapp.screens.bench.report import notes
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import Lab

MODEL = Product(Kind.MODEL, SAMSUNG)
FASTER = PLAIN.replace("10200", "20400").replace("151000", "302000")


def of_import(made: Import, part: str = "") -> Product:
    return Product(Kind.IMPORT, f"{made.number}/{part}" if part else str(made.number))


def shown(*products: Product) -> SideBySide:
    return side_by_side(Selection(products, products[0]))


def as_reference(made: Import) -> Import:
    Import.objects.filter(pk=made.pk).update(slug=f"reference-{made.number}")
    Result.objects.filter(origin__imported=made).update(reference=True)
    return made


def test_an_import_is_a_product(db: None) -> None:
    first, second = an_import(), an_import(title="New tests", drive="PM1733", text=FASTER)
    page = shown(of_import(first), of_import(second))
    assert list(page.matched.names.values()) == ["Old tests", "New tests"]
    group = page.groups[0]
    assert [[cell.cell.summary.mean if cell else None for cell in row.cells] for row in group.rows] == [
        [10200, 20400], [151000, 302000],
    ]  # fmt: skip


def test_imported_drives_are_products_like_own_ones(samsung: Lab) -> None:
    an_import(drive=SAMSUNG)
    samsung.measure(100.0, iodepth=2)
    (rows,) = shown(MODEL).read.rows.values()
    assert {row.source for row in rows} == {1, -1}


@pytest.mark.parametrize("drives", [("PM9A3", "PM1733"), ("", "")])
def test_tests_of_one_import_with_equal_factors_are_workloads_of_their_own(db: None, drives: tuple[str, str]) -> None:
    """iozone's Read and Re-read have the same pattern and block size."""
    text = "pattern,block_size,iops\nrandread,4k,100\nrandread,4k,900\n"
    first = an_import(drive=drives[0], text=text)
    second = an_import(title="New tests", drive=drives[1], text=text.replace("00", "50"))
    for made in (first, second):
        for origin, name in zip(made.origins.order_by("number"), ("Read", "Re-read"), strict=True):
            made.origins.filter(pk=origin.pk).update(name=name)
    group = shown(of_import(first), of_import(second)).groups[0]
    means = [[cell.cell.summary.mean if cell else None for cell in row.cells] for row in group.rows]
    assert sorted(means) == [[100, 150], [900, 950]]


def test_names_of_tests_that_differ_between_drives_keep_nothing_apart(db: None) -> None:
    """One person calls fio's jobs `random-read`, another one `iotest`."""
    made = an_import(text="pattern,block_size,iops\nrandread,4k,100\nrandread,4k,900\n")
    for origin, name in zip(made.origins.order_by("number"), ("random-read", "iotest"), strict=True):
        made.origins.filter(pk=origin.pk).update(name=name, drive=f"Drive {name}")
    group = shown(*(Product(Kind.MODEL, f"Drive {name}") for name in ("random-read", "iotest"))).groups[0]
    means = [[cell.cell.summary.mean if cell else None for cell in row.cells] for row in group.rows]
    assert means == [[100, 900]]


def test_what_an_import_does_not_state_is_no_difference_but_counted(samsung: Lab) -> None:
    samsung.measure(5100.0, iodepth=1)
    page = shown(MODEL, of_import(an_import()))
    (row,) = page.groups[0].rows
    own, imported = row.cells
    assert own
    assert imported
    assert (own.cell.summary.mean, imported.cell.summary.mean) == (5100.0, 10200.0)
    assert own.unstated == ()
    assert len(imported.unstated) > 5
    assert {"Size", "Time"} <= {*imported.unstated}
    assert row.workload.point["ioengine"] == "io_uring"  # the complete workload
    (note,) = [text for text in notes(page) if text.startswith("Some results of Old tests do not state these factors")]
    assert ", Size, " in note


def test_a_reference_without_queue_depth_is_matched_with_queue_depth_1(samsung: Lab) -> None:
    for depth in (1, 2, 4):
        samsung.measure(5100.0 * depth, iodepth=depth)
    text = "pattern,block_size,iops\nrandread,4k,10200\n"
    page = shown(MODEL, of_import(as_reference(an_import(text=text))))
    first, *others = page.groups[0].rows
    assert (first.title, others, page.groups[0].alone) == ("4 KiB · QD 1", [], 2)
    published = first.cells[1]
    assert published
    assert published.assumed == "QD 1, 1 job"


def test_what_an_import_states_otherwise_is_a_difference(samsung: Lab) -> None:
    samsung.measure(5100.0, iodepth=1, direct=False)
    stated = PLAIN.replace("iops,", "direct,iops,").replace("k,1,", "k,1,on,").replace("k,32,", "k,32,on,")
    page = shown(MODEL, of_import(an_import(text=stated)))
    assert page.shared == 0
    assert [one.factor for one in page.apart] == ["direct"]  # not those that the import does not state


def test_own_results_without_a_setting_do_not_match_those_with_it(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(100.0, iodepth=1, scheduler="none")
    assert shown(MODEL, Product(Kind.HOST, "storage2")).shared == 0


def test_references_are_read_only_if_chosen_and_their_repeats_count_as_in_explore(samsung: Lab) -> None:
    repeated = "\n".join([PLAIN.strip(), *PLAIN.strip().splitlines()[1:], *PLAIN.strip().splitlines()[1:]])
    reference = as_reference(an_import(drive=SAMSUNG, text=repeated))
    samsung.measure(100.0, 101.0, 99.0, 100.0, iodepth=1)
    page = shown(MODEL, of_import(reference))
    own, published = page.groups[0].rows[0].cells
    assert own
    assert published
    assert (own.cell.summary.n, published.cell.summary.n, published.reference) == (4, 3, True)
    asked = CompareQuery(x="iodepth", series=("imported",), results=ResultFilter(imports=(reference.number,)))
    (explored,) = comparison_of(select(asked)).panels[0].series
    assert {cell.summary.n for cell in explored.cells if cell} == {3}
    assert page.references == (of_import(reference),)


def test_one_drive_of_an_import_is_a_product_of_its_own(db: None) -> None:
    made = an_import(drive="PM9A3")
    page = shown(of_import(made, "PM9A3"), of_import(made, "nothing"))
    assert page.matched.names[of_import(made, "PM9A3")] == "PM9A3"
    assert page.kind_of(of_import(made, "PM9A3")) == "Import: Old tests"
    assert page.empty == (of_import(made, "nothing"),)
    assert page.matched.names[of_import(made, "nothing")] == "Import 1/nothing"


def test_parts_of_imports_with_one_name_have_the_titles_of_their_imports(db: None) -> None:
    first, second = an_import(drive="PM9A3"), an_import(title="New tests", drive="PM9A3", text=FASTER)
    page = shown(of_import(first, "PM9A3"), of_import(second, "PM9A3"))
    assert [*page.matched.names.values()] == ["Old tests: PM9A3", "New tests: PM9A3"]
    (alone,) = shown(of_import(first, "PM9A3")).matched.names.values()
    assert alone == "Old tests: PM9A3"


def test_imports_and_their_labels_are_offered(db: None) -> None:
    made, reference = an_import(), as_reference(an_import(title="A blog", drive="X25-M", text=FASTER))
    texts = {group.label: [offer.text for offer in group.offers] for group in offered()}
    assert texts["Drive models"] == ["PM9A3"]  # not that of the reference
    assert texts["Hosts"] == ["lab1"]
    assert (texts["Imports"], texts["References"]) == (["Old tests"], ["A blog"])
    (pair,) = pairs()
    assert {offer.product for offer in pair.offers} == {Product(Kind.MODEL, "PM9A3"), of_import(reference)}
    assert (made.number, pair.common, pair.words) == (1, 3, "workload")


@pytest.mark.parametrize("label", ["controller", "layout", "serial", "host"])
def test_labels_of_imports_find_their_results(db: None, label: str) -> None:
    made = an_import()
    made.origins.update(**{label: "the label"})
    page = shown(Product(Kind(label), "the label"))
    assert [len(rows) for rows in page.read.rows.values()] == [3]


def test_results_of_one_product_are_not_joined_because_one_of_them_states_less(db: None) -> None:
    """Two tools, one of which does not state the size."""
    with_size = PLAIN.replace("iops,", "size,iops,").replace("k,1,", "k,1,1g,").replace("k,32,", "k,32,1g,")
    made = an_import()
    second = an_import(title="Other tool", text=with_size)
    second.origins.update(imported=made, number=F("number") + 10)
    other = an_import(title="Another drive", drive="PM1733", text=with_size.replace("10200", "10300"))
    page = shown(of_import(made), of_import(other))
    group = page.groups[0]
    assert [row.title for row in group.rows] == ["4 KiB · QD 1", "4 KiB · QD 32"]
    assert "Size 1 GiB" in answer(page).same  # said once
    assert group.alone == 2
    assert [cell.cell.summary.n if cell else 0 for row in group.rows for cell in row.cells] == [1, 1, 1, 1]


def test_equal_results_are_matched_rather_than_one_that_states_more(db: None) -> None:
    """One product was measured without a setting and with it. The other product does not state the setting."""
    tuned = PLAIN.replace("iops,", "read_ahead_kb,iops,").replace("k,1,", "k,1,4096,").replace("k,32,", "k,32,4096,")
    made = an_import()
    second = an_import(title="Tuned", text=tuned.replace("10200", "30600"))
    second.origins.update(imported=made, number=F("number") + 10)
    other = an_import(title="Another drive", drive="PM1733", text=FASTER)
    for products in ((other, made), (made, other)):
        first, *_ = shown(*map(of_import, products)).groups[0].rows
        assert {cell.cell.summary.mean for cell in first.cells if cell} == {10200.0, 20400.0}


def test_drives_of_one_model_are_several_targets(db: None) -> None:
    """The mean over two drives is the value of none of them."""
    for serial, iops in (("S1", "1000"), ("S2", "3000")):
        made = an_import(title=serial, text=PLAIN.replace("10200", iops))
        made.origins.update(serial=serial)
    page = shown(Product(Kind.MODEL, "PM9A3"))
    assert {row.mixed[0] for row in page.groups[0].rows} == {Mixed("2 drives", ("serial:S1", "serial:S2"))}
    assert not any(cell for row in page.groups[0].rows for cell in row.cells)
    (advice,) = page.advice
    assert advice.nearest
    assert advice.nearest.products == (Product(Kind.SERIAL, "S1"), Product(Kind.SERIAL, "S2"))


def test_the_lowest_load_is_that_of_a_stated_queue_depth(db: None) -> None:
    """The row without a queue depth may be of any."""
    head = "pattern,block_size,iodepth,iops,latency_p99_us\n"
    for number in (1, 2):
        levels = (("", 9000, 900), ("2", 1000, 100), ("32", 10000, 300))
        rows = (f"randread,4k,{depth},{iops * number},{us}\n" for depth, iops, us in levels)
        an_import(title=f"Table {number}", drive=f"D{number}", text="".join((head, *rows)))
    page = shown(*map(of_import, Import.objects.order_by("number")))
    assert [(one.title, one.workload.point.get("iodepth")) for one in page.headlines] == [
        ("Random read, highest", 32), ("Random read, lowest load", 2), ("Random read, p99", 2),
    ]  # fmt: skip


def test_a_conclusion_names_what_is_assumed_of_an_import(samsung: Lab) -> None:
    text = "pattern,block_size,iops\n" + "".join(f"randread,4k,{iops}\n" for iops in (9990, 10000, 10010))
    made = an_import(text=text)
    samsung.measure(99.0, 100.0, 101.0, iodepth=1)
    (finding,) = shown(of_import(made), MODEL).findings
    assert finding.sentence.startswith(f"{SAMSUNG} has ×0.01 the IOPS of Old tests")
    assert finding.sentence.endswith(". Assumed of Old tests: QD 1, 1 job.")


def test_means_over_different_levels_of_an_ignored_label_are_not_compared(db: None) -> None:
    """Both are equal at a fill level of 30 %."""
    text = "pattern,block_size,iodepth,iops,fill level\n" + "randread,4k,1,100,30 %\n" * 3
    made = an_import(drive="A", text=text + "randread,4k,1,10,90 %\n" * 3)
    other = an_import(title="New tests", drive="B", text=text)
    page = side_by_side(
        Selection((of_import(made), of_import(other)), of_import(made), ignored=frozenset({"label:fill level"}))
    )
    assert not page.findings
    assert page.matched.other_levels == ["label:fill level"]


def test_a_mean_over_imports_with_other_labels_names_these(db: None) -> None:
    for level in ("30 %", "90 %"):
        text = f"pattern,block_size,iodepth,iops,fill level\nrandread,4k,1,100,{level}\n"
        an_import(title=level, drive="A", text=text)
    (row,) = shown(Product(Kind.MODEL, "A")).groups[0].rows
    assert row.cells[0]
    assert row.cells[0].pooled == "2 values of fill level"
