import html
import io
import json
import re
from collections.abc import Callable
from statistics import geometric_mean

import pyarrow.parquet
import pytest
from django.test import Client
from django.utils.html import escape

from webapp.analysis.comparing import compare
from webapp.analysis.question import read_query
from webapp.analysis.tests.orders import alternate
from webapp.results.metrics import METRICS
from webapp.results.models import Result, known
from webapp.runs.models import Run
from webapp.screens.explore.shown import sentences_of
from webapp.tests.factories.hosts import a_host, a_target, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.peak import measured_cost
from worker.contract.packing import LAST_BUCKET_NS, Histogram, pack

ADDRESS = "/explore/?run=1&x=iodepth&series=ioengine&panel=pattern"


@pytest.fixture
def run(db: None) -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    return run


def test_it_says_what_to_do_while_there_is_nothing_to_compare(operator: Client) -> None:
    page = operator.get("/explore/").content.decode()
    assert "No results yet" in page


def test_it_shows_a_message_if_no_results_match(operator: Client, run: Run) -> None:
    assert "No results match" in operator.get("/explore/?run=99").content.decode()
    assert "No results match" in operator.get("/explore/?run=99&x=iodepth").content.decode()


def test_each_view_has_its_heading(operator: Client, run: Run) -> None:
    addresses = (ADDRESS, f"{ADDRESS}&view=latency", f"{ADDRESS}&view=timeline", "/explore/?run=99")
    assert len({operator.get(address).context["heading"] for address in addresses}) == len(addresses)


def test_it_puts_its_own_choice_into_the_address(operator: Client, run: Run) -> None:
    response = operator.get("/explore/?run=1")
    assert response.status_code == 302
    assert response["Location"] == ADDRESS


def test_it_shows_charts_sentences_and_all_numbers(operator: Client, run: Run) -> None:
    page = operator.get(ADDRESS).content.decode()
    assert page.count("<canvas") == 4
    assert 'id="compare-data"' in page
    assert page.count('class="mark"') == 8  # the head of each series in four tables
    assert "than io_uring" in page
    assert "single-factor" in page


