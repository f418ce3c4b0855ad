import json
import re
from collections.abc import Callable

import pytest
from django.test import Client

from webapp.results.models import Result, known
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from worker.contract.histogram import LAST_BUCKET_NS, Histogram
from worker.contract.packing import pack

ADDRESS = "/compare/?run=1&x=iodepth&series=ioengine&panel=pattern"


@pytest.fixture
def run(db: None) -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    return run


def test_it_says_what_to_do_while_there_is_nothing_to_compare(operator: Client) -> None:
    page = operator.get("/compare/").content.decode()
    assert "No results yet" in page


def test_it_shows_a_message_if_no_results_match(operator: Client, run: Run) -> None:
    assert "No results match" in operator.get("/compare/?run=99").content.decode()
    assert "No results match" in operator.get("/compare/?run=99&x=iodepth").content.decode()


def test_it_puts_its_own_choice_into_the_address(operator: Client, run: Run) -> None:
    response = operator.get("/compare/?run=1")
    assert response.status_code == 302
    assert response["Location"] == ADDRESS


def test_it_shows_charts_sentences_and_all_numbers(operator: Client, run: Run) -> None:
    page = operator.get(ADDRESS).content.decode()
    assert page.count("<canvas") == 4
    assert 'id="compare-data"' in page
    assert page.count('class="mark"') == 12
    assert "slower than io_uring" in page
    assert "single-factor" in page


def test_it_compares_the_others_with_the_chosen_baseline(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&baseline=psync&metric=latency_p99").content.decode()
    assert '<option value="psync" selected>' in page
    assert "baseline" in page[page.index("psync</td>") :]
    assert "lower is better" in page


def test_it_warns_when_something_else_differs_too(operator: Client, run: Run) -> None:
    page = operator.get("/compare/?run=1&x=iodepth&series=pattern").content.decode()
    assert "confounded" in page
    assert "Block size" in page


@pytest.mark.parametrize(
    "query",
    [
        "x=nonsense", "x=iodepth&metric=speed", "colour=red", "x=iodepth&series=iodepth", "x=iodepth&chart=pie",
        "x=iodepth&baseline=posix", "x=iodepth&factor.size=huge",
    ],
)  # fmt: skip
def test_it_explains_why_results_cannot_be_compared(operator: Client, run: Run, query: str) -> None:
    response = operator.get(f"/compare/?{query}")
    assert response.status_code == 400
    assert "Reset" in response.content.decode()


def test_it_takes_as_many_queries_for_many_results_as_for_few(queries_of: Callable[[str], int], run: Run) -> None:
    address = ADDRESS.replace("run=1&", "")
    few = queries_of(address)
    finish_run(first_look_run(run.version, list(run.targets.all())))
    assert queries_of(address) == few


def test_a_refused_choice_can_be_corrected_in_the_form(operator: Client, run: Run) -> None:
    page = operator.get("/compare/?run=1&x=iodepth&series=iodepth&factor.ioengine=psync").content.decode()
    assert "Queue depth is chosen for both the x axis and series" in page
    assert page.count('<option value="iodepth" selected>Queue depth</option>') == 2
    assert 'name="factor.ioengine" value="psync"' in page


def test_the_newest_run_is_the_default(operator: Client, run: Run) -> None:
    finish_run(first_look_run(run.version, list(run.targets.all())))
    assert "run=2&" in operator.get("/compare/")["Location"]


def test_it_shows_a_heat_map_with_a_legend_and_numbers(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&chart=heat").content.decode()
    assert page.count("data-picture") == 4
    assert "<canvas" not in page
    assert 'class="heat-legend"' in page
    ratios = operator.get(f"{ADDRESS}&chart=heat&cells=ratio").content.decode()
    assert "blue is better" in ratios


def test_it_offers_facts_that_differ_between_observed_configurations(operator: Client, run: Run) -> None:
    digest = run.results.first().stream_run.configuration_id  # type: ignore[union-attr]
    page = operator.get("/compare/?run=1&x=iodepth&series=configuration&panel=pattern").content.decode()
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
    assert "p99.9<" in page
    assert "p99.99<" not in page  # 60,000 I/Os are too few
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
    ladder = page[page.index("p99<") : page.index("</tr>", page.index("p99<"))]
    assert "×" not in ladder
    assert "%" not in ladder


def test_it_shows_a_message_if_no_histogram_is_stored(operator: Client, run: Run) -> None:
    assert "No histogram is stored" in operator.get(f"{ADDRESS}&view=latency").content.decode()


def test_it_overlays_trials_by_time(operator: Client, run: Run) -> None:
    page = operator.get(f"{ADDRESS}&view=timeline&metric=latency_p95").content.decode()
    assert "p99 latency over time at randread" in page
    assert "Samples have no p95 latency" in page
    assert 'id="timeline-data"' in page


@pytest.mark.parametrize("view", ["latency", "timeline"])
def test_its_other_views_refuse_an_unknown_point(operator: Client, run: Run, view: str) -> None:
    response = operator.get(f"{ADDRESS}&view={view}&chart_point=nowhere|7")
    assert response.status_code == 400
    assert "nothing was measured at this chart point" in response.content.decode()


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
    shown = [(point["text"], point["spread_text"]) for point in points]
    table = page[page.index('id="compare-table"') :]
    cells = re.findall(r'<td class="num(?: doubt)?">([^<]+)</td><td class="num muted">([^<]+)</td>', table)
    assert sorted(cells) == sorted(shown)
