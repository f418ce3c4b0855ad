"""The page Rankings, its files and its API."""

import csv
import json
import re
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from webapp.bench.products import read_products
from webapp.bench.rankings.question import LIMITS_NS
from webapp.bench.rankings.standings import Lead
from webapp.bench.side_by_side import read_selection, side_by_side
from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.results.models import known
from webapp.screens.rankings.views import axis_of
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import FACTS, Lab


@pytest.fixture
def drives(db: None) -> None:
    """Two drives in one host and one in another; a database's four workloads on the first two."""
    host, other = a_host("storage1"), a_host("storage2")
    places = ((host, "nvme0", "A", 100.0), (host, "nvme1", "B", 200.0), (other, "nvme0", "C", 900.0))
    for number, (at, name, model, speed) in enumerate(places, start=1):
        lab = Lab(a_drive(at, name, model=model, serial=model), number=number)
        for pattern, direction in (("randread", "read"), ("randwrite", "write")):
            for depth in (1, 32) if model != "C" else (1,):
                lab.measure(speed, speed * 1.01, speed * 0.99, iodepth=depth, pattern=pattern, direction=direction)


def shown(client: Client, address: str) -> Any:
    """The context of the page."""
    response = client.get(address)
    assert response.status_code == 200
    return response.context


def test_the_page_has_groups_scores_and_what_is_missing(operator: Client, drives: None) -> None:
    page = shown(operator, "/rankings/?iodepth=32")
    ranking = page["ranking"]
    assert [[entry.name for entry in group.entries] for group in ranking.groups] == [["B", "A"]]
    assert ranking.groups[0].order.lead is Lead.CLAIMED
    assert ranking.not_measured == ("C",)
    (scores,) = page["scores"]
    assert [(score.name, score.value) for score in scores.scores] == [("B", "100"), ("A", "50")]


def test_its_bars_are_a_picture_to_save(operator: Client, drives: None) -> None:
    page = operator.get("/rankings/?iodepth=32").content.decode()
    assert page.count("data-save-as=") == 2  # PNG and SVG
    (drawing,) = re.findall(r'<div class="chart-drawing" id="drawing-0".*?</div>\s*</div>', page, re.DOTALL)
    bars = [float(width) for width in re.findall(r'<rect fill="#\w+" x="260" y="6" width="([\d.]+)"', drawing)]
    assert bars[1] == pytest.approx(bars[0] / 2, rel=0.01)  # B and A
    assert all(f">{text}</text>" in drawing for text in ("A", "B", "100", "200"))


def test_whiskers_are_explained_where_they_are_drawn(operator: Client, drives: None) -> None:
    assert "Whiskers: 95 % interval" in operator.get("/rankings/?iodepth=32").content.decode()


def test_whiskers_are_not_explained_of_values_that_were_measured_once(operator: Client, db: None) -> None:
    host = a_host("storage1")
    for number, model in enumerate("AB", start=1):
        lab = Lab(a_drive(host, f"nvme{number}", model=model, serial=model), number=number)
        lab.measure(100.0, iodepth=1, pattern="randread")
    response = operator.get("/rankings/")
    assert response.context["groups"]
    assert "Whiskers" not in response.content.decode()


def test_conditions_are_those_that_all_groups_share(operator: Client, drives: None) -> None:
    """A group of another engine: what only the first group shares is not stated for all."""
    before = shown(operator, "/rankings/?iodepth=1")["same"]
    for number, name in enumerate(("nvme8", "nvme9"), start=8):
        lab = Lab(a_drive(a_host(f"other{number}"), name, model=name, serial=name), number=number)
        lab.measure(5.0, 5.1, 4.9, iodepth=1, pattern="randread", ioengine="psync")
    after = shown(operator, "/rankings/?iodepth=1&hosts=together")
    assert len(after["ranking"].groups) == 2
    assert set(before) - set(after["same"])
    assert set(after["same"]) < set(before)