def test_it_compares_the_others_with_the_chosen_baseline(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&baseline=psync&metric=latency_p99").content.decode()
    assert '<option value="psync" selected>' in page
    assert "psync (baseline)</th>" in page
    assert page.index('"compare-data"') < page.index("Conclusions") < page.index('id="compare-table"')
    assert "lower is better" in page


def test_a_point_without_a_value_offers_its_levels_and_equals(operator: Client, run: Run) -> None:
    page = operator.get("/explore/?run=1&x=iodepth&series=pattern").content.decode()
    assert "No point has a value. Choose a level." in page
    links = dict(re.findall(r'<a href="(/explore/[^"]+)">([^<]+)</a>', page))
    names = {text: html.unescape(address) for address, text in links.items()}
    assert {"io_uring", "psync", "one chart each", "one series each", "compare only equals"} <= names.keys()
    for text in ("io_uring", "compare only equals"):
        assert operator.get(names[text], follow=True).status_code == 200
    equals = operator.get(names["compare only equals"], follow=True).content.decode()
    assert "<canvas" in equals
    assert "no value" not in equals


@pytest.mark.parametrize(
    "query",
    [
        "run=first", "x=iodepth&factor.size=huge", "factor.colour=red", "x=iodepth&hots=storage1",
        "x=iodepth&block_size=4k", "x=iodepth&factors.block_size=4k", "x=iodepth&Target=a/b",
    ],
)  # fmt: skip
def test_it_refuses_a_filter_that_it_cannot_read(operator: Client, run: Run, query: str) -> None:
    """Without the filter, the page would show other results."""
    response = operator.get(f"/explore/?{query}")
    assert response.status_code == 422
    assert "Reset" in response.content.decode()


@pytest.mark.parametrize(
    ("query", "dropped"),
    [
        ("colour=red", "colour red"), ("x=nonsense", "x axis nonsense"), ("x=iodepth&metric=speed", "metric speed"),
        ("x=iodepth&series=iodepth", "series Queue depth"), ("x=iodepth&chart=pie", "chart pie"),
        ("x=iodepth&baseline=posix", "baseline posix"), ("x=iodepth&margin=0", "margin 0"),
        ("x=iodepth&view=latency&chart_point=nowhere|7", "chart point nowhere|7"),
        ("x=iodepth&view=timeline&chart_point=nowhere|7", "chart point nowhere|7"),
        ("x=iodepth&series=ioengine,pattern,block_size,host", "series Host"),
    ],
)  # fmt: skip
def test_it_drops_choices_that_do_not_fit_and_says_so(operator: Client, run: Run, query: str, dropped: str) -> None:
    response = operator.get(f"/explore/?{query}", follow=True)
    assert response.status_code == 200
    assert f"Dropped choices that do not fit: {dropped}." in response.content.decode()
    again = operator.get(f"/explore/?{response.request['QUERY_STRING']}")
    assert again.status_code == 200
    assert "Dropped" not in again.content.decode()


def test_it_takes_as_many_queries_for_many_results_as_for_few(queries_of: Callable[[str], int], run: Run) -> None:
    address = ADDRESS.replace("run=1&", "")
    few = queries_of(address)
    finish_run(first_look_run(run.version, list(run.targets.all())))
    assert queries_of(address) == few


def test_a_refused_filter_can_be_corrected_in_the_form(operator: Client, run: Run) -> None:
    page = operator.get("/explore/?run=1&x=iodepth&factor.size=huge&factor.ioengine=psync").content.decode()
    assert page.count('<option value="iodepth" selected>Queue depth</option>') == 1
    assert 'name="factor.ioengine" value="psync"' in page


def test_the_csv_has_the_defaults_of_the_page(operator: Client, run: Run) -> None:
    def text(address: str) -> bytes:
        return b"".join(operator.get(address).streaming_content)  # type: ignore[attr-defined]

    assert text("/explore.csv") == text("/explore.csv?run=1&x=&series=") == text(ADDRESS.replace("/?", ".csv?"))
    assert operator.get("/explore.csv?run=99").status_code == 404


def test_the_parquet_file_has_the_columns_of_the_csv(operator: Client, run: Run) -> None:
    head, *lines = operator.get("/explore.csv?run=1").getvalue().decode().splitlines()
    parquet = operator.get("/explore.parquet?run=1").getvalue()
    found = pyarrow.parquet.read_table(io.BytesIO(parquet))
    assert (",".join(found.column_names), found.num_rows) == (head, len(lines))
    assert found.schema.field("IOPS geometric mean [1/s]").metadata == {b"unit": b"1/s"}
    assert {type(value) for value in found["Baseline"].to_pylist()} == {bool}
    assert operator.get(ADDRESS.replace("/explore/", "/api/v1/compare.parquet")).getvalue() == parquet
    assert operator.get("/explore.parquet?x=nonsense").status_code == 422


def test_the_json_is_that_of_the_api(operator: Client, run: Run) -> None:
    mine = operator.get("/explore.json?run=1")
    assert mine.json() == operator.get(ADDRESS.replace("/explore/", "/api/v1/compare")).json()
    assert operator.get("/explore.json?x=nonsense").status_code == 422


def test_the_newest_run_is_the_default(operator: Client, run: Run) -> None:
    finish_run(first_look_run(run.version, list(run.targets.all())))
    assert "run=2&" in operator.get("/explore/")["Location"]


def test_it_shows_a_heat_map_with_a_legend_and_numbers(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&chart=heat").content.decode()
    assert page.count('<table class="table heat') == 4
    assert "<canvas" not in page
    assert 'class="heat-legend"' in page
    ratios = operator.get(f"{ADDRESS}&chart=heat&cells=ratio").content.decode()
    assert "blue is better" in ratios


def test_it_draws_two_metrics_against_each_other(operator: Client, run: Run) -> None:
    left = run.results.filter(point__pattern="read")[0]
    Result.objects.filter(pk=left.pk).update(p99_ns=None)
    page = operator.get(f"{ADDRESS}&chart=scatter").content.decode()
    charts = json.loads(page.split('id="scatter-data" type="application/json">')[1].split("</script>")[0])
    assert (charts["x_label"], charts["y_label"]) == ("IOPS", "p99 latency")
    assert [panel["name"] for panel in charts["panels"]] == ["randread", "randwrite", "read", "write"]
    first = charts["panels"][0]["series"][0]
    assert (first["name"], [point["level"] for point in first["points"]]) == ("io_uring", ["1", "32"])
    point = {"pattern": "randread", "iodepth": 32, "ioengine": "io_uring"}
    measured = run.results.filter(point__contains=point)
    assert first["points"][1]["y"] == pytest.approx(geometric_mean([result.p99_ns or 0 for result in measured]))
    assert "1 result without p99 latency is left out" in page
    again = operator.get(f"{ADDRESS}&chart=scatter&against=latency_mean&metric=latency_p99").content.decode()
    assert "Mean latency over p99 latency" in again


def test_it_offers_facts_that_differ_between_observed_configurations(operator: Client, run: Run) -> None:
    digest = run.results.first().stream_run.configuration_id  # type: ignore[union-attr]
    page = operator.get("/explore/?run=1&x=matched&series=configuration").content.decode()
    assert f'name="configuration" value="{digest[:10]}"' in page  # type: ignore[index]


def with_histograms(run: Run) -> None:
    for result in run.results.all():
        mean = int(known(result.latency_mean_ns))
        histogram = Histogram(latency_ns=(mean // 2, mean, mean * 9), counts=(5000, 14000, 1000))
        Result.objects.filter(pk=result.pk).update(latency=pack(histogram))


def test_it_shows_the_percentiles_with_enough_ios(operator: Client, run: Run) -> None:
    with_histograms(run)
    page = operator.get(f"{ADDRESS}&view=latency").content.decode()
    assert "Latency at randread · Queue depth 32" in page
    table = page.split('id="ladder-table"')[1]
    assert "p99.9<" in table
    assert "p99.99<" not in table  # 60,000 I/Os are too few
    assert 'id="latency-data"' in page
    assert "single-factor" in page
    write = operator.get(f"{ADDRESS}&view=latency&chart_point=randwrite|1").content.decode()
    assert "Latency at randwrite · Queue depth 1" in write


def test_percentiles_above_17_s_have_no_ratio(operator: Client, run: Run) -> None:
    with_histograms(run)
    histogram = Histogram(latency_ns=(1_000_000, LAST_BUCKET_NS), counts=(10_000, 10_000))
    Result.objects.filter(run=run).update(latency=pack(histogram), latency_max_ns=22e9)
    page = operator.get(f"{ADDRESS}&view=latency").content.decode()
    assert "&gt; 17 s" in page
    table = page.split('id="ladder-table"')[1]
    ladder = table[table.index("p99<") : table.index("</tr>", table.index("p99<"))]
    assert "×" not in ladder
    assert "%" not in ladder


def test_it_shows_a_message_if_no_histogram_is_stored(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&view=latency").content.decode()
    assert "No histogram is stored" in page
    assert "<code>--output-format=json+</code>" in page
    assert "view=means&amp;metric=latency_p99" in page


def test_the_view_of_latency_has_no_choice_or_sentence_of_another_metric(operator: Client, run: Run) -> None:
    with_histograms(run)
    page = operator.get(f"{ADDRESS}&view=latency&metric=bytes_per_s").content.decode()
    assert 'id="id-metric"' not in page
    assert '<input type="hidden" name="metric" value="bytes_per_s">' in page  # for the other views
    assert "Latency, lower is better" in page
    assert "Conclusions" not in page
    assert "Conclusions" in operator.get(f"{ADDRESS}&view=latency&metric=latency_p99").content.decode()


def test_it_overlays_trials_by_time(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&view=timeline&metric=latency_p95").content.decode()
    assert "p99 latency over time at randread" in page
    assert "Samples have no p95 latency" in page
    assert 'id="timeline-data"' in page


def test_charts_say_the_mean_and_the_interval_that_the_table_says(operator: Client, run: Run) -> None:
    """Also for repeats that lie far apart: no interval reaches 0."""
    for factor, result in enumerate(run.results.filter(point__ioengine="psync", point__pattern="read")):
        Result.objects.filter(pk=result.pk).update(iops=10.0 ** (factor + 1))
    page = operator.get(ADDRESS).content.decode()
    charts = json.loads(page.split('id="compare-data" type="application/json">')[1].split("</script>")[0])
    points = [
        point for panel in charts["comparison"]["panels"] for series in panel["series"] for point in series["cells"]
    ]
    assert all(point["summary"]["low"] > 0 for point in points)
    assert any("noisy" in doubt for point in points for doubt in point["doubts"])
    table = page[page.index('id="compare-table"') :]
    cells = re.findall(r'<td class="num" data-value="([^"]+)">.*?<small class="spread">([^<]+)</small>', table)
    values = [(float(value), spread) for value, spread in cells if "n = " in spread]
    assert sorted(value for value, _ in values) == sorted(point["summary"]["mean"] for point in points)
    scale = METRICS["iops"].scale([point["summary"]["mean"] for point in points])
    means = {point["summary"]["mean"]: point["summary"] for point in points}
    for value, spread in values:
        low, high = (scale.text(means[value][bound]) for bound in ("low", "high"))
        assert spread == f"{low} to {high}, n = 3"


def test_the_table_has_series_across_with_the_ratio_beside_and_the_unit_in_the_head(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&metric=latency_p99&factor.pattern=randread").content.decode()
    table = page[page.index('id="compare-table"') :]
    assert table.count("<tbody>") == 1
    assert table.count("<tr>") == 2 + 2  # two rows of heads, two depths
    assert "p99 latency, µs</th>" in table
    assert table.count("Ratio</th>") == 1
    assert 'aria-sort="ascending">Queue depth</th>' in table


def test_a_zoom_reads_the_seconds_of_its_span(operator: Client, run: Run) -> None:
    address = "/explore/timeline.json?run=1&x=iodepth&series=ioengine&panel=pattern&view=timeline"
    whole = operator.get(f"{address}&from=0&to=60").json()
    assert [series["name"] for series in whole["series"]] == ["io_uring", "psync"]
    assert (whole["from_s"], operator.get(f"{address}&from=1&to=2").json()["from_s"]) == (0, 1)
    for query in ("from=2&to=1", "from=1&to=1", "from=-1&to=1", "from=0&to=1e3", "from=0&to=99999999999"):
        assert operator.get(f"{address}&{query}").status_code == 422
    with measured_cost() as cost:
        far = operator.get(f"{address}&from=0&to=30000000").json()
    assert cost.memory_bytes < 50 * 2**20  # a value for each of these seconds would have 240 MB a line
    assert far == whole
    assert operator.get(f"{address}&from=now").status_code == 422


def test_all_conclusions_are_on_the_page_the_certain_ones_first(operator: Client) -> None:
    """Fourteen block sizes are fourteen charts; psync differs at the last one only."""
    lab = Lab(a_target(a_host("a"), "scratch"))
    for place in range(14):
        psync = (50.0, 50.5, 51.0) if place == 13 else (99.0, 100.0, 101.0)
        lab.measure(99.0, 100.0, 101.0, block_size=4096 * (place + 1))
        lab.measure(*psync, block_size=4096 * (place + 1), ioengine="psync")
    alternate(lab.run)
    made = compare(read_query([("x", "iodepth"), ("series", "ioengine"), ("panel", "block_size")]))
    sentences = sentences_of(made)
    assert len(sentences) == 14
    assert sentences[0][0] == made.panels[13].name
    page = operator.get("/explore/?x=iodepth&series=ioengine&panel=block_size").content.decode()
    assert all(escape(sentence) in page for _, sentence in sentences)


def test_a_table_over_block_sizes_has_both_rates(operator: Client) -> None:
    lab = Lab(a_target(a_host("a"), "nvme"))
    for size, iops in ((4096, 1000.0), (2**20, 100.0)):
        for result in lab.measure(iops, iops, block_size=size):
            Result.objects.filter(pk=result.pk).update(bytes_per_s=iops * size)
    made = operator.get("/api/v1/compare?x=block_size").json()
    assert [cell["other_rate"] for cell in made["panels"][0]["series"][0]["cells"]] == ["4.10 MB/s", "105 MB/s"]
    made = operator.get("/api/v1/compare?x=block_size&metric=bytes_per_s").json()
    assert [cell["other_rate"] for cell in made["panels"][0]["series"][0]["cells"]] == ["1.00k IOPS", "100 IOPS"]
    assert "105 MB/s" in operator.get("/explore/?x=block_size").content.decode()
    made = operator.get("/api/v1/compare?x=iodepth&factor.block_size=4k").json()
    assert [cell["other_rate"] for cell in made["panels"][0]["series"][0]["cells"]] == [""]
