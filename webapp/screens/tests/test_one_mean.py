"""The value shown is the value compared: on every page, file and answer, a ratio is second ÷ first.

The repeats are such that arithmetic and geometric means differ in which drive is faster: 3,333 against 2,500 IOPS, but
2,000 against 2,500. One repeat of the second drive at queue depth 32 is missing.
"""

import csv
import io
import json
import random
import re
from collections.abc import Callable
from html import unescape
from statistics import fmean

import pytest
from django.test import Client

from webapp.analysis.models import SavedComparison
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.core.statistics import mean_of
from webapp.results.management.commands.run_plan import point_table
from webapp.results.models import Result
from webapp.results.reading.newest import PER_CELL
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import FACTS, Lab

pytestmark = pytest.mark.django_db
FIRST = {1: (1000.0, 1000.0, 8000.0), 32: (70_000.0, 70_000.0, 560_000.0)}
SECOND = {1: (2500.0, 2500.0, 2500.0), 32: (180_000.0, 150_000.0)}
EXPLORE = "x=iodepth&series=model&baseline=" + SAMSUNG.replace(" ", "+")
BENCH = f"product=model:{SAMSUNG}&product=model:{INTEL}".replace(" ", "+")
RATIOS = {depth: mean_of(SECOND[depth]) / mean_of(FIRST[depth]) for depth in FIRST}


@pytest.fixture
def labs(db: None) -> tuple[Lab, Lab]:
    first = Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S1"))
    second = Lab(a_drive(first.target.host, "nvme1", model=INTEL, serial="I1"), number=2)
    for lab, values in ((first, FIRST), (second, SECOND)):
        for depth, iops in values.items():
            lab.measure(*iops, iodepth=depth)
    for result in Result.objects.all():  # latencies in proportion: the same contradiction, the other way round
        Result.objects.filter(pk=result.pk).update(p99_ns=int(4e9 / (result.iops or 1)))
    return first, second