def test_hosts_together_say_that_hosts_differ(operator: Client, drives: None) -> None:
    page = shown(operator, "/rankings/?hosts=together&iodepth=1")
    assert "hosts differ" in page["verdict"].pills
    assert [entry.where for entry in page["groups"][0].entries] == ["storage2", "storage1", "storage1"]


def test_every_link_of_the_page_works_and_selected_products_open_in_bench(operator: Client, drives: None) -> None:
    page = shown(operator, "/rankings/")
    addresses = [address for _, address, *_ in (*page["kinds"], *page["hosts"])]
    addresses += [load.address for load in page["loads"]] + [address for _, address, *_ in page["uses"]]
    for address in addresses:
        assert operator.get(f"/rankings/{address}").status_code == 200
    products = [entry.product for entry in page["groups"][0].entries]
    assert len(read_products(products)) == 2
    bench = operator.get("/bench/", {"product": products})
    assert bench.status_code == 200
    assert bench.context["found"].shared


def test_the_leader_of_one_of_several_groups_is_not_called_the_leader_of_all(operator: Client, drives: None) -> None:
    assert "in storage1" not in shown(operator, "/rankings/?iodepth=32")["verdict"].first
    other = a_drive(a_host("storage3"), "nvme0", model="D", serial="D")
    again = a_drive(other.host, "nvme1", model="E", serial="E")
    for number, drive in enumerate((other, again), start=4):
        Lab(drive, number=number).measure(5000.0, 5050.0, iodepth=32)
    page = shown(operator, "/rankings/?iodepth=32")
    assert len(page["ranking"].groups) == 2
    assert any(f" in {host}" in page["verdict"].first for host in ("storage1", "storage3"))


def test_the_value_is_that_of_bench(operator: Client, drives: None) -> None:
    entries = shown(operator, "/rankings/?iodepth=32")["ranking"].groups[0].entries
    products = read_selection([str(entry.product) for entry in entries])
    assert products
    matched = side_by_side(products).matched
    (panel,) = [panel for panel in matched.panels if panel.metric.key == "iops" and panel.chart == "randread"]
    (key,) = [one.key for one in matched.in_panel(panel) if one.number("iodepth") == 32]
    assert [matched.mean(panel, entry.product, key) for entry in entries] == [entry.summary.mean for entry in entries]


