import csv
import io
import json
import re
from collections.abc import Callable
from itertools import islice

import pyarrow.parquet
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from webapp.results.models import Result, known
from webapp.runs.models import Run
from webapp.screens.point_words import in_full
from webapp.screens.results.columns import default_columns
from webapp.tests.factories.hosts import a_host, a_target, storage1_scratch
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_run
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def run(db: None) -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=2)
    finish_run(run)
    return run


def rows(client: Client, query: str = "") -> int:
    return client.get(f"/results/{query}").content.decode().count('class="sticky nowrap"')


def test_a_trial_is_named_with_its_run(operator: Client, run: Run) -> None:
    assert re.search(r">run 1 #\d+</a>", operator.get("/results/").content.decode())


def test_it_says_what_to_do_while_nothing_was_measured(operator: Client) -> None:
    assert "No results yet" in operator.get("/results/").content.decode()


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 24),
        ("?run=1", 24),
        ("?host=storage1&direction=write", 12),
        ("?factor.block_size=4k", 16),
        ("?factor.block_size=128k&factor.ioengine=psync", 4),
        ("?factor.iodepth=7", 0),
        ("?run=99", 0),
        ("?target=storage1/scratch&factor.iodepth=1&factor.iodepth=8", 16),
    ],
)
def test_it_filters_by_the_address(operator: Client, run: Run, query: str, count: int) -> None:
    assert rows(operator, query) == count


@pytest.mark.parametrize(
    ("query", "count"),
    [("host=b", 1), ("target=b/scratch", 1), ("host=a", 1), ("target=a/scratch", 1), ("host=c", 0)],
)
def test_it_finds_a_trial_on_several_hosts_by_each_of_them(operator: Client, db: None, query: str, count: int) -> None:
    first, second, _ = (a_target(a_host(name), slug="scratch") for name in "abc")
    result = Lab(first).measure(100.0, hosts_at_once=2)[0]
    assert result.trial is not None
    result.trial.further.create(stream=1, target=second)
    assert rows(operator, f"?{query}") == count


def test_it_shows_a_message_if_no_result_matches(operator: Client, run: Run) -> None:
    assert "No results match" in operator.get("/results/?factor.iodepth=7").content.decode()


@pytest.mark.parametrize("query", ["factor.iodepth=nonsense", "run=x", "colour=red", "target=scratch"])
def test_it_names_an_invalid_filter(operator: Client, run: Run, query: str) -> None:
    for address in ("/results/", "/results.csv"):
        response = operator.get(f"{address}?{query}")
        assert response.status_code == 422
        assert query.partition("=")[0].removeprefix("factor.") in response.content.decode().lower().replace(" ", "")


def test_it_offers_filters_for_the_factors_that_vary(operator: Client, run: Run) -> None:
    page = operator.get("/results/?factor.block_size=4k").content.decode()
    assert 'name="factor.ioengine"' in page
    assert 'name="factor.runtime"' not in page
    assert '<input class="form-check-input" type="checkbox" name="factor.block_size" value="4k" checked>' in page


def test_it_offers_results_without_a_factor(operator: Client, run: Run) -> None:
    found = run.results.filter(point__ioengine="psync").count()
    assert 0 < found < run.results.count()
    for result in run.results.filter(point__ioengine="psync"):
        Result.objects.filter(pk=result.pk).update(
            point=result.point | {"nr_requests": "64"}, point_key=f"k{result.pk}"
        )
    page = operator.get("/results/?factor.nr_requests=not set").content.decode()
    assert 'name="factor.nr_requests" value="not set" checked><span class="form-check-label">not set</span>' in page
    assert 'name="factor.nr_requests" value="64"><span' in page
    assert rows(operator, "?factor.nr_requests=not set") == run.results.count() - found
    assert rows(operator, "?factor.nr_requests=not set, 64") == run.results.count()


def test_it_marks_a_doubtful_result(operator: Client, run: Run) -> None:
    result = run.results.order_by("id").first()
    assert result is not None
    run.trials.filter(pk=known(result.trial_id)).update(invalid_reason="A backup ran meanwhile.")
    run.results.filter(pk=result.pk).update(invalid=True)
    assert rows(operator) == 23
    page = operator.get("/results/?invalid=1").content.decode()
    assert "invalid: A backup ran meanwhile." in page


def test_it_gives_the_same_rows_as_csv_in_plain_numbers(operator: Client, run: Run) -> None:
    response = operator.get("/results.csv?factor.block_size=4k&direction=read")
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(text.splitlines()))
    assert len(lines) == 8
    assert {line["block_size_B"] for line in lines} == {"4096"}
    assert float(lines[0]["iops"]) > 0


