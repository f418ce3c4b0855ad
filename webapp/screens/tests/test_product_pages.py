"""The pages of drives, drive models and targets."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from webapp.bench import product_history
from webapp.bench.product_history import changes, over_time, runs
from webapp.bench.products import Kind, Product
from webapp.bench.reading import read_results
from webapp.bench.side_by_side import Selection, side_by_side
from webapp.bench.tests.conftest import SAMSUNG
from webapp.core.formatting import significant
from webapp.results.models import Result, StreamRun, known
from webapp.screens.bench import product_parts
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import FACTS, START, Lab

MODEL = Product(Kind.MODEL, SAMSUNG)


@pytest.fixture
def labs(db: None) -> tuple[Lab, Lab, Lab]:
    """Two runs on one drive, with a new firmware in between, and one on another drive of this model."""
    first = Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S1"))
    second = Lab(first.target, version=first.run.version, number=2)
    other = Lab(a_drive(a_host("storage2"), "nvme0", model=SAMSUNG, serial="S2"), number=3)
    for lab, firmware in ((first, "A"), (second, "B"), (other, "A")):
        for depth in (1, 2, 4):
            speed = 100.0 * depth * lab.number
            lab.measure(speed, speed * 1.01, iodepth=depth, facts=FACTS | {"device.firmware": firmware})
        at = START + timedelta(days=lab.number)
        Result.objects.filter(run=lab.run).update(measured_at=at)
    return first, second, other


def test_a_model_shows_headlines_values_over_time_curves_and_runs(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    page = unescape(operator.get(f"/products/model/{SAMSUNG}/").content.decode())
    assert "18 in 3 runs" in page
    assert "Random read, highest over time" in page
    assert "2 drives: choose one of S1, S2" in page  # the mean over drives is the value of none of them
    assert "Random read over queue depth" in operator.get("/products/serial/S1/").content.decode()
    assert page.index("Run 3</a>") < page.index("Run 1</a>")
    assert f'href="/bench/?product=model%3A{SAMSUNG.replace(" ", "+")}"' in page


def test_a_drive_and_a_target_show_their_own_results_only(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    assert "12 in 2 runs" in operator.get("/products/serial/S1/").content.decode()
    page = operator.get("/hosts/storage2/targets/nvme0/").content.decode()
    assert "6 in 1 run" in page
    assert "Run 1</a>" not in page


def test_values_are_those_of_bench_and_rankings(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    """Over both versions of the firmware, which the cell says. Values over time have each run."""
    parts = operator.get("/hosts/storage1/targets/nvme0/").context["parts"]
    (highest, *_) = parts.headlines
    assert (highest.title, highest.cells[0].value) == ("Random read, highest", "569")
    assert (highest.cells[0].n, highest.cells[0].pooled) == (4, "2 firmware versions")
    bench = operator.get("/api/v1/bench?product=target:storage1/nvme0").json()
    ranked = operator.get("/api/v1/rankings?iodepth=4").json()
    (entry,) = (entry for group in ranked["groups"] for entry in group["entries"] if "storage1" in entry["where"])
    means = [headline["cells"][0]["mean"] for headline in bench["headlines"]]
    assert [significant(mean) for mean in means[:2]] == [row.cells[0].value for row in parts.headlines[:2]]
    assert entry["mean"] == pytest.approx(means[0])
    assert entry["n"] == highest.cells[0].n
    over_time, *_, curve = parts.charts
    assert [row.cells for row in over_time.table.rows] == [("402",), ("804",)]
    assert [row.cells for row in curve.table.rows] == [("142",), ("284",), ("569",)]


def test_values_of_several_versions_of_the_tool_say_so(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    again = Lab(labs[2].target, version=labs[2].run.version, number=4)
    results = again.measure(900.0, iodepth=4, facts=FACTS | {"device.firmware": "A"})
    StreamRun.objects.filter(results__in=results).update(engine_version="fio-9.9")
    parts = operator.get("/hosts/storage2/targets/nvme0/").context["parts"]
    assert (parts.headlines[0].cells[0].n, parts.headlines[0].cells[0].pooled) == (3, "2 tools")


def test_the_highest_value_is_that_of_all_plans(operator: Client, db: None) -> None:
    """Not of the plan alone that measured this load last."""
    first = Lab(a_drive(a_host("storage1"), "nvme0"))
    first.measure(9000.0, 9000.0, iodepth=4, scheduler="none")
    second = Lab(first.target, number=2)
    second.measure(800.0, 800.0, iodepth=4)
    second.measure(400.0, 400.0, iodepth=1)
    Result.objects.filter(run=second.run).update(measured_at=START + timedelta(days=1))
    headlines = operator.get("/hosts/storage1/targets/nvme0/").context["parts"].headlines
    rates = [(row.title, row.cells[0].value, row.unit) for row in headlines][:2]
    assert rates == [("Random read, highest", "9,000", "IOPS"), ("Random read, lowest load", "400", "IOPS")]


def test_all_rows_of_one_metric_have_one_unit(operator: Client, db: None) -> None:
    lab = Lab(a_drive(a_host("storage1"), "nvme0"))
    lab.measure(90_000.0, 90_000.0, iodepth=32)
    lab.measure(900.0, 900.0, iodepth=1)
    headlines = operator.get("/hosts/storage1/targets/nvme0/").context["parts"].headlines
    rates = [(row.cells[0].value, row.cells[0].interval, row.unit) for row in headlines if "p99" not in row.title]
    assert rates == [("90.0", "90.0 to 90.0", "kIOPS"), ("0.900", "0.900 to 0.900", "kIOPS")]


def test_values_are_those_of_the_newest_run_if_a_plan_states_one_more_setting(operator: Client, db: None) -> None:
    first = Lab(a_drive(a_host("storage1"), "nvme0"))
    for number in range(1, 5):
        lab = first if number == 1 else Lab(first.target, version=first.run.version, number=number)
        if number < 4:
            lab.measure(1000.0 - number, 1000.0 - number, iodepth=4)
        else:
            lab.measure(1000.0 - number, 1000.0 - number, iodepth=4, scheduler="none")
        Result.objects.filter(run=lab.run).update(measured_at=START + timedelta(days=number))
    headlines = operator.get("/hosts/storage1/targets/nvme0/").context["parts"].headlines
    assert [(row.title, row.cells[0].n) for row in headlines] == [("Random read", 2), ("Random read, p99", 2)]
    assert headlines[0].cells[0].value == "996"


def test_targets_are_not_pooled_over_time(labs: tuple[Lab, Lab, Lab]) -> None:
    found = side_by_side(Selection((MODEL,), MODEL))
    row = found.headlines[0]
    values = over_time(found.matched, MODEL, row.title, row.panel, row.workload).values
    assert {name: [value.run for value in own] for name, own in values.items()} == {
        "storage1/nvme0": ["1", "2"], "storage2/nvme0": ["3"],
    }  # fmt: skip


def test_changes_are_between_runs_of_one_target(labs: tuple[Lab, Lab, Lab]) -> None:
    rows = read_results([MODEL]).rows[MODEL]
    (change,) = changes(rows)
    assert (change.run, change.target, change.label, change.before, change.after) == (
        2, "storage1/nvme0", "Firmware", "A", "B",
    )  # fmt: skip
    assert [run.number for run in runs(rows)] == [3, 2, 1]


def test_a_fact_that_becomes_known_is_no_change_and_one_that_is_not_stated_keeps_its_value(
    labs: tuple[Lab, Lab, Lab],
) -> None:
    numa = [{}, {"host.numa_nodes": "1"}, {}, {"host.numa_nodes": "2"}]
    for number, facts in enumerate(numa, start=4):
        again = Lab(labs[2].target, number=number)
        again.measure(1.0, iodepth=1, facts=FACTS | {"device.firmware": "A"} | facts)
        Result.objects.filter(run=again.run).update(measured_at=START + timedelta(days=number))
    found = [change for change in changes(read_results([MODEL]).rows[MODEL]) if change.run > 3]
    assert [(change.run, change.before, change.after) for change in found] == [(7, "1", "2")]


def test_what_a_plan_sets_is_no_change(labs: tuple[Lab, Lab, Lab]) -> None:
    again = Lab(labs[2].target, number=4)
    facts = FACTS | {"device.firmware": "A", "device.scheduler": "kyber"}
    again.measure(1.0, iodepth=1, scheduler="kyber", facts=facts)
    Result.objects.filter(run=again.run).update(measured_at=START + timedelta(days=9))
    assert len(changes(read_results([MODEL]).rows[MODEL])) == 1


def test_what_follows_from_a_setting_of_the_plan_is_no_change(labs: tuple[Lab, Lab, Lab]) -> None:
    """The kernel changes the size of the queue with the scheduler, and each run has another random order."""
    orders = (("none", "kyber"), ("kyber", "none"))
    for number, order in enumerate(orders, start=4):
        again = Lab(labs[2].target, number=number)
        for scheduler in order:
            queue = {"none": "1023", "kyber": "256"}[scheduler]
            facts = {"device.firmware": "A", "device.scheduler": scheduler, "device.nr_requests": queue}
            again.measure(1.0, iodepth=1, scheduler=scheduler, facts=FACTS | facts)
        Result.objects.filter(run=again.run).update(measured_at=START + timedelta(days=number))
    found = changes(read_results([MODEL]).rows[MODEL])
    assert [change.label for change in found if change.run == 5] == []


def test_an_import_without_a_time_is_not_drawn_over_time(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    made = an_import(drive=SAMSUNG, host="storage1")
    product = Product(Kind.MODEL, SAMSUNG)
    found = side_by_side(Selection((product,), product))
    drawn = [over_time(found.matched, product, row.title, row.panel, row.workload).values for row in found.headlines]
    assert {value.run for values in drawn for own in values.values() for value in own} == {"1", "2", "3"}
    page = operator.get(f"/products/model/{SAMSUNG}/").content.decode()
    row = page.split(f"Import {made.number}</a>")[1].split("</tr>")[0]
    assert "not stated" in row


def test_it_says_how_many_targets_are_not_drawn(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    for place in range(8):
        drive = a_drive(a_host(f"more{place}"), "nvme0", model=SAMSUNG, serial=f"M{place}")
        Lab(drive, version=labs[0].run.version, number=10 + place).measure(100.0, iodepth=1)
    assert "the 8 targets with the most runs, of 10" in operator.get(f"/products/model/{SAMSUNG}/").content.decode()


def test_of_many_runs_the_newest_are_listed_and_drawn(
    operator: Client, labs: tuple[Lab, Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page with thousands of rows takes seconds."""
    monkeypatch.setattr(product_history, "MAX_VALUES", 1)
    monkeypatch.setattr(product_parts, "MAX_RUNS", 1)
    found = side_by_side(Selection((MODEL,), MODEL))
    row = found.headlines[0]
    drawn = over_time(found.matched, MODEL, row.title, row.panel, row.workload)
    assert [value.run for value in drawn.values["storage1/nvme0"]] == ["2"]
    assert drawn.runs == 2
    parts = operator.get("/hosts/storage1/targets/nvme0/").context["parts"]
    assert ([run.number for run in parts.runs], parts.run_count) == ([2], 2)


def test_a_drive_without_results_shows_where_it_is(operator: Client, db: None) -> None:
    a_drive(a_host("storage1"), "nvme0", model="NEW", serial="N1")
    page = operator.get("/products/serial/N1/").content.decode()
    assert "storage1/nvme0" in page
    assert "No results yet" in page


def test_layouts_and_configurations_have_pages(operator: Client, labs: tuple[Lab, Lab, Lab]) -> None:
    (result,) = labs[2].measure(70.0, iodepth=1, layout="raid0 x2")
    digest = known(known(result.stream_run).configuration_id)
    for path in ("layout/raid0%20x2", f"configuration/{digest[:10]}"):
        page = operator.get(f"/products/{path}/").content.decode()
        assert "in 1 run" in page, path
        (address,) = re.findall(r'href="(/results/\?[^"]*)"', page)
        assert operator.get(unescape(address)).status_code == 200


@pytest.mark.parametrize("path", ["serial/nothing", "plan/first-look", f"model/{'x' * 301}"])
def test_what_does_not_exist_is_not_found(operator: Client, path: str) -> None:
    assert operator.get(f"/products/{path}/").status_code == 404