def test_it_says_what_its_values_are_means_of(operator: Client, drives: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bench has another value of a drive with more results, and says in its cell over what it is a mean."""
    again = Lab(Target.objects.get(model="A"), number=4)
    again.measure(*3 * [150.0], iodepth=1, facts=FACTS | {"device.firmware": "B"})
    bench = side_by_side(known(read_selection(["model:A"])))
    rows = [row for group in bench.groups for row in group.rows if row.panel.chart == "randread"]
    (cell,) = (row.cells[0] for row in rows if row.workload.concurrency == 1)
    page = shown(operator, "/rankings/?iodepth=1&pattern=randread")
    ranking, caveats = page["ranking"], page["caveats"]
    assert not ranking.has_more
    assert known(cell).pooled in "".join(caveats)
    for module in ("bench.reading", "results.reading.newest"):
        monkeypatch.setattr(f"webapp.{module}.PER_CELL", 4)
    page = shown(operator, "/rankings/?iodepth=1&pattern=randread")
    assert page["ranking"].has_more
    assert "newest 4 results" in "".join(page["caveats"])
    assert len(page["caveats"]) == len(caveats) + 1


def test_a_filter_stands_above_the_page_and_can_be_removed(operator: Client, drives: None) -> None:
    page = shown(operator, "/rankings/?host=storage1&source=own")
    assert [text for text, _ in page["chips"]] == ["storage1", "Own results"]
    _, address = page["chips"][0]
    assert shown(operator, f"/rankings/{address}")["ranking"].question.filter.hosts == frozenset()


def test_a_form_keeps_the_other_choices(operator: Client, drives: None) -> None:
    page = shown(operator, "/rankings/?rank=host&use=log&host=storage1&weight=50&weight=50&iodepth=1")
    assert set(page["kept"]) >= {("rank", "host"), ("use", "log"), ("host", "storage1"), ("weight", "50")}
    assert ("host", "storage1") not in page["kept_by_filter"]
    assert "weight" not in dict(page["kept_by_weights"])


@pytest.mark.parametrize("query", ["rank=x", "pattern=%00", "weight=1", "iodepth=0", "block_size=four", "metric=iops"])
def test_a_wrong_address_is_refused_on_the_page_in_files_and_in_the_api(
    operator: Client, query: str, drives: None
) -> None:
    for address in ("/rankings/", "/rankings.csv", "/api/v1/rankings"):
        assert operator.get(f"{address}?{query}").status_code == 422


def test_loads_within_a_latency_are_offered_where_shares_were_measured(operator: Client, db: None) -> None:
    """Without shares, another metric can still be chosen."""

    def metrics(address: str) -> list[str]:
        (choice,) = (each for each in shown(operator, address)["choices"] if each.name == "metric")
        return [option.value for group in choice.groups for option in group.options]

    host = a_host("storage1")
    Lab(a_drive(host, "nvme7", model="A", serial="S7"), number=7).measure(100.0)
    assert not {*LIMITS_NS} & {*metrics("/rankings/")}
    assert {"rate", "within_1ms"} <= {*metrics("/rankings/?metric=within_1ms")}
    for number, (model, rate) in enumerate((("B", 900.0), ("C", 500.0)), start=8):
        own = Lab(a_drive(host, f"nvme{number}", model=model, serial=f"S{number}"), number=number)
        own.measure(rate, rate * 1.01, load=50)
    assert {*LIMITS_NS} <= {*metrics("/rankings/")}
    context = shown(operator, "/rankings/?metric=within_1ms")
    (group,) = context["groups"]
    assert [(entry.name, entry.where, entry.p99) for entry in group.all] == [
        ("B", "50 % of its highest", "4.00 µs"), ("C", "50 % of its highest", "4.00 µs"),
    ]  # fmt: skip


def test_an_empty_installation_has_a_page(operator: Client) -> None:
    assert shown(operator, "/rankings/")["ranking"].load is None


def test_files_and_the_api_have_the_numbers_of_the_page(
    operator: Client, drives: None, queries_of: Callable[[str], int]
) -> None:
    found = operator.get("/api/v1/rankings?iodepth=32").json()
    assert json.loads(operator.get("/rankings.json?iodepth=32").content) == found
    (group,) = found["groups"]
    assert [(entry["name"], entry["standing"]) for entry in group["entries"]] == [("B", "first"), ("A", "behind")]
    assert group["entries"][1]["ratio"] == pytest.approx(2)
    assert found["not_measured"] == ["C"]
    assert found["scores"][0]["base"] == "model:B"
    text = operator.get("/rankings.csv?iodepth=32").getvalue().decode()
    lines = list(csv.DictReader(StringIO(text)))
    assert [line["Name"] for line in lines] == ["B", "A", "C"]
    assert float(lines[0]["Geometric mean"]) == pytest.approx(group["entries"][0]["mean"])
    assert queries_of("/rankings/") <= 22


def test_ticks_of_an_axis_are_round_and_end_below_the_longest_bar() -> None:
    axis = axis_of([81_000.0, 3.0], [82_000.0, None], 1.3)
    assert [tick.text for tick in axis.ticks(lambda value: f"{value / 1000:.2f}k")] == ["0k", "25k", "50k", "75k"]
    assert axis.bar(81_000.0, 80_000.0, 82_000.0).end == axis.at(82_000.0)
    assert float(axis.at(82_000.0).rstrip("%")) < 100


def test_a_viewer_may_look(db: None, drives: None) -> None:
    client = Client()
    client.force_login(User.objects.create_user("viola"))
    assert client.get("/rankings/").status_code == 200
