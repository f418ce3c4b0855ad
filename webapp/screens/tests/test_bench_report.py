"""Saved comparisons of Bench: permalink, report, frozen numbers, links, pictures and files."""

import csv
import io
import json
import re
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from django.test import Client

from webapp.analysis.models import SavedComparison
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.core.middleware import COOKIE
from webapp.results.models import Result
from webapp.screens.bench.picture import report_drawing
from webapp.screens.tests.test_bench import ADDRESS, labs, shown  # noqa: F401 - fixture
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import Lab

QUERY = f"product=model%3A{SAMSUNG.replace(' ', '+')}&product=model%3A{INTEL.replace(' ', '+')}"
Labs = tuple[Lab, Lab]


@pytest.fixture
def saved(operator: Client, labs: Labs) -> SavedComparison:  # noqa: F811 - fixture
    given = {"title": "Two drives", "note": "Decided for **Intel**.", "query": QUERY}
    answer = operator.post("/comparisons/save/", given)
    made = SavedComparison.objects.get()
    assert answer["Location"] == f"/bench/?{QUERY}&saved={made.pk}"
    operator.get(answer["Location"])  # shows the message once
    return made


def report(client: Client, address: str) -> str:
    """The page without what differs from request to request."""
    answer = client.get(address)
    assert answer.status_code == 200
    return re.sub(r'name="csrf[^>]+>|nonce="[^"]+"', "", answer.content.decode())


def test_bench_is_saved_with_title_and_note_in_the_list_of_all_comparisons(
    operator: Client, saved: SavedComparison
) -> None:
    page = operator.get("/comparisons/").content.decode()
    assert "Two drives" in page
    assert f"Drive model {SAMSUNG}, Drive model {INTEL}" in page
    page = operator.get(f"/comparisons/{saved.pk}/", follow=True).content.decode()
    assert "Decided for <strong>Intel</strong>." in page
    assert "Changed since it was saved" not in page
    page = operator.get(f"/bench/?{QUERY}&metric=latency_p99&saved={saved.pk}").content.decode()
    assert "Changed since it was saved" in page


def test_its_report_is_in_the_navigation_under_compare(operator: Client, saved: SavedComparison) -> None:
    page = report(operator, f"/comparisons/{saved.pk}/report/")
    assert re.search(r'aria-current="page">\s*<svg.*?</svg>\s*Compare', page, re.DOTALL)
    page = operator.get("/comparisons/").content.decode()
    assert 'aria-current="page">Explore<' in page


def test_a_change_keeps_the_new_selection(operator: Client, saved: SavedComparison) -> None:
    given = {"title": "Tails", "note": "", "query": f"{QUERY}&metric=latency_p99&saved={saved.pk}"}
    operator.post(f"/comparisons/{saved.pk}/change/", given)
    saved.refresh_from_db()
    assert (saved.title, saved.query) == ("Tails", f"{QUERY}&metric=latency_p99")


@pytest.mark.parametrize(
    ("query", "words"), [("product=drive:S1", "write kind:name"), (f"{QUERY}&metric=speed", "metric=speed is unknown")]
)
def test_a_selection_that_compares_nothing_is_not_saved(
    operator: Client,
    labs: Labs,  # noqa: F811 - fixture
    query: str,
    words: str,
) -> None:
    answer = operator.post("/comparisons/save/", {"title": "Bad", "note": "", "query": query}, follow=True)
    assert words in answer.content.decode()
    assert not SavedComparison.objects.exists()


def test_the_report_has_the_numbers_of_the_page(operator: Client, saved: SavedComparison) -> None:
    page = report(operator, f"/comparisons/{saved.pk}/report/")
    assert "Decided for <strong>Intel</strong>." in page
    assert f"{INTEL} has ×2.00 the IOPS of {SAMSUNG}" in page
    assert "3 of 4 workloads shared" in page
    assert page.count("<canvas") == 3
    plot = re.compile(r'<table class="forest.*?</table>', re.DOTALL)
    assert plot.findall(page) == plot.findall(shown(operator))
    assert "bench-plan" not in page


def test_a_frozen_report_keeps_its_numbers(operator: Client, saved: SavedComparison, labs: Labs) -> None:  # noqa: F811
    address = f"/comparisons/{saved.pk}/report/"
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)  # shows the message once
    before = report(operator, address)
    assert "Numbers frozen on" in before
    labs[1].measure(9e6, iodepth=16)
    labs[0].measure(9e6, iodepth=16)
    assert report(operator, address) == before
    Result.objects.filter(target__model=INTEL).update(invalid=True)
    assert report(operator, address) == before
    Result.objects.all().delete()
    assert report(operator, address) == before
    operator.post(f"/comparisons/{saved.pk}/unfreeze/", follow=True)
    assert "No product has valid results any more." in report(operator, address)
    page = operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True).content.decode()
    assert "has no results to freeze" in page


def test_frozen_numbers_are_those_of_before_the_freeze(operator: Client, saved: SavedComparison) -> None:
    """A report looks the same before and after, except for the sentence about its date."""
    address = f"/comparisons/{saved.pk}/report/"
    dated = r"Numbers (of|frozen on) [^<]*|<form.*?</form>"
    before = re.sub(dated, "", report(operator, address), flags=re.DOTALL)
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)
    assert re.sub(dated, "", report(operator, address), flags=re.DOTALL) == before


