"""A ratio is second ÷ first to the digits shown: in tables of Explore, Bench, Trends and verdicts, in Rankings,
reports, shared pages, notices, files, charts and answers, and in the output of `sweetspot compare`.

The walk reads what a person reads. Each shown number stands for an interval, half a step of its last digit around it;
a shown ratio has to fit the quotients of both intervals. Random values, so that no digit agrees by chance.
"""

import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from itertools import product
from typing import Any

import pyarrow.parquet
import pytest
from django.test import Client

from webapp.analysis.models import SavedComparison
from webapp.analysis.run_answer import run_answer
from webapp.analysis.tests.orders import alternate
from webapp.api.tests.command.shell import Shell
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.core.models import Role
from webapp.core.services import create_api_token
from webapp.notices.models import Notice
from webapp.notices.tasks import announce_run
from webapp.results.models import Result
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import START, Lab

pytestmark = pytest.mark.django_db
SCALES = {
    "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "B/s": 1.0, "kB/s": 1e3,
    "MB/s": 1e6, "GB/s": 1e9,
}  # fmt: skip
NUMBER = re.compile(r"(×|[−+-])?([\d,]+(?:\.\d+)?) ?(%|[a-zA-Zµ/]+)?")
EXPLORE = "x=iodepth&series=model&baseline=" + SAMSUNG.replace(" ", "+")
SIDES = f"baseline=model%3D{SAMSUNG}&candidate=model%3D{INTEL}".replace(" ", "%2B")
METRICS = ("iops", "bytes_per_s", "latency_p99", "latency_mean")
Span = tuple[float, float]


def span_of(text: str) -> Span:
    """The values that a shown number may stand for; of a ratio such as +25 %, those of 1.25."""
    match = NUMBER.match(text.strip())
    assert match, text
    sign, digits, unit = match[1] or "", match[2].replace(",", ""), match[3] or ""
    whole, _, decimals = digits.partition(".")
    half = 0.5 * 10.0 ** max(-len(decimals), len(whole) - 3 if len(whole) > 3 else -len(decimals))  # 1,630: 3 digits
    value = float(digits) * (-1 if sign in ("−", "-") else 1)
    if unit == "%":
        return 1 + (value - half) / 100, 1 + (value + half) / 100
    scale = SCALES[unit]
    return (value - half) * scale, (value + half) * scale


def agree(first: str, second: str, ratio: str) -> bool:
    (low, high), (least, most), (below, above) = map(span_of, (first, second, ratio))
    return least / high <= above * (1 + 1e-9) and below <= most / low * (1 + 1e-9)


