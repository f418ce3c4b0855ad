"""Explore with imports and references: the page has a chart with values, whatever the tools stated."""

import re
from collections import Counter
from html import unescape
from urllib.parse import parse_qsl

import pytest
from django.test import Client

from webapp.analysis.answer import Comparison
from webapp.imports.references.reading import load_references
from webapp.results.models import Import, Result, StreamRun
from webapp.runs.models import Run
from webapp.screens.tests.test_explore import run  # noqa: F401 - fixture
from webapp.tests.factories.imports import an_import

BM_FLASH = "pattern,block_size,numjobs,iops\nrandread,4k,1,5000\nrandread,4k,10,9000\nrandread,8k,1,4000\n"


def explored(client: Client, address: str) -> tuple[dict[str, str], Comparison]:
    """The address after the redirects, and the comparison of the page, which has a chart with values."""
    answer = client.get(address, follow=True)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "Dropped" not in page
    assert "<canvas" in page, address
    made = answer.context["comparison"]
    assert any(series.cells for panel in made.panels for series in panel.series), address
    return dict(parse_qsl(answer.request["QUERY_STRING"])), made


def test_an_import_after_the_last_run_does_not_hide_the_run(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    an_import()
    given, made = explored(operator, "/explore/")
    assert (given["run"], "target" in given, made.results) == ("1", False, 36)


def test_without_runs_the_newest_import_is_shown(operator: Client) -> None:
    an_import(title="Older", drive="A")
    an_import(title="Newer", drive="B", text=BM_FLASH)
    load_references()
    given, made = explored(operator, "/explore/")
    assert (given["import"], made.results) == ("2", 3)


def test_a_reference_is_shown_if_there_is_nothing_else(operator: Client) -> None:
    load_references()
    given, _ = explored(operator, "/explore/")
    assert given["import"] == str(Import.objects.count())


@pytest.mark.parametrize("query", ["tool=CSV", "direction=read", "invalid=1", "reference=1", "factor.pattern=randread"])
def test_filters_that_match_imports_have_a_chart(operator: Client, run: Run, query: str) -> None:  # noqa: F811 - fixture
    an_import()
    given, _ = explored(operator, f"/explore/?{query}")
    assert "None" not in str(given)


def test_a_run_and_an_import_are_compared(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    an_import()
    given, made = explored(operator, "/explore/?run=1&import=1")
    assert given["series"] == "target"
    assert {series.name for panel in made.panels for series in panel.series} == {"storage1/scratch", "lab1/PM9A3"}


def test_each_reference_has_a_chart_with_values(operator: Client) -> None:
    load_references()
    for one in Import.objects.all():
        page = operator.get(f"/imports/{one.number}/").content.decode()
        link = unescape(re.findall(r'href="(/explore/[^"]+)"', page)[0])
        _, made = explored(operator, link)
        tables = Result.objects.filter(origin__imported=one).order_by().values_list("origin__other__table", flat=True)
        (_, largest), *_ = Counter(tables).most_common(1)
        assert made.results >= max(largest // 3, 1), one.slug


@pytest.mark.parametrize(
    ("slug", "metric", "x"),
    [
        ("tachion-400gb", "bytes_per_s", "fact.fill level"), ("fusionio-duo-320gb", "bytes_per_s", "fact.fill level"),
        ("intel-320-random-read", "bytes_per_s", "numjobs"),
        ("mysql-tachion", "new_orders_per_min", "fact.buffer pool"),
        ("supermicro-2026tt-power", "power_watt", "fact.blades"), ("mtron-raid0-12", "iops", "block_size"),
    ],
)  # fmt: skip
def test_metric_and_x_are_those_that_the_source_states(operator: Client, slug: str, metric: str, x: str) -> None:
    load_references()
    number = Import.objects.get(slug=slug).number
    given, _ = explored(operator, f"/explore/?import={number}")
    assert (given.get("metric", "iops"), given["x"]) == (metric, x)


def test_metrics_of_the_tool_are_offered_beside_the_usual_ones(operator: Client) -> None:
    load_references()
    number = Import.objects.get(slug="lsi9266-vertex4-dd").number
    page = operator.get(f"/explore/?import={number}", follow=True).content.decode()
    assert '<option value="bytes_per_s" selected>Bandwidth</option>' in page
    assert '<option value="array_1_mb_per_s">Array 1</option>' in page


def test_hosts_of_imports_are_offered_as_filters(operator: Client) -> None:
    an_import(host="lab7")
    page = operator.get("/explore/?import=1", follow=True).content.decode()
    assert 'name="host" value="lab7"' in page
    _, made = explored(operator, "/explore/?host=lab7")
    assert made.results == 3


def test_metrics_without_values_are_not_offered(operator: Client) -> None:
    an_import(text=BM_FLASH)
    page = operator.get("/explore/?import=1", follow=True).content.decode()
    assert '<option value="iops" selected>IOPS</option>' in page
    for key in ("copy_s", "latency_p99", "power"):
        assert f'<option value="{key}"' not in page
    page = operator.get("/explore/?import=1&metric=power", follow=True).content.decode()
    assert '<option value="power" selected>Power (no values)</option>' in page
    assert '<option value="iops">IOPS</option>' in page


def test_nothing_is_mixed_in_one_value(operator: Client) -> None:
    """Threads of bm-flash were one mean."""
    load_references()
    number = Import.objects.get(slug="mtron-raid0-12").number
    _, made = explored(operator, f"/explore/?import={number}")
    cells = [cell for panel in made.panels for series in panel.series for cell in series.cells]
    assert len(cells) == made.results == 84
    assert {cell.doubts for cell in cells} == {()}


def test_a_metric_that_no_result_has_is_named(operator: Client) -> None:
    load_references()
    number = Import.objects.get(slug="tachion-400gb").number
    page = operator.get(f"/explore/?import={number}&metric=iops&x=size").content.decode()
    assert "13 results are left out: they have no value for IOPS." in page


def test_tools_with_their_versions_are_compared_and_filtered(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    StreamRun.objects.filter(results__point__ioengine="psync").update(engine_version="fio-3.36")
    StreamRun.objects.exclude(results__point__ioengine="psync").update(engine_version="fio-3.33")
    _, made = explored(operator, "/explore/?run=1&x=iodepth&series=tool_version&panel=pattern")
    assert {series.name for panel in made.panels for series in panel.series} == {"fio 3.33", "fio 3.36"}
    assert not {"tool", "engine version"} & {one.name for one in made.differs}
    _, made = explored(operator, "/explore/?run=1&x=matched&tool_version=fio+3.36")
    assert made.results == 18
    an_import()
    for query, count in (("fio+3.33", 18), ("CSV", 3), ("CSV+1.0", 0), ("fio", 0)):
        table = operator.get(f"/results.csv?tool_version={query}").getvalue().decode()
        assert len(table.splitlines()) == 1 + count, query
    assert 'name="tool_version" value="CSV"' in operator.get("/results/").content.decode()


def test_fixing_a_factor_keeps_the_run_and_the_import(operator: Client, run: Run) -> None:  # noqa: F811 - fixture
    """Most values lacked the I/O engine, so the run was filtered away."""
    load_references()
    number = Import.objects.get(slug="lsi9266-vertex4-sdb").number
    _, made = explored(operator, f"/explore/?run=1&import={number}")
    targets = " ".join(series.name for panel in made.panels for series in panel.series)
    assert "storage1/scratch" in targets
    assert "OCZ Vertex4" in targets


def test_a_scatter_chart_has_a_second_metric_that_results_have(operator: Client) -> None:
    an_import(text="pattern,block_size,iops,mib_per_s\nrandread,4k,1000,4\nrandread,8k,900,7\n")
    page = operator.get("/explore/?import=1&chart=scatter", follow=True).content.decode()
    assert "Bandwidth over IOPS" in page
    page = operator.get("/explore/?import=1&chart=scatter&against=latency_p99", follow=True).content.decode()
    assert "No result has both IOPS and p99 latency." in page
    assert "<canvas" not in page


def test_a_time_line_without_seconds_says_so(operator: Client) -> None:
    an_import()
    page = operator.get("/explore/?import=1&view=timeline", follow=True).content.decode()
    assert "No values per second of IOPS are stored for" in page
    assert "<canvas" not in page


TABLES = """table,scheduler,strip size,pattern,mib_per_s
Elevator,noop,,read,2000
Elevator,noop,,write,1400
Elevator,deadline,,read,1700
Elevator,deadline,,write,1100
Elevator,cfq,,read,1800
Elevator,cfq,,write,1650
Strip size,,8 kB,read,1000
Strip size,,8 kB,write,500
Strip size,,256 kB,read,1700
Strip size,,256 kB,write,1600
"""
SAME_SHAPE = """table,pattern,numjobs,iops
Default,read,1,300
Default,read,2,190
Tuned,read,1,330
Tuned,read,2,480
"""
TOOL_TESTS = """name,pattern,numjobs,iops
Initial write,write,1,330
Initial write,write,2,340
Rewrite,write,1,300
Rewrite,write,2,310
Read,read,1,500
Read,read,2,510
Re-read,read,1,600
Re-read,read,2,620
"""


def test_each_table_of_an_import_is_shown_with_its_own_rows_and_columns(operator: Client) -> None:
    an_import(text=TABLES)
    given, made = explored(operator, "/explore/?import=1")
    assert (given["fact.table"], given["x"], given["series"]) == ("Elevator", "pattern", "scheduler")
    assert made.results == 6
    page = operator.get("/explore/?import=1", follow=True).content.decode()
    links = dict(re.findall(r'href="([^"]+)"(?: aria-current="true")?>(Elevator|Strip size)</a>', page))
    assert list(links.values()) == ["Elevator", "Strip size"]
    given, made = explored(operator, unescape(next(url for url, name in links.items() if name == "Strip size")))
    assert ("scheduler" in str(given), "fact.strip size" in str(given), made.results) == (False, True, 4)


def test_tables_with_the_same_tests_are_compared(operator: Client) -> None:
    an_import(text=SAME_SHAPE)
    given, made = explored(operator, "/explore/?import=1")
    assert ("fact.table" in given, given["series"], made.results) == (False, "fact.table", 4)


def test_a_person_may_compare_tables_or_choose_one(operator: Client) -> None:
    an_import(text=TABLES)
    given, made = explored(operator, "/explore/?import=1&series=fact.table")
    assert "fact.table" not in given
    assert [series.name for series in made.panels[0].series] == ["Elevator"]
    assert [mixture.name for mixture in made.mixtures] == ["fact.strip size"]
    given, made = explored(operator, "/explore/?import=1&fact.table=unknown&fact.table=Strip size")
    assert made.results == 4
    form = operator.get("/explore/?import=1&fact.table=Strip size", follow=True).content.decode()
    assert 'name="fact.table"' in form


def test_a_chart_without_the_baseline_compares_with_its_own_first_series(operator: Client) -> None:
    an_import(text=TOOL_TESTS)
    _, made = explored(operator, "/explore/?import=1&x=numjobs&series=test&panel=pattern")
    bases = {panel.key: series.name for panel in made.panels for series in panel.series if series.is_baseline}
    assert bases == {"read": "Re-read", "write": "Initial write"}
    sentences = [series.sentence for panel in made.panels for series in panel.series if series.sentence]
    assert len(sentences) == 2
    assert all("share no test points" not in sentence for sentence in sentences)


def test_a_chosen_baseline_is_that_of_all_charts(operator: Client) -> None:
    an_import(text=TOOL_TESTS)
    _, made = explored(operator, "/explore/?import=1&x=numjobs&series=test&panel=pattern&baseline=Rewrite")
    read = next(panel for panel in made.panels if panel.key == "read")
    assert not any(series.is_baseline for series in read.series)
    assert [series.sentence for series in read.series] == ["Re-read and Read share no test points with Rewrite.", ""]


def test_a_layout_that_follows_x_is_no_series(operator: Client) -> None:
    an_import(text="layout,pattern,at_once,mib_per_s\n2 x A,write,2,1470\n3 x A,write,3,1770\n4 x A,write,4,1790\n")
    given, made = explored(operator, "/explore/?import=1")
    assert (given["x"], "series" in given) == ("at_once", False)
    assert len(made.panels[0].series[0].cells) == 3


def test_sizes_in_labels_are_in_the_order_of_their_bytes(operator: Client) -> None:
    an_import(
        text="strip size,pattern,mib_per_s\n1 MB,read,2\n8 kB,read,1\n256 KiB,read,3\n2 MB/256 kB,read,4\n64kB,read,5\n"
    )
    _, made = explored(operator, "/explore/?import=1&x=fact.strip size&metric=bytes_per_s")
    assert [level.text for level in made.levels] == ["8 kB", "64kB", "256 KiB", "1 MB", "2 MB/256 kB"]


def test_an_array_is_named_with_its_drives(operator: Client) -> None:
    load_references()
    number = Import.objects.get(slug="intel-320-random-read").number
    _, made = explored(operator, f"/explore/?import={number}")
    names = {series.name for panel in made.panels for series in panel.series}
    assert names == {"RAID 10 of 8 × SAS 2.5-inch hard disk", "single Intel 320", "RAID 0 of 2 × Intel 320"}
    own = an_import(drive="SSD", text="layout,pattern,iops\nRAID 0 of SSDs,read,1\nRAID 1,read,2\n")
    _, made = explored(operator, f"/explore/?import={own.number}")
    assert {series.name for series in made.panels[0].series} == {"RAID 0 of SSDs", "RAID 1 SSD"}


@pytest.mark.parametrize(("sizes", "metric"), [("4k 8k 1M", "iops"), ("4k 1M 4M", "bytes_per_s")])
def test_bandwidth_comes_first_for_large_blocks_and_iops_for_small_ones(
    operator: Client, sizes: str, metric: str
) -> None:
    lines = "".join(f"randread,{size},{1000 + place},{500 + place}\n" for place, size in enumerate(sizes.split()))
    made = an_import(text=f"pattern,block_size,iops,mib_per_s\n{lines}")
    given, _ = explored(operator, f"/explore/?import={made.number}")
    assert given.get("metric", "iops") == metric
    table = operator.get(f"/imports/{made.number}/").context["table"]
    rates = [column.key for column in table.columns if column.key in ("iops", "bytes_per_s")]
    assert rates == sorted(("iops", "bytes_per_s"), key=lambda key: key != metric)
    for row, size in zip(table.rows, sizes.split(), strict=True):
        bold = [column.key for column, (style, _) in zip(table.columns, row.cells, strict=True) if "fw-bold" in style]
        assert bold == ["bytes_per_s" if size.endswith("M") else "iops"]


def test_with_an_x_it_opens_with_the_metric_that_its_results_have(operator: Client) -> None:
    made = an_import(text="pattern,size,mib_per_s\nread,1G,100\nread,2G,200\n")
    given, compared = explored(operator, f"/explore/?import={made.number}&x=size")
    assert (given["metric"], compared.results) == ("bytes_per_s", 2)
    given, compared = explored(operator, f"/explore/?import={an_import(text=BM_FLASH).number}&x=block_size")
    assert ("metric" in given, compared.results) == (False, 1)  # 4 KiB has two numbers of jobs
    large = an_import(text="pattern,block_size,iops,mib_per_s\nread,1M,100,100\nread,2M,90,180\n")
    given, _ = explored(operator, f"/explore/?import={large.number}&x=block_size")
    assert given["metric"] == "bytes_per_s"
