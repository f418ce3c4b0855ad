"""Comparing and filtering in Debian's Chromium: by mouse and by keys, on a wide and on a narrow screen."""

import base64
import csv
import re
from pathlib import Path
from statistics import geometric_mean
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect
from pypdf import PageObject, PdfReader

from webapp.analysis.services import save_comparison
from webapp.core.models import User
from webapp.pictures.elements import HEX, colours_of
from webapp.results.models import Result, Sample, known
from webapp.runs.models import Attempt, Run
from webapp.screens.tests.test_explore import with_histograms
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import finish_run
from webapp.tests.visits import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ADDRESS = "/explore/?run=1&x=iodepth&series=ioengine&panel=pattern"
PSYNC = HEX[colours_of(["io_uring", "psync"])["psync"]]
PSYNC_RGB = f"rgb({int(PSYNC[1:3], 16)}, {int(PSYNC[3:5], 16)}, {int(PSYNC[5:], 16)})"
# How many pixels of a picture have a colour, and how many are dark.
PIXELS = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  const data = pen.getImageData(0, 0, image.width, image.height).data;
  let coloured = 0;
  let dark = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = data.slice(at, at + 3);
    if (Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
    if (Math.max(red, green, blue) < 100) dark += 1;
  }
  return { width: image.width, height: image.height, coloured, dark };
}"""


@pytest.fixture
def done(page: Page, run: Run) -> Run:
    finish_run(run)
    return run


def test_it_shows_lines_bars_and_a_heat_map_of_the_same_selection(
    page: Page,
    done: Run,
    problems: list[str],
) -> None:
    page.goto(ADDRESS)
    expect(page.locator("canvas")).to_have_count(4)
    for chart in ("bar", "box", "scatter"):
        page.get_by_label("Chart type").select_option(chart)
        page.wait_for_url(f"**chart={chart}**")
        expect(page.locator("canvas")).to_have_count(4)
    page.get_by_label("Chart type").select_option("heat")
    expect(page.locator("table.heat")).to_have_count(4)
    expect(page.locator("table.heat .mark").nth(1)).to_have_css("background-color", PSYNC_RGB)
    assert problems == []


def test_it_is_worked_by_keys_alone(page: Page, done: Run, problems: list[str]) -> None:
    page.goto(ADDRESS)
    metric = page.get_by_label("Metric")
    metric.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert "metric=" not in page.url  # still going through the list
    page.keyboard.press("Enter")
    page.wait_for_url("**metric=latency_mean**")
    expect(metric).to_be_focused()

    page.locator("#pick-add > summary").focus()
    page.keyboard.press("Enter")
    page.locator("#pick-add summary", has_text="Pattern").focus()
    page.keyboard.press("Enter")
    page.get_by_role("group", name="Pattern").get_by_label("randread").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    page.wait_for_url("**factor.pattern=randread**")
    expect(page.locator("canvas")).to_have_count(1)
    expect(page.locator("#pick-add > summary")).to_be_focused()
    page.get_by_role("link", name="Remove filter Pattern").focus()
    page.keyboard.press("Enter")
    expect(page.locator("canvas")).to_have_count(4)
    assert problems == []


@pytest.mark.parametrize("query", ["", "&factor.pattern=randread", "&view=latency", "&view=timeline", "&chart=heat"])
def test_the_chart_is_visible_without_scrolling(page: Page, done: Run, query: str) -> None:
    with_histograms(done)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{ADDRESS}{query}")
    chart = page.locator("canvas, table.heat").last
    expect(chart).to_be_visible()
    box = chart.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900


def test_its_tables_are_sorted_by_click_and_by_key(page: Page, done: Run, problems: list[str]) -> None:
    page.goto(f"{ADDRESS}&factor.pattern=randread&factor.pattern=randwrite")
    table = page.locator("table.pivot").first
    levels = table.locator("tbody th")
    expect(levels).to_have_text(["1", "32"])
    value = table.get_by_role("button", name="kIOPS").first
    value.click()
    value.click()
    expect(levels).to_have_text(["32", "1"])
    expect(table.locator("th[aria-sort=descending]")).to_contain_text("kIOPS")
    table.get_by_role("button", name="Ratio").focus()
    page.keyboard.press("Enter")
    expect(table.locator("[aria-sort]")).to_have_count(1)
    expect(table.locator("th[aria-sort=ascending]")).to_contain_text("Ratio")
    assert problems == []


def test_it_goes_on_from_a_baseline_to_other_series_and_to_another_x(
    page: Page,
    done: Run,
    problems: list[str],
) -> None:
    page.goto(ADDRESS)
    page.get_by_label("Baseline").select_option("psync")
    page.wait_for_url("**baseline=psync**")
    page.get_by_label("One series per").select_option("direction")
    page.wait_for_url("**series=direction**")
    equals = page.get_by_role("link", name="compare only equals").first  # the points cover several I/O engines now
    expect(equals).to_be_visible()
    page.get_by_label("x axis").select_option("direction")
    page.wait_for_url("**x=direction**")
    expect(page.get_by_label("One series per")).to_have_value("iodepth")
    equals.click()
    page.wait_for_url("**x=matched**")
    expect(page.locator("#compare-table")).to_be_visible()
    assert "before=" not in page.url
    assert problems == []


def test_it_zooms_and_takes_that_back(page: Page, done: Run, problems: list[str]) -> None:
    page.goto(ADDRESS)
    reset = page.get_by_role("button", name="Reset zoom")
    page.wait_for_load_state("networkidle")
    page.locator("#compare-chart").scroll_into_view_if_needed()
    box = page.locator("#compare-chart").bounding_box()  # once everything above it has its place
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 250, box["y"] + 150, steps=5)
    page.mouse.up()
    expect(reset).to_be_visible()
    reset.click()
    expect(reset).to_be_hidden()
    assert problems == []


@pytest.mark.parametrize("chart", ["", "&chart=heat", "&chart=box"])
def test_it_saves_a_picture_that_says_what_it_is(page: Page, done: Run, tmp_path: Path, chart: str) -> None:
    page.goto(f"{ADDRESS}{chart}")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="PNG").click()
    picture = waiting.value
    assert picture.suggested_filename == "IOPS-over-Queue-depth.png"
    picture.save_as(tmp_path / "picture.png")
    seen = page.evaluate(PIXELS, base64.b64encode((tmp_path / "picture.png").read_bytes()).decode())
    assert seen["width"] >= 2 * 860
    assert seen["height"] > 300
    # a line's colour where the chart is, dark letters of the title above it
    assert seen["coloured"] > 200
    assert seen["dark"] > 50


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "Queue depth"), ("&chart=box", "Queue depth"), ("&chart=scatter", "p99 latency"),
        ("&chart=heat", "psync"), ("&view=latency", "Percentile"), ("&view=timeline", "Time since start"),
    ],
)  # fmt: skip
def test_it_saves_an_svg_with_title_legend_units_and_date(
    page: Page, done: Run, tmp_path: Path, problems: list[str], query: str, words: str
) -> None:
    with_histograms(done)
    page.goto(f"{ADDRESS}{query}")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    assert waiting.value.suggested_filename.endswith(".svg")
    waiting.value.save_as(tmp_path / "picture.svg")
    picture = ElementTree.parse(tmp_path / "picture.svg").getroot()
    texts = [element.text or "" for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert words in texts
    assert "io_uring (baseline)" in texts
    assert any(re.match(r"Sweetspot, \d{4}-\d\d-\d\d \d\d:\d\d UTC,", text) for text in texts)
    drawn = [one for one in picture.iter("{http://www.w3.org/2000/svg}path") if PSYNC in str(one.attrib)]
    assert drawn or "heat" in query
    assert "NaN" not in (tmp_path / "picture.svg").read_text()
    assert problems == []


def downloaded(page: Page, link: str, to: Path) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        page.get_by_role("link", name=link, exact=True).click()
    assert waiting.value.suggested_filename == to.name
    waiting.value.save_as(to)
    return list(csv.DictReader(to.read_text().splitlines()))


def test_it_downloads_all_results_that_fit_as_csv(page: Page, done: Run, tmp_path: Path) -> None:
    page.goto("/results/?factor.ioengine=psync&direction=read&sort=-iops")
    page.get_by_text("Export", exact=True).click()
    lines = downloaded(page, "Export CSV", tmp_path / "sweetspot-results.csv")
    fit = done.results.filter(point__ioengine="psync", direction="read")
    assert sorted(float(line["iops"]) for line in lines) == sorted(known(result.iops) for result in fit)
    assert {(line["ioengine"], line["direction"], line["run"]) for line in lines} == {("psync", "read", "1")}


def test_it_downloads_the_comparison_as_csv(page: Page, done: Run, tmp_path: Path) -> None:
    page.goto(ADDRESS)
    shown = page.locator("#compare-table td:has(> .spread):not(.muted, .better, .worse)").count()
    page.get_by_text("Export", exact=True).click()
    lines = downloaded(page, "Export CSV", tmp_path / "sweetspot-comparison.csv")
    assert len(lines) == shown
    one = next(
        line
        for line in lines
        if (line["Pattern"], line["Queue depth"], line["I/O engine"]) == ("randread", "32", "psync")
    )
    point = {"pattern": "randread", "iodepth": 32, "ioengine": "psync"}
    values = [known(result.iops) for result in done.results.filter(point__contains=point)]
    assert float(one["IOPS geometric mean [1/s]"]) == pytest.approx(geometric_mean(values))
    assert int(one["n"]) == len(values)


def test_it_sorts_results_and_goes_on_to_another_page(page: Page, done: Run, problems: list[str]) -> None:
    page.goto("/results/?factor.block_size=4k")
    page.get_by_role("link", name="IOPS").click()
    page.wait_for_url("**sort=-iops**")
    expect(page.locator("th[aria-sort]")).to_have_text(re.compile("IOPS"))
    page.locator("#pick-add > summary").click()
    page.locator("#pick-add summary", has_text="Other factor").click()
    page.locator("#id-more").select_option("iodepth")
    expect(page.locator("#id-levels")).to_be_focused()
    page.keyboard.type("1..8 *2")
    page.keyboard.press("Enter")
    page.wait_for_url("**factor.iodepth=1**")
    expect(page.locator("#results-table tbody tr")).to_have_count(8)
    assert problems == []


def test_filters_of_results_are_chips_that_the_keyboard_adds_and_removes(
    page: Page, done: Run, problems: list[str]
) -> None:
    page.goto("/results/?sort=-iops")
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.locator("#results-table tbody tr").first).to_be_in_viewport()
    page.locator("#pick-add > summary").press("Enter")
    page.locator("#pick-add summary", has_text="Direction").press("Enter")
    page.get_by_role("checkbox", name="read", exact=True).press("Space")
    page.keyboard.press("Escape")
    page.wait_for_url("**direction=read**")
    expect(page.locator(".chip")).to_contain_text("Direction: read")
    assert "sort=-iops" in page.url
    page.get_by_label("Remove filter Direction").press("Enter")
    page.wait_for_url(lambda url: "direction=read" not in url)
    assert "sort=-iops" in page.url
    expect(page.locator(".chip")).to_have_count(0)
    assert problems == []


@pytest.mark.parametrize(("view", "canvas"), [("latency", "#latency-cdf"), ("timeline", "#time-lines")])
def test_it_draws_distributions_and_time_lines(
    page: Page,
    done: Run,
    problems: list[str],
    view: str,
    canvas: str,
) -> None:
    with_histograms(done)
    page.goto(ADDRESS)
    page.get_by_role("link", name={"latency": "Latency distribution", "timeline": "Time line"}[view]).click()
    expect(page.locator(canvas)).to_be_visible()
    expect(page.locator("#compare-key button")).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 800})
    until(page, "document.documentElement.scrollWidth <= 390")  # charts follow a little later
    if view == "timeline":
        page.get_by_text("Table of values").click()
        expect(page.locator("#time-table tbody tr")).to_have_count(3)
    assert problems == []


def test_a_zoom_into_a_long_time_line_shows_its_single_seconds(page: Page, done: Run, problems: list[str]) -> None:
    result = known(Result.objects.filter(run=done).order_by("id").first())
    long_samples(known(result.stream_run).attempt, result.direction, seconds=1800)
    point = "&".join(f"factor.{name}={result.point[name]}" for name in ("pattern", "ioengine", "iodepth"))
    page.goto(f"/explore/?run=1&x=run&{point}&view=timeline")
    canvas = page.locator("#time-lines")
    expect(canvas).to_have_attribute("data-bin-s", "3")
    until(page, "document.getElementById('compare-reset') !== null")
    box = canvas.bounding_box()
    assert box
    for _ in range(20):  # until the zoom is loaded
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.8, steps=4)
        page.mouse.up()
        if page.get_by_role("button", name="Reset zoom").is_visible():
            break
    expect(canvas).to_have_attribute("data-bin-s", "1")
    page.get_by_role("button", name="Reset zoom").click()
    expect(canvas).to_have_attribute("data-bin-s", "3")
    assert problems == []


def long_samples(attempt: Attempt, direction: str, *, seconds: int) -> None:
    """With one slow second in the middle."""
    Sample.objects.filter(attempt=attempt).delete()
    Sample.objects.bulk_create(
        Sample(
            attempt=attempt, stream=0, offset_ms=1000 * n, length_ms=1000, direction=direction, at=attempt.created_at,
            ios=10 if n == seconds // 2 else 1000, bytes=4_096_000, latency=b"",
        )
        for n in range(1, seconds + 1)
    )  # fmt: skip


def test_it_keeps_a_comparison_and_finds_it_again(page: Page, done: Run, problems: list[str]) -> None:
    page.goto(f"{ADDRESS}&chart=heat")
    page.get_by_text("Save comparison").click()
    page.get_by_label("Title", exact=True).fill("Engines")
    page.get_by_label("Note").fill("As delivered")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", name="Engines")).to_be_visible()
    page.get_by_role("link", name="Saved comparisons").click()
    page.get_by_role("button", name="Delete Engines").click()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Engines").click()
    expect(page.locator("table.heat")).to_have_count(4)
    expect(page.get_by_text("Changed since it was saved")).to_have_count(0)
    assert problems == []


def test_a_report_is_printed_light_with_all_charts_and_page_numbers(
    page: Page, done: Run, tmp_path: Path, problems: list[str]
) -> None:
    query = ADDRESS.partition("?")[2]
    saved = save_comparison(title="Engines", note="", query=query, by=User.objects.get(username="olga"))
    page.emulate_media(color_scheme="dark")
    page.goto(f"/comparisons/{saved.pk}/report/")
    expect(page.locator("canvas")).to_have_count(4)
    expect(page.get_by_role("button", name="Print or save as PDF")).to_be_visible()
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    pages = [each.extract_text() for each in PdfReader(tmp_path / "report.pdf").pages]
    assert 2 <= len(pages) <= 6
    assert "IOPS over Queue depth" in pages[0]
    assert "randread" in pages[0]  # the first chart is on the first page
    assert all(f"{number} / {len(pages)}" in text for number, text in enumerate(pages, start=1))
    text = "\n".join(pages)
    assert text.count("Queue depth") >= 4  # the axes of the charts are text too
    assert all(part in text for part in ("Engines", "Conclusions", "psync showed", "All numbers"))
    assert not any(part in text for part in ("Save as HTML", "Save as PDF", "PNG", "Open in Explore", "to zoom"))
    page.emulate_media(media="screen")
    expect(page.locator(".chart-drawing")).to_be_hidden()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    assert problems == []


# Elements on paper whose font or features depend on the machine: with features, fonts such as the OpenType Inter draw
# digits and letters with glyphs of private characters, which a PDF file then contains.
MACHINE_FONTS = """() => [...document.querySelectorAll("body, body *")].flatMap((element) => {
  const style = getComputedStyle(element);
  const features = [style.fontFeatureSettings, style.fontVariantNumeric, style.fontVariantLigatures].join(" ");
  const [family] = style.fontFamily.split(",");
  const isShipped = family === '"Inter Variable"' || style.fontFamily.includes("mono");
  return features === "normal normal none" && isShipped ? [] : [`${element.tagName}: ${features} ${family}`];
})"""


def test_printed_text_uses_the_shipped_font_without_features(page: Page, done: Run) -> None:
    query = ADDRESS.partition("?")[2]
    saved = save_comparison(title="Engines", note="", query=query, by=User.objects.get(username="olga"))
    page.goto(f"/comparisons/{saved.pk}/report/")
    assert page.evaluate(MACHINE_FONTS) != []  # figures of tables have equal widths on the screen
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".drawing-chart text").first).to_be_visible()
    assert page.evaluate(MACHINE_FONTS) == []


def ends_of_texts(page: PageObject) -> list[float]:
    """Where each text of a page of a PDF file begins, in points from the left."""
    found: list[float] = []

    def visit(text: str, cm: list[float], tm: list[float], *_: object) -> None:
        if text.strip():
            found.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])

    page.extract_text(visitor_text=visit)
    return found


def test_wide_tables_and_heat_maps_fit_on_the_paper(page: Page, run: Run, tmp_path: Path, problems: list[str]) -> None:
    rows = [f"randread,{512 << size},{1 << jobs},{1000 + size}" for size in range(14) for jobs in range(8)]
    an_import(text="\n".join(["pattern,block_size,numjobs,iops", *rows]))
    owner = User.objects.get(username="olga")
    query = "import=1&x=block_size&series=numjobs&chart=heat"
    saved = save_comparison(title="Jobs", note="", query=query, by=owner)
    page.goto(f"/comparisons/{saved.pk}/report/")
    expect(page.locator("table.heat")).to_have_count(1)
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    printed = PdfReader(tmp_path / "report.pdf").pages
    text = "\n".join(each.extract_text() for each in printed)
    assert text.count("4 MiB") >= 3  # the last column of the map, the last row of both tables
    assert "series 5 to 8 of 8" in text
    for each in printed:
        assert max(ends_of_texts(each)) < float(each.mediabox.width) - 30
    assert problems == []


@pytest.mark.parametrize("view", ["latency", "timeline", "means&chart=scatter&against=latency_p99"])
def test_a_report_without_a_chart_can_be_saved(page: Page, run: Run, view: str, problems: list[str]) -> None:
    an_import(text="pattern,block_size,iops\nrandread,4k,1000\n")
    owner = User.objects.get(username="olga")
    saved = save_comparison(title="Old", note="", query=f"import=1&x=block_size&view={view}", by=owner)
    page.goto(f"/comparisons/{saved.pk}/report/")
    expect(page.locator(".empty-note")).to_be_visible()
    expect(page.get_by_role("button", name="Save as HTML")).to_be_visible()
    assert problems == []


def test_a_warning_stays_in_the_report(page: Page, done: Run, tmp_path: Path) -> None:
    Result.objects.update(latency_kind="lat")
    Result.objects.filter(point__ioengine="psync").update(latency_kind="clat")
    owner = User.objects.get(username="olga")
    query = f"{ADDRESS.partition('?')[2]}&metric=latency_mean"
    saved = save_comparison(title="Engines", note="", query=query, by=owner)
    page.goto(f"/comparisons/{saved.pk}/report/")
    warning = "Latencies of different kinds"
    expect(page.get_by_role("note")).to_contain_text(warning)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as HTML").click()
    waiting.value.save_as(tmp_path / "report.html")
    assert warning in (tmp_path / "report.html").read_text()


def test_a_report_is_one_file_that_needs_nothing_else(
    page: Page, done: Run, tmp_path: Path, problems: list[str]
) -> None:
    owner = User.objects.get(username="olga")
    query = ADDRESS.partition("?")[2]
    saved = save_comparison(title="Engines & more", note="**Firmware 1.2**", query=query, by=owner)
    page.goto(f"/comparisons/{saved.pk}/report/")
    expect(page.locator("canvas")).to_have_count(4)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as HTML").click()
    assert waiting.value.suggested_filename == "Engines-more.html"
    waiting.value.save_as(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert len(text) < 400_000
    assert not re.search(r"<(script|link|form|canvas|header|button)\b", text)
    assert not re.search(r"""(src|url\()=?["']?(/|http)""", text)
    assert problems == []
    alone = page.context.new_page()
    alone.goto((tmp_path / "report.html").as_uri())
    expect(alone.get_by_role("heading", name="Engines & more")).to_be_visible()
    expect(alone.locator("strong", has_text="Firmware 1.2")).to_be_visible()
    expect(alone.locator("svg path")).not_to_have_count(0)
    expect(alone.get_by_text("psync showed").first).to_be_visible()
    alone.close()