def test_numbers_of_another_version_are_said_to_be_unreadable(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)
    SavedComparison.objects.update(frozen=b"not zlib")
    assert "which this version cannot read" in report(operator, f"/comparisons/{saved.pk}/report/")


def link(operator: Client, saved: SavedComparison) -> str:
    operator.post(f"/comparisons/{saved.pk}/links/", {"name": "a customer"})
    found = re.search(r'id="shared-address">([^<]+)<', report(operator, f"/comparisons/{saved.pk}/report/"))
    assert found
    return urlsplit(found.group(1)).path


def test_a_link_shows_the_report_without_an_account_until_it_is_revoked(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    path = link(operator, saved)
    page = report(client, path)
    assert f"{INTEL} has ×2.00 the IOPS of {SAMSUNG}" in page
    assert "share-title" not in page
    assert client.get("/bench/").status_code == 302
    operator.post(f"/comparisons/{saved.pk}/links/{saved.links.get().pk}/revoke/")
    assert client.get(path).status_code == 404
    assert client.get(f"{path}chart.svg").status_code == 404


def test_the_picture_for_other_pages_has_verdict_plot_curves_and_date(
    operator: Client, saved: SavedComparison, client: Client
) -> None:
    path = link(operator, saved)
    drawn = ElementTree.fromstring(client.get(f"{path}chart.svg").content)
    texts = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "Two drives"
    assert {SAMSUNG, INTEL, "Queue depth", "IOPS", "Random read over queue depth · 4 KiB"} <= set(texts)
    assert any(re.match(r"Sweetspot, \d{4}-\d\d-\d\d \d\d:\d\d UTC", text) for text in texts)
    notes = " ".join(texts)
    assert f"{INTEL}: 2.00× as fast" in notes
    assert {"100", "200", "×2.00"} <= set(texts)  # the values of one row and their ratio
    assert "Two drives" in client.get(f"{path}frame/").content.decode()


def test_the_api_saves_bench_too(operator: Client, labs: Labs) -> None:  # noqa: F811 - fixture
    body = {"title": "By API", "query": QUERY}
    answer = operator.post("/api/v1/comparisons", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["query"]) == (201, QUERY)
    body["query"] = "product=drive:S1"
    answer = operator.post("/api/v1/comparisons", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "bench_kind_unknown")


def test_rows_are_exported_in_stored_units(operator: Client, labs: Labs) -> None:  # noqa: F811 - fixture
    answer = operator.get(f"/bench.csv?{QUERY}")
    text = answer.getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))
    assert len(rows) == 6
    own, other = rows[0], rows[1]
    assert (own["Name"], own["Baseline"], own["Unit"], own["n"]) == (SAMSUNG, "True", "1/s", "4")
    assert float(other["Geometric mean"]) == pytest.approx(200, abs=0.01)
    assert float(other["Ratio to the baseline"]) == pytest.approx(2)
    assert float(other["95 % CI low"]) < 200 < float(other["95 % CI high"])
    found = operator.get(f"/bench.json?{QUERY}").json()
    assert found == operator.get(f"/api/v1/bench?{QUERY}").json()
    assert operator.get(f"/bench.parquet?{QUERY}").status_code == 200


def test_files_and_the_api_name_what_is_assumed_of_an_import(operator: Client, labs: Labs) -> None:  # noqa: F811
    made = an_import(title="Old tests", drive="Vertex", text="pattern,block_size,iops\nrandread,4k,2500\n")
    query = f"product=model:{SAMSUNG}&product=import:{made.number}"
    rows = list(csv.DictReader(io.StringIO(operator.get(f"/bench.csv?{query}").getvalue().decode().lstrip("\ufeff"))))
    (old,) = [row for row in rows if row["Name"] == "Old tests"]
    assert (old["Geometric mean"], old["Matched with"]) == ("2500.0", "QD 1, 1 job")
    cells = [cell for row in operator.get(f"/api/v1/bench?{query}").json()["rows"] for cell in row["cells"]]
    assert {cell["assumed"] for cell in cells} == {"", "QD 1, 1 job"}


@pytest.mark.parametrize(("query", "status"), [("", 404), ("product=drive:S1", 422)])
def test_a_file_of_nothing_says_what_to_do(operator: Client, query: str, status: int) -> None:
    assert operator.get(f"/bench.csv?{query}").status_code == status


def test_the_time_of_its_numbers_is_in_utc_for_every_viewer(operator: Client, saved: SavedComparison) -> None:
    operator.post(f"/comparisons/{saved.pk}/freeze/", follow=True)
    saved.refresh_from_db()
    operator.cookies[COOKIE] = "Asia/Tokyo"
    page = report(operator, f"/comparisons/{saved.pk}/report/")
    assert f"Numbers frozen on {saved.frozen_at:%Y-%m-%d %H:%M} UTC." in page


def test_the_picture_names_ignored_factors(saved: SavedComparison) -> None:
    assert not any("Ignored factors" in note for note in report_drawing(saved)[0].notes)
    saved.query = f"{QUERY}&ignore=numjobs"
    assert any("Ignored factors: Jobs." in note for note in report_drawing(saved)[0].notes)