def test_it_gives_the_same_columns_as_parquet(operator: Client, run: Run) -> None:
    query = "factor.block_size=4k&direction=read"
    lines = csv.reader(io.StringIO(operator.get(f"/results.csv?{query}").getvalue().decode()))
    response = operator.get(f"/results.parquet?{query}")
    found = pyarrow.parquet.read_table(io.BytesIO(response.getvalue()))
    assert response["Content-Disposition"] == 'attachment; filename="sweetspot-results.parquet"'
    assert found.column_names == next(lines)
    assert found["iops"].to_pylist() == [float(line[found.column_names.index("iops")]) for line in lines]
    assert set(found["block_size_B"].to_pylist()) == {4096}
    assert {name: str(found.schema.field(name).type) for name in ("measured_at", "direct", "run", "nr_requests")} == {
        "measured_at": "timestamp[us, tz=UTC]", "direct": "bool", "run": "int64", "nr_requests": "int64",
    }  # fmt: skip
    assert found.schema.field("p99_ns").metadata == {b"unit": b"ns"}
    assert operator.get("/results.parquet?colour=red").status_code == 422


def test_its_json_has_the_rows_of_the_csv(operator: Client, run: Run) -> None:
    query = "factor.block_size=4k&direction=read"
    lines = list(csv.DictReader(operator.get(f"/results.csv?{query}").getvalue().decode().splitlines()))
    response = operator.get(f"/results.json?{query}")
    found = json.loads(response.getvalue())
    assert response["Content-Type"] == "application/json"
    assert [(one["trial"], one["iops"]) for one in found] == [
        (int(each["trial"]), float(each["iops"])) for each in lines
    ]
    assert all(
        set(one) == {name for name, text in each.items() if text} for one, each in zip(found, lines, strict=True)
    )
    assert f"/results.json?{query.replace('&', '&amp;')}" in operator.get(f"/results/?{query}").content.decode()
    assert operator.get("/results.json?colour=red").status_code == 422