def body(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response.content[:500]
    return response.getvalue().decode()


def texts(page: str) -> str:
    """The text of a page without tags."""
    return unescape(re.sub(r"<[^>]+>", " ", page))


def test_explore_and_its_file_divide_the_values_that_they_show(operator: Client, labs: tuple[Lab, Lab]) -> None:
    for metric in ("iops", "latency_p99", "bytes_per_s"):
        made = json.loads(body(operator, f"/api/v1/compare?{EXPLORE}&metric={metric}"))
        by_baseline = {series["is_baseline"]: series["cells"] for series in made["panels"][0]["series"]}
        first, second = by_baseline[True], by_baseline[False]
        for mine, theirs in zip(second, first, strict=True):
            ratio = mine["summary"]["mean"] / theirs["summary"]["mean"]
            assert mine["against_baseline"]["ratio"]["value"] == pytest.approx(ratio, rel=1e-9)
        rows = list(csv.DictReader(io.StringIO(body(operator, f"/explore.csv?{EXPLORE}&metric={metric}"))))
        mean = next(head for head in rows[0] if "geometric mean" in head)
        means = {(row["Queue depth"], row["Baseline"]): float(row[mean]) for row in rows}
        compared = [row for row in rows if row["Ratio to the baseline"]]
        assert len(compared) == 2
        for row in compared:
            depth, mine = row["Queue depth"], float(row[mean])
            (theirs,) = (value for (other, _), value in means.items() if other == depth and value != mine)
            assert float(row["Ratio to the baseline"]) == pytest.approx(mine / theirs, rel=1e-6)


def test_bench_its_file_and_its_api_divide_the_values_that_they_show(operator: Client, labs: tuple[Lab, Lab]) -> None:
    made = json.loads(body(operator, f"/api/v1/bench?{BENCH}"))
    pairs = [row["cells"] for row in (*made["rows"], *made["headlines"])]
    assert len(pairs) > 3
    for theirs, mine in pairs:
        assert mine["ratio"] == pytest.approx(mine["mean"] / theirs["mean"], rel=1e-9)
    rows = list(csv.DictReader(io.StringIO(body(operator, f"/bench.csv?{BENCH}"))))
    for theirs_row, mine_row in zip(rows[::2], rows[1::2], strict=True):
        quotient = float(mine_row["Geometric mean"]) / float(theirs_row["Geometric mean"])
        assert float(mine_row["Ratio to the baseline"]) == pytest.approx(quotient, rel=1e-6)


def test_a_verdict_divides_the_values_that_it_shows(operator: Client, labs: tuple[Lab, Lab]) -> None:
    sides = {"baseline": f"model={SAMSUNG}", "candidate": f"model={INTEL}", "metric": ["iops", "latency_p99"]}
    made = json.loads(operator.get("/api/v1/verdict", {**sides, "single_values": "true"}).content)
    known = [row for row in made["rows"] if row["ratio"]]
    assert len(known) > 3
    for row in known:
        assert row["ratio"] == pytest.approx(row["value"] / row["baseline"], rel=1e-9)


@pytest.mark.parametrize(
    "address",
    [
        f"/explore/?{EXPLORE}",
        f"/explore/?{EXPLORE}&chart=heat",
        f"/explore/?{EXPLORE}&chart=scatter",
        f"/bench/?{BENCH}",
        "/products/model/" + SAMSUNG.replace(" ", "%20") + "/",
    ],
)
def test_no_page_shows_an_arithmetic_mean(operator: Client, labs: tuple[Lab, Lab], address: str) -> None:
    page = texts(body(operator, address))
    assert re.search(r"\b2\.00\b|\b2,000\b|\b140\b", page), "the geometric mean of the first drive"
    assert not re.search(r"\b3\.33\b|\b3,33[03]\b|\b233\b", page), "its arithmetic mean"


def test_reports_and_pictures_have_the_same_values(operator: Client, labs: tuple[Lab, Lab]) -> None:
    for query in (EXPLORE, BENCH):
        operator.post("/comparisons/save/", {"title": "Two", "note": "", "query": query})
        saved = SavedComparison.objects.latest("pk")
        report = texts(body(operator, f"/comparisons/{saved.pk}/report/"))
        assert re.search(r"\b2\.00\b|\b2,000\b", report)
        assert not re.search(r"\b3\.33\b|\b3,33[03]\b", report)


@pytest.mark.parametrize("too_many", [False, True])
def test_a_drive_with_a_long_history_has_one_value_on_every_page(
    operator: Client, labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch, *, too_many: bool
) -> None:
    """It became slower: a page that reads more or fewer of its results has another value."""
    chance = random.Random(7)
    for number in range(3, 43):
        Lab(labs[0].target, number=number).measure(*(chance.uniform(5e5, 6e5) / number for _ in range(3)), iodepth=32)
    Run.objects.filter(number__gt=2).update(trial_count=3)
    if too_many:
        monkeypatch.setattr("webapp.bench.reading.MAX_RESULTS", 24)
    bench = json.loads(body(operator, f"/api/v1/bench?{BENCH}&product=target:storage1/nvme1"))
    assert bench["products"][0]["cut"] == too_many
    at_32 = next(row for row in bench["rows"] if "QD 32" in row["workload"] and row["metric"] == "iops")
    ranked = json.loads(body(operator, "/rankings.json?iodepth=32"))
    (entry,) = (entry for entry in ranked["groups"][0]["entries"] if entry["name"] == SAMSUNG)
    assert (entry["mean"], entry["results"]) == (at_32["cells"][0]["mean"], PER_CELL)
    sides = {"baseline": f"model={SAMSUNG}", "candidate": f"model={INTEL}", "metric": "iops"}
    judged = json.loads(operator.get("/api/v1/verdict", sides).content)
    assert any(limit.startswith("Values are of the newest") for limit in judged["limits"])
    assert {row["baseline"] for row in judged["rows"] if row["point"]} >= {at_32["cells"][0]["mean"]}
    explored = json.loads(body(operator, f"/api/v1/compare?{EXPLORE}"))
    (base,) = (one for one in explored["panels"][0]["series"] if one["is_baseline"])
    assert at_32["cells"][0]["mean"] in [cell["summary"]["mean"] for cell in base["cells"]]
    headline = operator.get(f"/products/model/{SAMSUNG}/").context["parts"].headlines[0].cells[0]
    assert float(headline.value.rstrip("k")) == pytest.approx(entry["mean"] / 1000, rel=5e-3)
    for address in (f"/explore/?{EXPLORE}", f"/bench/?{BENCH}", "/rankings/?iodepth=32", f"/products/model/{SAMSUNG}/"):
        words = " ".join(texts(body(operator, address)).split())
        assert f"alues of the newest {PER_CELL} results" in words.replace("alues are of", "alues of"), address


def test_a_drive_that_was_moved_has_one_value_at_each_controller(operator: Client, labs: tuple[Lab, Lab]) -> None:
    """Bench reads the results at a controller, and Rankings must not read the newest ones at both."""
    chance = random.Random(7)
    for number, controller in ((3, "HBA 1"), (4, "HBA 1"), (5, "HBA 2")):
        facts = FACTS | {"device.nvme0.controller.model": controller}
        values = [chance.uniform(5e5, 6e5) / number for _ in range(10)]
        Lab(labs[0].target, number=number).measure(*values, iodepth=8, facts=facts)
    bench = json.loads(body(operator, "/api/v1/bench?product=controller:HBA+1&product=controller:HBA+2"))
    (at_8,) = (row for row in bench["rows"] if "QD 8" in row["workload"] and row["metric"] == "iops")
    first, second = at_8["cells"]
    assert (first["n"], second["n"]) == (PER_CELL, 10)
    ranked = json.loads(body(operator, "/rankings.json?iodepth=8&rank=controller"))
    entries = {entry["name"]: entry for group in ranked["groups"] for entry in group["entries"]}
    assert {name: entry["mean"] for name, entry in entries.items()} == {"HBA 1": first["mean"], "HBA 2": second["mean"]}
    for name, cell in (("HBA+1", first), ("HBA+2", second)):
        filtered = json.loads(body(operator, f"/rankings.json?iodepth=8&controller={name}"))
        (entry,) = (entry for group in filtered["groups"] for entry in group["entries"])
        assert (entry["name"], entry["mean"], entry["results"]) == (SAMSUNG, cell["mean"], cell["n"])


def test_the_table_of_a_run_for_terminals_has_the_same_values(labs: tuple[Lab, Lab]) -> None:
    table = "\n".join(" ".join(row) for row in point_table(labs[0].run))
    assert "2.00k" in table
    assert "3.33k" not in table


def test_zeros_are_stated_and_not_in_the_spread(operator: Client, labs: tuple[Lab, Lab]) -> None:
    """Mean and spread are of the same values."""
    lab = Lab(labs[0].target, number=3)
    results = lab.measure(1.0, 1000.0, 1010.0, 1020.0, iodepth=1)
    Result.objects.filter(pk=results[0].pk).update(iops=0.0)
    (row,) = point_table(lab.run)[1:]
    assert "1.01k ± 10.0 (0 in 1 of 4)" in row
    assert "± 0.990 %" in body(operator, "/runs/3/")


def test_the_data_contradict_themselves_with_arithmetic_means() -> None:
    """Else this module would pass without geometric means."""
    compared: Callable[[int], bool] = lambda depth: fmean(SECOND[depth]) > fmean(FIRST[depth])  # noqa: E731
    assert all(RATIOS[depth] > 1 and not compared(depth) for depth in FIRST)
