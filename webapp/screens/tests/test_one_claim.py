"""One claim for one question: every page and answer says the same of it."""

import html
import math
import random
import re
from itertools import product
from typing import Any

import pytest
from django.test import Client

from webapp.analysis.run_answer import run_answer
from webapp.analysis.tests.orders import shuffle
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.results.models import Import, Result
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.rows import read_rows
from webapp.runs.models import Run, RunState, Trial
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import START, Lab
from webapp.tests.sampling import part_of

pytestmark = pytest.mark.django_db


@pytest.mark.slow
@pytest.mark.parametrize("seed", part_of(range(12), 0, 3))
def test_explore_the_api_and_a_verdict_make_the_claims_of_the_run(seed: int, operator: Client) -> None:
    """Three factors with small effects, so that the correction decides about many claims."""
    chance = random.Random(seed)
    lab, repeats = Lab(a_target(a_host("a"), "loop0")), chance.choice((3, 4, 6))
    effects = {name: chance.choice((1.0, 0.97, 0.92)) for name in ("bfq", "psync", "1")}
    for scheduler, engine, entropy in product(("none", "bfq"), ("io_uring", "psync"), ("0", "1")):
        speed = 1000 * math.prod(effects.get(level, 1.0) for level in (scheduler, engine, entropy))
        values = [speed * chance.lognormvariate(0, 0.01) for _ in range(repeats)]
        lab.measure(*values, scheduler=scheduler, ioengine=engine, add_random=entropy)
    shuffle(lab.run, chance)
    answer = run_answer(lab.run)
    assert {factor.factor for factor in answer.factors} == {"scheduler", "ioengine", "add_random"}
    for factor in answer.factors:
        made = operator.get(f"/api/v1/compare?{factor.query}").json()
        (series,) = (one for one in made["panels"][0]["series"] if not one["is_baseline"])
        assert series["conclusion"] == factor.conclusion
        assert series["headline"] == factor.text
        assert (factor.conclusion == "none") or factor.text == series["sentence"]
        assert series["against_baseline"]["conclusion"] in (factor.conclusion, "none")  # both directions: no mean
        assert factor.text in html.unescape(operator.get(f"/explore/?{factor.query}").content.decode())
        sides = [f"run=1&factor.{factor.factor}={key}" for key in (made["baseline"], series["key"])]
        asked = {"baseline": sides[0], "candidate": sides[1], "metric": "iops"}
        rows = operator.get("/api/v1/verdict", asked).json()["rows"]
        assert rows[0]["point"] is None  # the mean
        assert rows[0]["conclusion"] == factor.conclusion
        assert rows[0]["ratio"] == pytest.approx(series["against_baseline"]["ratio"]["value"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", part_of(range(4), 0, 2))
def test_bench_makes_the_claims_of_explore(seed: int, operator: Client) -> None:
    """Two drives of one run with small effects at twelve workloads, so that the correction decides about many of
    them; every second run varies two more factors, which share the chance of a false claim."""
    chance, host = random.Random(seed), a_host("storage1")
    drives = [a_drive(host, f"nvme{place}", model=name, serial=name[:1]) for place, name in enumerate((SAMSUNG, INTEL))]
    lab, repeats = Lab(drives[0]), chance.choice((3, 4, 6))
    settings = [("none", "io_uring"), ("bfq", "psync")] if seed % 2 else [("none", "io_uring")]
    workloads = product(("randread", "randwrite"), (4096, 65536), (1, 8, 32), settings)
    for (pattern, size, depth, (scheduler, engine)), (place, drive) in product(workloads, enumerate(drives)):
        speed = 1000 * depth * chance.choice((1.0, 0.98, 0.96)) ** place
        values = [speed * chance.lognormvariate(0, 0.01) for _ in range(repeats)]
        lab.measure(
            *values, target=drive, direction=pattern.removeprefix("rand"), pattern=pattern, block_size=size,
            iodepth=depth, scheduler=scheduler, ioengine=engine,
        )  # fmt: skip
    for result in lab.run.results.all():
        result.p99_ns = int(4e9 / (result.iops or 1) * chance.lognormvariate(0, 0.01))
        result.save(update_fields=["p99_ns"])
    shuffle(lab.run, chance)
    query = f"product=model:{INTEL}&product=model:{SAMSUNG}&baseline=model:{SAMSUNG}"
    for choice, metric in (("rate", "iops"), ("latency_p99", "latency_p99")):
        page = operator.get(f"/bench/?{query}&metric={choice}").content.decode()
        (address,) = re.findall(r'href="/explore/\?([^"]*)">Open in Explore', page)
        made = operator.get(f"/api/v1/compare?{html.unescape(address)}").json()
        assert made["metric"] == metric
        series = [one for panel in made["panels"] for one in panel["series"] if not one["is_baseline"]]
        against = [cell["against_baseline"] for each in series for cell in each["cells"]]
        points = {one["ratio"]["value"]: one for one in against}
        answer = operator.get(f"/api/v1/bench?{query}&metric={choice}").json()
        cells = [row["cells"][0] for row in answer["rows"]]
        assert {cell["ratio"] for cell in cells} == points.keys()
        assert len(points) == 12 * len(settings)
        for cell in cells:
            point = points[cell["ratio"]]
            assert (cell["better"], cell["state"] == "equal") == (point["better"], point["equal"])
            assert (cell["ratio_low"], cell["ratio_high"]) == (point["ratio"]["low"], point["ratio"]["high"])
        for each in series:
            assert any(each["sentence"] in sentence for sentence in answer["conclusions"])


@pytest.mark.parametrize("seed", part_of(range(6), 0, 2))
def test_a_verdict_explore_and_bench_claim_the_same_of_two_runs(seed: int, operator: Client) -> None:
    """Four patterns with small effects: a verdict that has both patterns of a direction in one chart claims more."""
    chance, target = random.Random(seed), a_target(a_host("a"), "loop0")
    speeds = {name: chance.choice((1.0, 0.97, 0.94)) for name in ("read", "randread", "write", "randwrite")}
    for number in (1, 2):
        lab = Lab(target, number=number)
        for (pattern, effect), depth in product(speeds.items(), (1, 32)):
            values = [1000 * depth * effect ** (number - 1) * chance.lognormvariate(0, 0.02) for _ in range(4)]
            lab.measure(*values, pattern=pattern, direction=pattern.removeprefix("rand"), iodepth=depth)
    made = operator.get("/api/v1/compare?x=matched&series=run&panel=pattern&run=1..2&baseline=1").json()
    explored = {panel["key"]: next(one for one in panel["series"] if one["key"] == "2") for panel in made["panels"]}
    asked = {"baseline": "run=1", "candidate": "run=2", "metric": "iops"}
    rows = operator.get("/api/v1/verdict", asked).json()["rows"]
    means = {row["chart"]: row for row in rows if row["point"] is None}
    bench = operator.get("/api/v1/bench?product=run:1&product=run:2&baseline=run:1&metric=rate").json()
    shown = {round(row["cells"][1]["ratio"], 9): row["cells"][1] for row in bench["rows"]}
    assert means.keys() == explored.keys() == speeds.keys()
    for pattern, series in explored.items():
        mean = means[pattern]
        assert mean["ratio"] == pytest.approx(series["against_baseline"]["ratio"]["value"])
        assert (mean["conclusion"], mean["sentence"]) == (series["conclusion"], series["sentence"])
        said = [sentence.lower().replace("bandwidth", "iops") for sentence in bench["conclusions"]]
        assert any(series["sentence"].lower() in sentence for sentence in said)  # Bench names sequential bandwidth
        against = [cell["against_baseline"] for cell in series["cells"]]
        points = {round(each["ratio"]["value"], 9): each for each in against}
        for row in (row for row in rows if row["point"] and row["point"]["pattern"] == pattern):
            point, cell = points.pop(round(row["ratio"], 9)), shown[round(row["ratio"], 9)]
            assert row["conclusion"] == point["conclusion"]
            assert (cell["better"], cell["state"] == "equal") == (point["better"], point["equal"])
        assert not points


def test_a_verdict_matches_parts_with_equal_points_as_explore_does(operator: Client) -> None:
    """Else a cell would be a mean over both parts."""
    target = a_target(a_host("a"), "loop0")
    for number, speed in ((1, 1.0), (2, 0.5)):
        lab = Lab(target, number=number)
        for part, level in (("fresh", 2000.0), ("aged", 200.0)):
            made_of = lab.measure(*(speed * level * (1 + 0.001 * place) for place in range(4)))
            Trial.objects.filter(results__in=made_of).update(part=part)
    made = operator.get("/api/v1/compare?x=matched&series=run&run=1..2&baseline=1").json()
    (series,) = (one for one in made["panels"][0]["series"] if not one["is_baseline"])
    asked = {"baseline": "run=1", "candidate": "run=2", "metric": "iops"}
    rows = operator.get("/api/v1/verdict", asked).json()["rows"]
    ratios = [cell["against_baseline"]["ratio"]["value"] for cell in series["cells"]]
    assert [row["ratio"] for row in rows if row["point"] is not None] == pytest.approx(ratios)
    assert {row["point"]["part"] for row in rows if row["point"]} == {"fresh", "aged"}
    assert rows[0]["ratio"] == pytest.approx(0.5)


def test_bench_matches_parts_with_equal_points_too(operator: Client) -> None:
    target = a_target(a_host("a"), "loop0")
    for number, speed in ((1, 1.0), (2, 0.5)):
        lab = Lab(target, number=number)
        for part, level in (("fresh", 2000.0), ("aged", 200.0)):
            made_of = lab.measure(speed * level, speed * level)
            Trial.objects.filter(results__in=made_of).update(part=part)
    rows = operator.get("/api/v1/bench?product=run:1&product=run:2").json()["rows"]
    assert sorted([cell["mean"] for cell in row["cells"]] for row in rows) == [
        pytest.approx([200.0, 100.0]),
        pytest.approx([2000.0, 1000.0]),
    ]


def test_parts_of_two_plans_are_compared_on_every_page(operator: Client) -> None:
    """Each run has one part, with another name."""
    target = a_target(a_host("a"), "loop0")
    for number, part in ((1, "before"), (2, "after")):
        results = Lab(target, number=number).measure(*(100.0 * number + repeat for repeat in range(3)))
        Trial.objects.filter(results__in=results).update(part=part)
    made = operator.get("/api/v1/compare?x=matched&series=run&run=1..2&baseline=1").json()
    ratio = made["panels"][0]["series"][1]["against_baseline"]["ratio"]["value"]
    (row,) = operator.get("/api/v1/verdict", {"baseline": "run=1", "candidate": "run=2", "metric": "iops"}).json()[
        "rows"
    ]
    (bench,) = operator.get("/api/v1/bench?product=run:1&product=run:2&baseline=run:1").json()["rows"]
    assert (row["ratio"], bench["cells"][1]["ratio"]) == pytest.approx((ratio, ratio))


def _a_table(chance: random.Random, number: int) -> Import:
    """An import that states some of the factors, with levels of a label, several tests, or a drive of its own."""
    columns = [name for name in ("iodepth", "numjobs") if chance.random() < 0.6]
    levels = {"iodepth": (1, 8), "numjobs": (1, 4)}
    labels = ("20 %", "80 %") if chance.random() < 0.5 else ("",)
    tests = ("Read", "Re-read") if chance.random() < 0.3 else ("",)
    rows = [*product(("4k", "64k"), *(levels[name] for name in columns))]
    chosen = chance.sample(rows, max(1, len(rows) - 1))
    measured = [*product(chosen, labels, tests)]
    lines = [",".join(("randread", *map(str, row), str(chance.randint(10**4, 10**6)))) for row, *_ in measured]
    text = "\n".join((",".join(("pattern", "block_size", *columns, "iops")), *lines))
    made = an_import(title=f"Table {number}", drive=f"Drive {number}", text=f"{text}\n")
    for origin, (_, label, test) in zip(made.origins.order_by("number"), measured, strict=True):
        origin.name, origin.other = test, {"fill level": label} if label else {}
        origin.save(update_fields=["name", "other"])
    if chance.random() < 0.3:
        Import.objects.filter(pk=made.pk).update(slug=f"table-{number}")
        Result.objects.filter(origin__imported=made).update(reference=True)
    return made


@pytest.mark.parametrize("seed", range(24))
def test_bench_and_explore_pair_the_same_results_of_imports(seed: int, operator: Client) -> None:
    """Tables that state other factors, labels and tests. Random values, so that a ratio names its two results."""
    chance = random.Random(seed)
    first, second = (_a_table(chance, number) for number in (1, 2))
    query = f"product=import:{first.number}&product=import:{second.number}"
    answer = operator.get(f"/api/v1/bench?{query}").json()
    ratios = [cell["ratio"] for row in answer["rows"] for cell in row["cells"] if cell["ratio"]]
    (address,) = re.findall(
        r'href="/explore/\?([^"]*)">Open in Explore', operator.get(f"/bench/?{query}").content.decode()
    )
    made = operator.get(f"/api/v1/compare?{html.unescape(address)}").json()
    cells = [cell for panel in made["panels"] for series in panel["series"] for cell in series["cells"]]
    against = [cell["against_baseline"]["ratio"]["value"] for cell in cells if cell["against_baseline"]]
    assert sorted(against) == pytest.approx(sorted(ratios))
    assert len({*against}) == len(against)


@pytest.mark.parametrize("targets", [("loop0", "loop1"), ("loop0 loop1", "loop0 loop1"), ("loop0 loop1", "loop0")])
def test_runs_on_other_targets_have_one_ratio_everywhere(targets: tuple[str, str], operator: Client) -> None:
    """Runs on one target each are compared, whatever their targets; of a run on several, only equal targets."""
    host, chance = a_host("a"), random.Random(1)
    known = {slug: a_target(host, slug) for slug in ("loop0", "loop1")}
    for number, slugs in enumerate(targets, 1):
        lab = Lab(known[slugs.split()[0]], number=number)
        for slug, depth in product(slugs.split(), (1, 8)):
            lab.run.targets.add(known[slug])
            speed = 1000 * chance.uniform(1, 9)
            lab.measure(*(speed * chance.uniform(0.99, 1.01) for _ in range(3)), iodepth=depth, target=known[slug])
    made = operator.get("/api/v1/compare?x=matched&series=run&run=1..2&baseline=1").json()
    cells = made["panels"][0]["series"][1]["cells"]
    explored = sorted(cell["against_baseline"]["ratio"]["value"] for cell in cells if cell["against_baseline"])
    bench = operator.get("/api/v1/bench?product=run:1&product=run:2&baseline=run:1").json()["rows"]
    rows = operator.get("/api/v1/verdict", {"baseline": "run=1", "candidate": "run=2", "metric": "iops"}).json()["rows"]
    assert len(explored) == 2 * len(targets[1].split())
    assert sorted(row["cells"][1]["ratio"] for row in bench if len(row["cells"]) == 2) == pytest.approx(explored)
    assert sorted(row["ratio"] for row in rows if row["point"] and row["ratio"]) == pytest.approx(explored)


def test_targets_with_one_name_on_two_hosts_are_two_products(operator: Client) -> None:
    for number, name in enumerate("ab", 1):
        Lab(a_drive(a_host(name), "nvme0", model="M", serial=name), number=number).measure(100.0 * number)
    query = "product=target:a/nvme0&product=target:b/nvme0"
    answer = operator.get(f"/api/v1/bench?{query}").json()
    assert [each["name"] for each in answer["products"]] == ["a/nvme0", "b/nvme0"]
    assert len({each["colour"] for each in answer["products"]}) == 2
    page = operator.get(f"/bench/?{query}").content.decode()
    assert re.findall(r'href="/explore/\?([^"]*)">Open in Explore', page)


def test_explore_opens_although_the_baseline_of_bench_has_no_value_of_the_metric(operator: Client) -> None:
    first = an_import(text="pattern,block_size,mib_per_s\nread,1m,100\n")
    second = an_import(title="New tests", text="pattern,block_size,iops,latency_p99_us\nrandread,4k,900,180\n")
    query = f"import={first.number}&import={second.number}&x=matched&series=imported&metric=latency_p99"
    response = operator.get(f"/api/v1/compare?{query}&baseline={first.number}")
    assert (response.status_code, response.json()["baseline"]) == (200, str(second.number))
    assert operator.get(f"/api/v1/compare?{query}&baseline=77").status_code == 422


@pytest.mark.parametrize("places", list(product("ab", repeat=3)))
def test_explore_and_bench_compare_the_same_drives_and_hosts(places: tuple[str, ...], operator: Client) -> None:
    """The first drive model was measured on one host or on two, the second one on one: only what was measured on the
    same host has a ratio. Hosts are compared only with the same drive models."""
    hosts = {name: a_host(name) for name in "ab"}
    measured = dict.fromkeys(zip((SAMSUNG, SAMSUNG, INTEL), places, strict=True))
    for number, (model, host) in enumerate(measured, 1):
        drive = a_drive(hosts[host], f"nvme{number}", model=model, serial=f"serial{number}")
        Lab(drive, number=number).measure(1000.0 * number, 1001.0 * number, 1002.0 * number, iodepth=1)
    serials = [f"serial{number}" for number in range(1, len(measured) + 1)]
    for kind, levels in (("model", (SAMSUNG, INTEL)), ("serial", (serials[0], serials[-1])), ("host", ("a", "b"))):
        filters = "".join(f"&{kind}={level}" for level in levels)
        products = "".join(f"&product={kind}:{level}" for level in levels)
        explored = operator.get(f"/api/v1/compare?x=matched&series={kind}{filters}&baseline=").json()
        bench = operator.get(f"/api/v1/bench?metric=rate{products}&baseline={kind}:{levels[0]}").json()
        of_bench = {cell["ratio"] for row in bench["rows"] for cell in row["cells"]} - {None}
        of_explore = {
            cell["against_baseline"]["ratio"]["value"]
            for panel in explored["panels"]
            for series in panel["series"]
            for cell in series["cells"]
            if cell["against_baseline"]
        }
        assert bool(of_explore) == bool(of_bench), (kind, places, of_explore, of_bench)
        if kind == "model":
            assert bool(of_explore) == (places[2] in places[:2])


def test_drives_of_two_hosts_have_links_to_what_is_alike(operator: Client) -> None:
    first, second = a_host("a"), a_host("b")
    drives = (first, SAMSUNG), (second, INTEL), (second, "PM9A3"), (second, SAMSUNG)
    for number, (host, model) in enumerate(drives, 1):
        drive = a_drive(host, f"nvme{number}", model=model, serial=f"serial{number}")
        Lab(drive, number=number).measure(1000.0, 1001.0, 1002.0)
    query = f"x=iodepth&series=model&baseline={SAMSUNG}&run=1&run=2&run=3"
    assert not [one for one in series_of(operator, query) if one["against_baseline"]]
    page = operator.get(f"/explore/?{query}").content.decode()
    (address,) = re.findall(r'href="(/explore/[^"]*host=b[^"]*)">b</a>', page)
    alike = html.unescape(address).partition("?")[2]
    assert [one for one in series_of(operator, alike) if one["against_baseline"]]
    two = "x=iodepth&series=serial&run=1&run=4"
    page = operator.get(f"/explore/?{two}").content.decode()
    assert "series=host&amp;model=" in page


def series_of(client: Client, query: str) -> list[Any]:
    (panel,) = client.get(f"/api/v1/compare?{query}").json()["panels"]
    return list(panel["series"])


def test_every_page_with_values_of_a_cancelled_run_names_it(operator: Client) -> None:
    host = a_host("a")
    labs = [Lab(a_drive(host, f"nvme{n}", model=name, serial=name), number=n) for n, name in ((1, "A"), (2, "B"))]
    for lab in labs:
        lab.measure(100.0, 101.0, 102.0, iodepth=1)
    Run.objects.filter(pk=labs[0].run.pk).update(state=RunState.CANCELLED, ended_at=START)
    (sentence,) = unfinished_sentences(read_rows(Result.objects.all()))
    pages = ("/explore/?run=1..2&x=iodepth&series=run", "/bench/?product=model:A&product=model:B", "/rankings/")
    for address in (*pages, "/hosts/a/targets/nvme1/", "/products/model/A/"):
        assert sentence in operator.get(address).content.decode(), address
    assert operator.get("/hosts/a/targets/nvme2/").context["parts"].unfinished == ()
    plan = labs[0].run.version.plan.slug
    (row,) = operator.get(f"/trends/?plan={plan}&target=a/nvme1").context["rows"]
    assert row.value.run.state == RunState.CANCELLED
