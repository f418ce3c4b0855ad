"""Like with like: places, cells that are no number, names of what was measured, and the nearest comparison."""

import pytest

from webapp.bench import matching
from webapp.bench import side_by_side as side_by_side_module
from webapp.bench.alike import Mixed
from webapp.bench.matching import has_ratio
from webapp.bench.products import BenchRefused, Kind, Product
from webapp.bench.reading import Read, read_results
from webapp.bench.saved import query_of, selection_of
from webapp.bench.side_by_side import Selection, SideBySide, read_selection, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.hosts.models import Host, Target
from webapp.results.models import Configuration
from webapp.runs.models import Run, RunState
from webapp.screens.bench.report import notes
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import FACTS, Lab

FAST, SLOW = Product(Kind.CONTROLLER, "fast"), Product(Kind.CONTROLLER, "slow")
TWICE = (0.999, 1.0, 1.001, 1.0)  # repeats


def shown(*products: Product, **asked: object) -> SideBySide:
    """Whether it has a ratio is known without statistics, too."""
    page = side_by_side(Selection(products, products[0], **asked))  # type: ignore[arg-type]
    compared = has_ratio(page.read.rows, page.selection.choice, page.selection.in_no_workload)
    assert compared == bool(page.matched.compared)
    return page


def measure(target: Target, number: int, speed: float, controller: str) -> None:
    facts = FACTS | {"device.sda.controller.model": controller}
    Lab(target, number=number).measure(*(speed * noise for noise in TWICE), facts=facts)
    Configuration.objects.filter(facts=facts).update(controller=controller)


def ratios(page: SideBySide) -> dict[str, float]:
    """By the row of the first panel: the second product divided by the first one, whichever is the baseline."""
    found = {}
    for row in page.groups[0].rows if page.groups else ():
        for place, shown_cell in enumerate(row.cells):
            if shown_cell and (against := shown_cell.cell.against_baseline):
                found[row.title] = round(against.ratio.value ** (1 if place else -1), 3)
    return found


@pytest.fixture
def hosts(db: None) -> tuple[Host, Host]:
    return a_host("h1"), a_host("h2")


def test_controllers_are_compared_drive_by_drive(hosts: tuple[Host, Host]) -> None:
    """The slow controller has the faster drives: the mean over its drives would be the higher one."""
    for number, (host, controller, factor) in enumerate(((hosts[0], "fast", 1.0), (hosts[1], "slow", 0.5))):
        for place, (model, speed) in enumerate((("A", 100.0), ("B", 1000.0))):
            measure(a_drive(host, f"d{place}", model=model), 10 * number + place, speed * factor, controller)
    measure(a_drive(hosts[1], "d3", model="C"), 30, 90_000.0, "slow")
    page = shown(FAST, SLOW)
    assert ratios(page) == {"4 KiB · QD 1 · Drive A": 0.5, "4 KiB · QD 1 · Drive B": 0.5}
    assert (page.shared, page.workloads, page.advice) == (2, 3, ())
    assert page.findings[0].sentence.startswith("slow has ×0.50 the IOPS of fast")


def test_controllers_without_a_common_drive_have_no_ratio_but_the_nearest_comparison(
    hosts: tuple[Host, Host],
) -> None:
    measure(a_drive(hosts[0], "d0", model="A"), 1, 100.0, "fast")
    measure(a_drive(hosts[1], "d0", model="B"), 2, 900.0, "slow")
    page = shown(FAST, SLOW)
    assert (page.shared, page.findings, ratios(page)) == (0, (), {})
    (advice,) = page.advice
    assert advice.nearest is None  # nothing is alike, so nothing is offered
    assert "fast was measured with A, and slow with B" in advice.why
    measure(a_drive(hosts[1], "d1", model="A"), 3, 80.0, "third")
    (advice,) = shown(FAST, SLOW).advice
    assert advice.nearest
    assert advice.nearest.products == (FAST, Product(Kind.CONTROLLER, "third"))
    assert ratios(side_by_side(advice.nearest)) == {"4 KiB · QD 1": 0.8}


def test_hosts_are_compared_over_as_many_drives_of_a_model(hosts: tuple[Host, Host]) -> None:
    products = Product(Kind.HOST, "h1"), Product(Kind.HOST, "h2")
    for number, (host, place, speed) in enumerate(((0, "a", 100.0), (0, "b", 100.0), (1, "a", 50.0)), start=1):
        measure(a_drive(hosts[host], place, model="A"), number, speed, "c")
    assert shown(*products).shared == 0
    assert "2 × A" in shown(*products).advice[0].why
    measure(a_drive(hosts[1], "b", model="A"), 4, 50.0, "c")
    assert list(ratios(shown(*products)).values()) == [0.5]


def test_a_drive_whose_model_is_unknown_is_equal_to_no_other(hosts: tuple[Host, Host]) -> None:
    for number, host in enumerate(hosts, start=1):
        measure(a_drive(host, "d0", model=""), number, 100.0, "c")
    assert shown(Product(Kind.HOST, "h1"), Product(Kind.HOST, "h2")).shared == 0