@dataclass
class Tables(HTMLParser):
    """The texts of each row: of a cell, the texts of its elements."""

    rows: list[list[list[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append([])

    def handle_data(self, data: str) -> None:
        if data.strip() and self.rows and self.rows[-1]:
            self.rows[-1][-1].append(" ".join(data.split()))


Triple = tuple[str, str, str]  # first, second, ratio


def rows_of(page: str) -> list[list[list[str]]]:
    parser = Tables()
    parser.feed(page)
    return parser.rows


def of_explore(page: str) -> Iterator[Triple]:
    """Two series: value and ratio of one, value of the baseline; the unit is in the head of the column."""
    table = page[page.index('id="compare-table"') :]
    for row in rows_of(table[: table.index("</section>")]):
        cells = [cell[0] for cell in row if cell]
        if len(cells) == 4 and (cells[1][0].isdigit() or cells[1][0] == "0"):
            places = (1, 2, 3) if re.match("[×+−]|0.0 %", cells[3]) else (3, 1, 2)
            yield cells[places[0]], cells[places[1]], cells[places[2]]


def before_a_ratio(page: str) -> Iterator[Triple]:
    """The first number with a ratio's sign in a row, and the two cells before it: verdicts and trends."""
    for row in rows_of(page):
        texts = [cell[0] if cell else "" for cell in row]
        place = next((n for n, text in enumerate(texts) if n > 1 and re.match(r"[×+−]\d", text)), None)
        if place and all(text[:1].isdigit() for text in texts[place - 2 : place]):
            yield texts[place - 2], texts[place - 1], texts[place]


@pytest.fixture
def drives(db: None) -> Sequence[Run]:
    """Two drives, in two runs of one plan each, with every metric of random values."""
    version, chance, host = a_version(slug="nightly"), random.Random(11), a_host("storage1")
    runs = []
    for number, (place, run) in enumerate(product((0, 1), (1, 2)), 1):
        name = (SAMSUNG, INTEL)[place]
        target = host.targets.filter(slug=f"nvme{place}").first() or a_drive(
            host, f"nvme{place}", model=name, serial=name[:1]
        )
        lab = Lab(target, number=number, version=version)
        for size, depth in product((4096, 65536), (1, 8, 32)):
            speed = 1000 * depth * (1 + 0.3 * place) * run
            lab.measure(*(speed * chance.lognormvariate(0, 0.2) for _ in range(3)), iodepth=depth, block_size=size)
        at = START + timedelta(days=number)
        Run.objects.filter(pk=lab.run.pk).update(started_at=at, ended_at=at + timedelta(hours=1))
        runs.append(lab.run)
    for result in Result.objects.all():
        iops = result.iops or 1.0
        Result.objects.filter(pk=result.pk).update(
            bytes_per_s=iops * result.point["block_size"],
            latency_mean_ns=1e9 / iops * chance.lognormvariate(0, 0.1),
            p99_ns=int(4e9 / iops * chance.lognormvariate(0, 0.1)),
        )
    return runs


def body(client: Client, address: str) -> str:
    response = client.get(address, follow=True)
    assert response.status_code == 200, (address, response.content[:500])
    return unescape(response.getvalue().decode())


def pages() -> Iterator[tuple[str, Callable[[str], Iterator[Triple]]]]:
    for metric in METRICS:
        for size in ("4k", "64k"):
            yield f"/explore/?{EXPLORE}&factor.block_size={size}&metric={metric}", of_explore
        yield f"/explore/?{EXPLORE.replace('x=iodepth', 'x=matched')}&metric={metric}", of_explore
        yield f"/explore/?x=matched&series=run&run=1..2&metric={metric}", of_explore
        yield f"/trends/?plan=nightly&target=storage1/nvme0&metric={metric}", before_a_ratio
        yield f"/trends/acceptance/?{SIDES}&single_values=1&tolerance.{metric}=5", before_a_ratio


def test_every_ratio_on_a_page_is_the_quotient_of_the_numbers_beside_it(
    operator: Client, drives: Sequence[Run]
) -> None:
    for address, triples_of in pages():
        triples = list(triples_of(body(operator, address)))
        assert triples, address
        wrong = [each for each in triples if not agree(*each)]
        assert not wrong, (address, wrong)


def test_reports_and_pages_for_others_have_the_ratios_of_the_page(operator: Client, drives: Sequence[Run]) -> None:
    for query, triples_of in ((f"{EXPLORE}&factor.block_size=4k", of_explore),):
        operator.post("/comparisons/save/", {"title": "Two", "note": "", "query": query})
        saved = SavedComparison.objects.latest("pk")
        report = body(operator, f"/comparisons/{saved.pk}/report/")
        triples = list(triples_of(report))
        assert triples, query
        assert all(agree(*each) for each in triples), [each for each in triples if not agree(*each)]
        operator.post(f"/comparisons/{saved.pk}/freeze/")
        assert list(triples_of(body(operator, f"/comparisons/{saved.pk}/report/"))) == triples


def test_charts_heat_maps_files_and_answers_have_the_numbers_of_the_table(
    operator: Client, drives: Sequence[Run]
) -> None:
    for metric in METRICS:
        query = f"{EXPLORE}&factor.block_size=4k&metric={metric}"
        answer = json.loads(body(operator, f"/api/v1/compare?{query}"))
        page = body(operator, f"/explore/?{query}")
        chart = json.loads(re.search(r'id="compare-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
        assert chart["comparison"] == answer
        assert json.loads(body(operator, f"/explore.json?{query}")) == answer
        rows = pyarrow.parquet.read_table(io.BytesIO(operator.get(f"/explore.parquet?{query}").getvalue())).to_pylist()
        mean = next(name for name in rows[0] if "geometric mean" in name)
        means = {row["Queue depth"]: row[mean] for row in rows if row["Baseline"]}
        compared = [row for row in rows if row["Ratio to the baseline"] is not None]
        assert len(compared) == 3
        for row in compared:
            assert row["Ratio to the baseline"] == pytest.approx(row[mean] / means[row["Queue depth"]], rel=1e-9)
        shown = {ratio for *_, ratio in of_explore(page)}
        heat = body(operator, f"/explore/?{query}&chart=heat&cells=ratio")
        inside = heat[heat.index("heat-frame") : heat.index("heat-legend")]
        assert shown <= set(re.findall(r"[×+−][\d.,]+(?: %)?|0\.0 %", inside)), (shown, metric)


def clearly_different() -> None:
    """So that Bench and Rankings claim, and so print, the ratios: every second drive is about four times as fast."""
    for result in Result.objects.filter(target__slug="nvme1"):
        Result.objects.filter(pk=result.pk).update(
            iops=4 * (result.iops or 0), bytes_per_s=4 * (result.bytes_per_s or 0), p99_ns=int((result.p99_ns or 0) / 4)
        )


def of_bench(page: str) -> Iterator[Triple]:
    """A row of the forest plot: `name value, name value`, and the ratio in its last cell."""
    for row in rows_of(page):
        texts = [text for cell in row for text in cell]
        values = next((text for text in texts if text.startswith(f"{SAMSUNG} ") and f", {INTEL} " in text), "")
        if values and re.match(r"[×+−]\d", texts[-1]):
            first, second = values.removeprefix(f"{SAMSUNG} ").split(f", {INTEL} ")
            yield first, second, texts[-1]


def rows_of_file(client: Client, ending: str, address: str) -> list[dict[str, Any]]:
    content = client.get(address.replace("ENDING", ending)).getvalue()
    if ending == "parquet":
        return list(pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist())
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_pages_reports_and_files_of_bench_divide_the_values_that_they_show(
    operator: Client, drives: Sequence[Run]
) -> None:
    clearly_different()
    for choice in ("rate", "latency_p99"):
        query = f"product=model:{SAMSUNG}&product=model:{INTEL}&baseline=model:{SAMSUNG}&metric={choice}"
        triples = list(of_bench(body(operator, f"/bench/?{query}")))
        assert len(triples) == 6, choice
        operator.post("/comparisons/save/", {"title": "Two", "note": "", "query": query})
        saved = SavedComparison.objects.latest("pk")
        report = list(of_bench(body(operator, f"/comparisons/{saved.pk}/report/")))
        assert report
        assert not [each for each in (*triples, *report) if not agree(*each)]
        made = json.loads(body(operator, f"/api/v1/bench?{query}"))
        assert {cell["ratio_text"] for row in made["rows"] for cell in row["cells"]} >= {ratio for *_, ratio in triples}
        assert json.loads(body(operator, f"/bench.json?{query}"))["rows"] == made["rows"]
        for ending in ("csv", "parquet"):
            rows = rows_of_file(operator, ending, f"/bench.ENDING?{query}")
            assert len(rows) == 12
            for theirs, mine in zip(rows[::2], rows[1::2], strict=True):
                quotient = float(mine["Geometric mean"]) / float(theirs["Geometric mean"])
                assert float(mine["Ratio to the baseline"]) == pytest.approx(quotient, rel=1e-6)


def test_rankings_divide_the_values_that_they_show(operator: Client, drives: Sequence[Run]) -> None:
    clearly_different()
    for metric, is_speed in (("rate", True), ("latency_p99", False)):
        query = f"pattern=randread&block_size=4096&metric={metric}"
        made = json.loads(body(operator, f"/rankings.json?{query}"))
        (group,) = made["groups"]
        first, second = group["entries"]
        values = (first["mean"], second["mean"]) if is_speed else (second["mean"], first["mean"])
        assert (group["metric"] == "iops") is is_speed
        assert second["ratio"] == pytest.approx(values[0] / values[1], rel=1e-9)
        for ending in ("csv", "parquet"):
            best, next_best = rows_of_file(operator, ending, f"/rankings.ENDING?{query}")[:2]
            assert float(best["Geometric mean"]) == pytest.approx(first["mean"], rel=1e-6)
            assert float(next_best["First better by"]) == pytest.approx(second["ratio"], rel=1e-6)
        page = body(operator, f"/rankings/?{query}")
        shown = [row[1][-1] for row in rows_of(page) if row and row[0] and row[0][0] in (SAMSUNG, INTEL)]
        (ratio,) = re.findall(r"×[\d.,]+", page[page.index("<h1") : page.index("</h1>")])
        slower, faster = shown[1::-1] if is_speed else shown[:2]
        assert agree(slower, faster, ratio), (shown, ratio)


def test_shared_pages_and_frames_have_the_ratios_of_the_page(operator: Client, drives: Sequence[Run]) -> None:
    query = f"{EXPLORE}&factor.block_size=4k"
    operator.post("/comparisons/save/", {"title": "Two", "note": "", "query": query})
    saved = SavedComparison.objects.latest("pk")
    page = operator.post(f"/comparisons/{saved.pk}/links/", {"name": "team"}, follow=True).content.decode()
    token = re.search(r"/shared/([^/\"<]+)/", page)
    assert token
    shared = body(Client(), f"/shared/{token[1]}/")
    assert list(of_explore(shared)) == list(of_explore(body(operator, f"/explore/?{query}")))
    made = json.loads(body(operator, f"/api/v1/compare?{query}"))
    (series,) = (each for each in made["panels"][0]["series"] if not each["is_baseline"])
    for ending in ("frame/", "chart.svg"):
        embedded = body(Client(), f"/shared/{token[1]}/{ending}")
        ratios = set(re.findall(r"×\d[\d.,]*\d|[+−]\d+(?:\.\d+)? %", embedded))
        sentences = " ".join((series["sentence"], *(finding["sentence"] for finding in made["findings"])))
        assert ratios <= {*re.findall(r"×\d[\d.,]*\d|[+−]\d+(?:\.\d+)? %", sentences)}, ending


def test_verdicts_and_the_command_divide_the_values_that_they_show(
    operator: Client, drives: Sequence[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(capsys, create_api_token(user=a_user("tom", Role.OPERATOR), name="laptop"))
    for metric in METRICS:
        _, output, _ = shell("compare", "1", "2", "--single-values", "--metric", metric)
        lines = [re.split(r"  +", line.strip()) for line in output.splitlines() if f" {metric} " in line]
        triples = []
        for line in lines:
            place = next(n for n, text in enumerate(line) if re.fullmatch(r"[+-]\d+\.\d+ %", text))
            triples.append((line[place - 2], line[place - 1], line[place]))
        assert len(triples) == 7, output  # the mean and six points
        assert not [each for each in triples if not agree(*each)]
        sides = {"baseline": "run=1", "candidate": "run=2", "metric": metric, "single_values": "true"}
        rows = operator.get("/api/v1/verdict", sides).json()["rows"]
        assert len(rows) == 7
        assert all(row["ratio"] == pytest.approx(row["value"] / row["baseline"], rel=1e-9) for row in rows)
        query = f"baseline=run%3D1&candidate=run%3D2&single_values=1&tolerance.{metric}=5"
        in_file = rows_of_file(operator, "csv", f"/trends/acceptance.ENDING?{query}")
        assert len(in_file) == 7
        for row in in_file:
            assert float(row["Ratio"]) == pytest.approx(float(row["Candidate"]) / float(row["Baseline"]), rel=1e-6)


def test_the_notice_of_a_run_divides_the_values_of_its_page(operator: Client) -> None:
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S"))
    chance = random.Random(3)
    for engine, speed in (("io_uring", 1000.0), ("psync", 4321.0)):
        lab.measure(*(speed * chance.lognormvariate(0, 0.01) for _ in range(6)), ioengine=engine)
    alternate(lab.run)
    a_subscription(user=a_user("nora", Role.OPERATOR))
    announce_run(lab.run.pk)
    notice = Notice.objects.get(payload__run=lab.run.number)
    (factor,) = run_answer(lab.run).factors
    made = json.loads(body(operator, f"/api/v1/compare?{factor.query}"))
    texts = {series["is_baseline"]: series["cells"][0]["text"] for series in made["panels"][0]["series"]}
    (ratio, *_) = re.findall(r"[×+−]\d[\d.,]*(?: %)?", factor.text)
    assert agree(texts[True], texts[False], ratio), (texts, factor.text)
    assert factor.text in notice.text


def test_the_walk_finds_a_wrong_ratio() -> None:
    assert agree("2.00", "2.50", "+25 %")
    assert agree("70.0 k", "91.0k", "×1.30")
    assert agree("1,630", "1,750", "+7.5 %")
    assert not agree("2.00", "2.50", "+27 %")
    assert not agree("1.00 ms", "900 µs", "×1.11")
    assert agree("1.00 ms", "900 µs", "−10 %")