def test_a_json_export_reads_later_pages_later(operator: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.results.export.CHUNK", 5)
    pieces = iter(operator.get("/results.json").streaming_content)  # type: ignore[attr-defined]
    with CaptureQueriesContext(connection) as queries:
        assert (len(list(islice(pieces, 5))), len(queries)) == (5, 0)
        assert len(list(pieces)) == run.results.count() - 5 + 1
    assert len(queries) > 0


def test_a_csv_export_starts_with_its_first_page_and_reads_the_others_later(
    operator: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.results.export.CHUNK", 5)
    lines = iter(operator.get("/results.csv").streaming_content)  # type: ignore[attr-defined]
    with CaptureQueriesContext(connection) as queries:
        first = list(islice(lines, 1 + 5))
        assert (len(first), len(queries)) == (6, 0)
        assert len(list(lines)) == run.results.count() - 5
    assert len(queries) > 0


def test_the_heading_has_the_count_and_the_age_of_the_newest_result(operator: Client, run: Run) -> None:
    everything = operator.get("/results/").context
    assert everything["heading"].split()[0] == str(len(everything["page"].rows))
    assert everything["newest"] == max(row.stated_at for row in everything["page"].rows)
    assert operator.get("/results/?sort=iops").context["newest"] is None  # the first row is not the newest
    headings = {operator.get(f"/results/{query}").context["heading"] for query in ("", "?run=999", "?run=x")}
    assert len(headings) == 3


def test_it_takes_as_many_queries_for_many_results_as_for_few(queries_of: Callable[[str], int], run: Run) -> None:
    few = queries_of("/results/")
    finish_run(first_look_run(run.version, list(run.targets.all()), repeats=2))
    assert queries_of("/results/") == few


def test_it_shows_the_chosen_columns_in_the_chosen_order(operator: Client, run: Run) -> None:
    page = operator.get("/results/?columns=iops,ioengine&sort=-iops").content.decode()
    head = page[page.index("<thead>") : page.index("</thead>")]
    assert head.count("<th") == 3 + 1  # thead itself
    assert 'aria-sort="descending"' in head
    assert "?columns=iops%2Cioengine&amp;sort=iops" in head
    lines = operator.get("/results/?columns=iops&sort=iops").context["page"].rows
    assert [line.iops for line in lines] == sorted(line.iops for line in lines)


@pytest.mark.parametrize("query", ["columns=speed", "sort=speed", "after=x"])
def test_it_names_an_unknown_column_or_order(operator: Client, run: Run, query: str) -> None:
    response = operator.get(f"/results/?{query}")
    assert response.status_code == 422
    assert "Clear the filters" in response.content.decode()


def test_it_stores_a_persons_columns_and_restores_the_default_ones(operator: Client, viewer: Client, run: Run) -> None:
    answer = viewer.post("/results/columns/", {"columns": "iops,host", "query": "run=1"})
    assert (answer.status_code, answer["Location"]) == (302, "/results/?run=1")
    assert len(viewer.get("/results/").context["columns"]) == 2
    assert len(operator.get("/results/").context["columns"]) > 2
    assert len(viewer.get("/results/?columns=iops,host,serial").context["columns"]) == 3
    viewer.post("/results/columns/", {"columns": ""})
    assert len(viewer.get("/results/").context["columns"]) > 2


def test_it_stores_no_unknown_columns(viewer: Client) -> None:
    answer = viewer.post("/results/columns/", {"columns": "speed"}, follow=True)
    assert "There is no column <code>speed</code>" in answer.content.decode()
    assert viewer.get("/results/columns/").status_code == 405


def test_it_takes_another_factor_without_a_script(operator: Client, run: Run) -> None:
    answer = operator.get("/results/?run=1&more=iodepth&levels=1..8 *8")
    assert answer["Location"] == "/results/?run=1&factor.iodepth=1..8+%2A8"
    assert rows(operator, "?run=1&factor.iodepth=1..8+%2A8") == 16


def test_the_next_page_continues_after_the_last_row(
    operator: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.screens.results.views.PER_PAGE", 10)
    first = operator.get("/results/").context["page"]
    second = operator.get("/results/", {"after": first.older}).context["page"]
    seen = [result.id for result in (*first.rows, *second.rows)]
    assert len(set(seen)) == 20
    assert operator.get("/results/", {"before": second.newer}).context["page"].rows == first.rows


def test_a_spreadsheet_runs_nothing_that_comes_in_a_csv(operator: Client, run: Run) -> None:
    run.trials.update(invalid_reason="=cmd|' /C calc'!A0")
    run.results.update(invalid=True)
    response = operator.get("/results.csv?invalid=1")
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    lines = list(csv.DictReader(text.splitlines()))
    assert {line["invalid_reason"] for line in lines} == {"'=cmd|' /C calc'!A0"}
    assert "size_B" in lines[0]
    assert "runtime_s" in lines[0]


def test_many_varying_factors_share_a_column_so_that_measured_values_stay_in_view() -> None:
    assert default_columns([], ["block_size", "iodepth", "scheduler"])[2:5] == ("block_size", "iodepth", "scheduler")
    many = default_columns([], ["pattern", "block_size", "iodepth", "scheduler"])
    assert many[:5] == ("target", "direction", "point", "repeat", "iops")
    level = {"pattern": "randread", "block_size": 4096, "iodepth": 32, "scheduler": "none", "ramp": 2}
    assert in_full(level) == "randread · 4 KiB · QD 32 · I/O scheduler none"


def test_drives_of_imports_can_be_chosen_as_a_filter(operator: Client) -> None:
    an_import(drive="PM9A3")
    page = operator.get("/results/").content.decode()
    assert 'name="model" value="PM9A3"' in page


def test_a_time_that_an_import_does_not_state_is_not_that_of_the_import(operator: Client) -> None:
    an_import()
    page = operator.get("/results/").content.decode()
    assert page.count(">not stated</td>") == 3
    lines = list(csv.DictReader(operator.get("/results.csv").getvalue().decode().splitlines()))
    assert [line["measured_at"] for line in lines] == ["", "", ""]
    items = operator.get("/api/v1/results").json()["items"]
    assert [item["time_known"] for item in items] == [False, False, False]


@pytest.mark.parametrize(
    "query",
    [
        "after=9999-12-31T23:59:59-23:59~1", "before=0001-01-01T00:00:00%2B23:59~1", "after=2026-01-01~1",
        "sort=iops&after=nan~1", "sort=latency_p50&after=inf~1", "sort=latency_p50&after=1e300~1", "after=a~1",
        "sort=iops&after=1~99999999999999999999", "sort=iops&after=1~%C2%B2", "sort=speed",
    ],
)  # fmt: skip
def test_a_row_that_no_page_names_is_a_wrong_value(operator: Client, query: str) -> None:
    assert operator.get(f"/results/?{query}").status_code == 422