@pytest.mark.parametrize("place", ["host", "controller"])
def test_drives_are_compared_only_at_one_place(hosts: tuple[Host, Host], place: str) -> None:
    second = (hosts[1], "c") if place == "host" else (hosts[0], "d")
    measure(a_drive(hosts[0], "d0", model=SAMSUNG), 1, 100.0, "c")
    measure(a_drive(second[0], "d1", model=INTEL), 2, 50.0, second[1])
    models = Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL)
    page = shown(*models)
    assert (page.shared, page.findings) == (0, ())
    assert place in [one.factor for one in page.apart]
    measure(a_drive(hosts[0], "d2", model=INTEL), 3, 25.0, "c")
    assert list(ratios(shown(*models)).values()) == [0.25]


def test_a_further_product_does_not_change_what_is_compared(hosts: tuple[Host, Host]) -> None:
    measure(a_drive(hosts[0], "d0", model=SAMSUNG, serial="S1"), 1, 100.0, "c")
    measure(a_drive(hosts[0], "d1", model=INTEL, serial="I1"), 2, 50.0, "c")
    pair = Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL)
    sentences = [one.sentence for one in shown(*pair).findings]
    for third in (Product(Kind.HOST, "h1"), Product(Kind.CONTROLLER, "c")):
        assert [one.sentence for one in shown(*pair, third).findings] == sentences
        assert ratios(shown(*pair, third)) == {"4 KiB · QD 1": 0.5}


def test_a_setting_that_changed_unasked_makes_no_mean(samsung: Lab, intel: Lab) -> None:
    for scheduler in ("none", "kyber"):
        samsung.measure(
            100.0, iodepth=1, facts=FACTS | {"device.scheduler": scheduler, "device.nr_requests": scheduler}
        )
    intel.measure(50.0, iodepth=1)
    models = Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL)
    page = shown(*models)
    (mixed,) = {row.mixed[0] for row in page.groups[0].rows}
    assert mixed == Mixed("2 levels of I/O scheduler", ("kyber", "none"), "scheduler")
    assert not page.findings
    (advice,) = page.advice
    assert advice.nearest
    assert advice.nearest.held == (("scheduler", "none"),)
    assert ratios(side_by_side(advice.nearest)) == {"4 KiB · QD 1": 0.5}


def test_a_scheduler_that_a_plan_set_is_compared_with_an_observed_one(samsung: Lab, intel: Lab) -> None:
    """To ignore the scheduler would compare a mean over two levels with one of them."""
    for scheduler, speed in (("none", 300.0), ("mq-deadline", 100.0)):
        samsung.measure(*(speed * noise for noise in TWICE), iodepth=1, scheduler=scheduler)
    intel.measure(*(50.0 * n for n in TWICE), iodepth=1, facts=FACTS | {"device.scheduler": "mq-deadline"})
    models = Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL)
    for ignored in (frozenset[str](), frozenset({"scheduler"})):
        page = shown(*models, ignored=ignored)
        assert not page.findings
        (advice,) = page.advice
        assert advice.nearest
        assert advice.nearest.held == (("scheduler", "mq-deadline"),)
        assert ratios(side_by_side(advice.nearest)) == {"4 KiB · QD 1": 0.5}


def test_the_offer_is_an_address(samsung: Lab, intel: Lab) -> None:
    asked = Selection(
        (Product(Kind.MODEL, "a b"),), Product(Kind.MODEL, "a b"), "latency_p99", held=(("scheduler", "none"),)
    )
    assert selection_of(query_of(asked)) == asked
    for text in ("scheduler", "scheduler:", "colour:red"):
        with pytest.raises(BenchRefused):
            read_selection(["run:1"], held=[text])


def several(title: str, *drives: tuple[str, str]) -> Product:
    """An import with a drive for each text of results."""
    made = an_import(title=title, drive=drives[0][0], text=drives[0][1])
    for drive, text in drives[1:]:
        other = an_import(title="more", drive=drive, text=text)
        count = made.origins.count()
        for number, origin in enumerate(other.origins.order_by("number"), start=1):
            other.origins.filter(pk=origin.pk).update(imported=made, number=count + number)
    return Product(Kind.IMPORT, str(made.number))


HEAD = "pattern,block_size,iodepth,iops\n"


def test_a_sentence_names_the_drive_of_an_import_that_it_is_about(db: None) -> None:
    """The import has two drives, of which only the hard disk shares a workload with the other product."""
    blog = several("SSD 320", ("SSD 320", f"{HEAD}randread,4k,1,9000\n"), ("Hard disk", f"{HEAD}randread,8k,1,100\n"))
    other = several("FusionIO", ("FusionIO", f"{HEAD}randread,8k,1,2170\n"))
    page = shown(blog, other)
    (finding,) = page.findings
    assert "SSD 320: Hard disk" in finding.sentence
    assert [cell.part for row in page.groups[0].rows for cell in row.cells if cell] == ["Hard disk", ""]


