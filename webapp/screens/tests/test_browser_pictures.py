"""Charts of Bench, products, trends, runs and trials are saved as pictures with title, legend, units and date."""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from unittest.mock import ANY
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab
from webapp.trends.tests.measuring import Nights

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def save(page: Page, tmp_path: Path) -> Callable[[str, str], tuple[str, list[str]]]:
    """Presses a button with the keyboard; the name of the file and its texts."""

    def pressed(name: str, ending: str = "SVG") -> tuple[str, list[str]]:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=f"{ending}: {name}").first.press("Enter")
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        if ending == "PNG":
            return path.name, [f"{side} px" for side in struct.unpack(">II", path.read_bytes()[16:24])]
        assert "NaN" not in path.read_text()
        picture = ElementTree.parse(path).getroot()
        assert picture.get("width") == "860"
        assert len(list(picture.iter(f"{SVG}path"))) > 10
        return path.name, [element.text or "" for element in picture.iter(f"{SVG}text")]

    return pressed


Save = Callable[..., tuple[str, list[str]]]


TWICE = "1720 px"  # the width of a PNG: twice that of the picture, whatever the screen has


def assert_dated(page: Page, texts: list[str]) -> None:
    """With the page as the source, whose address may be broken into lines."""
    (source,) = (place for place, text in enumerate(texts) if text.startswith("Sweetspot, "))
    assert re.match(r"Sweetspot, \d{4}-\d\d-\d\d \d\d:\d\d UTC,", texts[source])
    assert urlsplit(page.url).path in "".join(texts[source:])


@pytest.fixture
def labs(live_server: LiveServer) -> None:
    """Two drives, each measured in two runs."""
    host = a_host("storage1")  # drives are compared only in one host
    targets = [a_drive(host, f"nvme{number}", model=model) for number, model in enumerate((SAMSUNG, INTEL))]
    for number, target in enumerate((*targets, *targets), start=1):
        lab = Lab(target, number=number)
        for depth in (1, 4, 16):
            lab.measure(*(1000.0 * number * depth * noise for noise in (0.99, 1.0, 1.01)), iodepth=depth)


BENCH = f"/bench/?product=model:{SAMSUNG}&product=model:{INTEL}"


@pytest.mark.parametrize(
    ("chart", "words", "unit"),
    [("Random read over queue depth", "4 KiB", "IOPS"), ("Latency percentiles", "p99", "Latency")],
)
def test_charts_of_bench(
    page: Page, labs: None, save: Save, problems: list[str], chart: str, words: str, unit: str
) -> None:
    page.goto(BENCH)
    name, texts = save(chart)
    assert name == f"{chart.replace(' ', '-')}.svg"
    assert texts[0] == chart
    assert any(words in text for text in texts[1:])
    assert {SAMSUNG, INTEL, unit} <= set(texts)
    assert_dated(page, texts)
    assert save(chart, "PNG")[1][0] == TWICE
    assert problems == []


def test_bars_of_rankings(page: Page, labs: None, save: Save, problems: list[str]) -> None:
    page.goto("/rankings/?iodepth=1")
    assert save("Random read", "PNG") == ("Random-read-4-KiB-1-in-flight.png", [TWICE, ANY])
    assert problems == []


def test_charts_of_a_product(page: Page, labs: None, save: Save, problems: list[str]) -> None:
    page.goto(f"/products/model/{SAMSUNG}/")
    name, texts = save("Random read over queue depth")
    assert (name, texts[0]) == ("Random-read-over-queue-depth.svg", "Random read over queue depth")
    assert any(text.startswith(SAMSUNG) for text in texts[1:])
    assert {"IOPS", "Queue depth"} <= set(texts)
    assert_dated(page, texts)
    assert problems == []


def test_the_chart_of_a_trend(page: Page, live_server: LiveServer, save: Save, problems: list[str]) -> None:
    nights = Nights(a_version(slug="nightly"), a_target(a_host("a"), "scratch"))
    for _ in range(3):
        nights.run(1000, 4000)
    page.goto("/trends/?plan=nightly&target=a/scratch")
    name, texts = save("IOPS")
    assert name.startswith("IOPS-")
    assert "at a/scratch" in texts[0]
    assert "geometric mean over 2 cells" in texts[1]
    assert texts.count("IOPS") == 2  # legend and axis
    assert "Start of the run, UTC" in texts
    assert "Baseline run" not in texts  # there is none
    assert_dated(page, texts)
    assert problems == []


@pytest.mark.parametrize("address", ["/runs/1/", "/runs/1/trials/1/"])
def test_samples_of_runs_and_trials(page: Page, run: Run, save: Save, problems: list[str], address: str) -> None:
    page.goto(address)
    page.locator("#seconds[data-drawn]").wait_for()
    name, texts = save("Run 1")
    assert name.startswith("Run-1-")
    assert name.endswith(".svg")
    assert "since the" in texts[1]
    assert {"read", "IOPS", "Bandwidth", "read p99", "read p50"} <= set(texts)
    assert any("MB/s" in text for text in texts)
    assert_dated(page, texts)
    assert save("Run 1", "PNG")[1][0] == TWICE
    assert problems == []