def test_a_mean_over_drives_of_an_import_is_no_number(db: None) -> None:
    rows = f"{HEAD}randread,8k,1,100\n"
    blog = several("A blog", ("A", rows), ("B", rows.replace("100", "900")))
    page = shown(blog, several("FusionIO", ("FusionIO", rows.replace("100", "300"))))
    (row,) = page.groups[0].rows
    parts = tuple(f"{blog}/{name}" for name in "AB")
    assert (row.cells[0], row.mixed[0]) == (None, Mixed("2 drives", parts))
    assert not page.findings
    (advice,) = page.advice
    assert advice.nearest
    assert str(advice.nearest.products[0]) == parts[0]


def test_a_sentence_over_several_drives_of_an_import_is_not_said(db: None) -> None:
    """Each workload has one drive, so each ratio has; their mean would have none."""
    blog = several("Blog", ("A", f"{HEAD}randread,4k,1,9000\n"), ("B", f"{HEAD}randread,8k,1,100\n"))
    other = several("FusionIO", ("FusionIO", f"{HEAD}randread,4k,1,2170\nrandread,8k,1,2000\n"))
    page = shown(blog, other)
    assert len(ratios(page)) == 2
    assert not page.findings
    (advice,) = page.advice  # but it is said why
    assert advice.nearest
    assert advice.nearest.products == (Product(Kind.IMPORT, f"{blog.value}/A"), other)


def test_a_cancelled_run_beside_a_complete_one_is_said(samsung: Lab, intel: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    intel.measure(50.0, iodepth=1)
    models = Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL)
    said = list(notes(shown(*models)))
    Run.objects.filter(number=2).update(state=RunState.CANCELLED, trial_count=40)
    (new,) = [note for note in notes(shown(*models)) if note not in said]
    assert new.startswith("Run 2 was cancelled after 1 of 40 trials.")


def test_conclusions_with_the_largest_differences_are_first(samsung: Lab, intel: Lab) -> None:
    for pattern, factor in (("randread", 1.0), ("randwrite", 1.5), ("read", 4.0)):
        direction = "write" if pattern == "randwrite" else "read"
        samsung.measure(*(100.0 * noise for noise in TWICE), pattern=pattern, direction=direction)
        intel.measure(*(100.0 * factor * noise for noise in TWICE), pattern=pattern, direction=direction)
    page = shown(Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL))
    ranks = [one.rank for one in page.findings]
    assert ranks == sorted(ranks)
    assert page.findings[0].panel.chart == "read"


def test_results_of_an_import_do_not_state_a_place(samsung: Lab) -> None:
    samsung.measure(100.0, iodepth=1)
    made = an_import(text=PLAIN)
    page = shown(Product(Kind.MODEL, SAMSUNG), Product(Kind.IMPORT, str(made.number)))
    assert page.shared == 1
    assert not {"Host", "Controller"} & {*page.unstated[Product(Kind.IMPORT, str(made.number))]}


def test_two_products_that_a_third_keeps_apart_are_offered_alone(hosts: tuple[Host, Host]) -> None:
    """A run is compared with a host over its drives, but beside a drive model at its host."""
    measure(a_drive(hosts[0], "d0", model="A"), 1, 100.0, "c")
    measure(a_drive(hosts[1], "d0", model="A"), 2, 50.0, "c")
    host, run = Product(Kind.HOST, "h1"), Product(Kind.RUN, "2")
    assert ratios(shown(host, run)) == {"4 KiB · QD 1": 0.5}
    of_run = shown(host, Product(Kind.MODEL, "A"), run).advice[-1]
    assert of_run.nearest
    assert of_run.nearest.products == (host, run)


def test_products_without_a_common_place_are_not_put_into_cells(
    hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compare only two of the three hosts cannot give a ratio, whatever their workloads."""
    for number, (host, model) in enumerate(zip((*hosts, a_host("h3")), "ABC", strict=True), start=1):
        measure(a_drive(host, "d0", model=model), number, 100.0, "c")
    products = tuple(Product(Kind.HOST, slug) for slug in ("h1", "h2", "h3"))
    page = side_by_side(Selection(products, products[0]))
    monkeypatch.setattr(matching, "Grid", pytest.fail)
    assert [advice.nearest for advice in page.advice] == [None, None]


def test_a_pair_that_several_products_are_offered_is_read_once(
    hosts: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """First alike with a third host, not with the two that are on the page."""
    measure(a_drive(hosts[0], "d0", model="A"), 1, 100.0, "c")
    measure(a_drive(hosts[1], "d0", model="B"), 2, 100.0, "c")
    measure(a_drive(a_host("h3"), "d0", model="C"), 3, 100.0, "c")
    measure(a_drive(a_host("h4"), "d0", model="A"), 4, 50.0, "c")
    products = tuple(Product(Kind.HOST, slug) for slug in ("h1", "h2", "h3"))
    page, pairs = side_by_side(Selection(products, products[0])), list[tuple[Product, ...]]()

    def counted(asked: tuple[Product, ...]) -> Read:
        pairs.append(asked)
        return read_results(asked)

    monkeypatch.setattr(side_by_side_module, "read_results", counted)
    assert [advice.nearest and advice.nearest.products[1].value for advice in page.advice] == ["h4", "h4"]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == 1
