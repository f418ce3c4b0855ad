"""IOPS per price in a comparison. Expected values are worked out by hand."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.analysis.answer import Comparison
from webapp.analysis.comparing import compare
from webapp.analysis.models import Price
from webapp.analysis.question import CompareQuery
from webapp.runs.models import FurtherTarget
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def priced(model: str, amount: str, currency: str = "EUR") -> None:
    Price.objects.create(
        kind="model", name=model, amount=Decimal(amount), currency=currency, priced_on=date(2026, 11, 1)
    )


def made() -> Comparison:
    return compare(CompareQuery(x="iodepth", series=("model",), metric="iops_per_price"))


def means(comparison: Comparison) -> dict[str, float]:
    return {one.name: one.cells[0].summary.mean for panel in comparison.panels for one in panel.series}


@pytest.fixture
def two_models() -> tuple[Lab, Lab]:
    host = a_host("storage1")
    labs = Lab(a_drive(host, "a", model="M1")), Lab(a_drive(host, "b", model="M2"), number=2)
    for lab in labs:
        lab.measure(1000.0)
    return labs


def test_it_divides_by_the_price_of_the_drive_and_names_the_prices(two_models: tuple[Lab, Lab]) -> None:
    priced("M1", "250")
    priced("M2", "100")
    with CaptureQueriesContext(connection) as queries:
        comparison = made()
    assert sum("compare_price" in query["sql"] for query in queries) == 1
    assert (comparison.metric_label, comparison.unit) == ("IOPS per EUR", "IOPS/EUR")
    assert means(comparison) == {"M1": pytest.approx(4), "M2": pytest.approx(10)}
    assert comparison.panels[0].series[1].sentence.startswith("M2 showed ×2.50 the IOPS per EUR of M1 (")
    assert "Prices of one drive, in EUR: M1 250.00 (2026-11-01), M2 100.00 (2026-11-01)." in comparison.notes


def test_a_better_price_is_not_called_faster() -> None:
    priced("M1", "100")
    priced("M2", "80")
    host = a_host("storage1")
    first, second = Lab(a_drive(host, "a", model="M1")), Lab(a_drive(host, "b", model="M2"), number=2)
    first.measure(990.0, 1000.0, 1010.0)
    second.measure(990.0, 1000.0, 1010.0)
    assert made().panels[0].series[1].sentence.startswith("M2 has 25 % higher IOPS per EUR than M1 (")


def test_both_directions_of_a_mix_count_and_all_drives_of_a_layout(two_models: tuple[Lab, Lab]) -> None:
    priced("M1", "250")
    lab = two_models[0]
    read = lab.measure(1000.0, pattern="randrw", read_percent=50, iodepth=2)[0]
    read.pk, read.direction, read.iops = None, "write", 500.0
    read.save()
    lab.measure(1000.0, layout="raid0 x4 chunk 64k / xfs", iodepth=8)
    comparison = made()
    found = {comparison.levels[cell.level].text: cell.summary.mean for cell in comparison.panels[0].series[0].cells}
    assert found == {"1": pytest.approx(4), "2": pytest.approx(1500 / 250), "8": pytest.approx(1)}


def test_all_drives_of_layouts_at_once_count(two_models: tuple[Lab, Lab]) -> None:
    priced("M1", "250")
    two_models[0].measure(1000.0, layout="raid0 x4 chunk 64k / xfs", at_once=2, iodepth=16)
    (found,) = [cell for series in made().panels[0].series for cell in series.cells if cell.summary.mean < 1]
    assert found.summary.mean == pytest.approx(1000 / (250 * 4 * 2))


def test_results_without_a_price_are_left_out_and_counted(two_models: tuple[Lab, Lab]) -> None:
    assert "No drive model of these results has a price (M1, M2)." in " ".join(made().notes)
    priced("M1", "250")
    comparison = made()
    assert set(means(comparison)) == {"M1"}
    assert "1 result is left out: it has no value for IOPS per EUR." in comparison.notes


def test_it_compares_no_prices_of_several_currencies(two_models: tuple[Lab, Lab]) -> None:
    priced("M1", "250")
    priced("M2", "100", "USD")
    comparison = made()
    assert means(comparison) == {}
    assert "The prices are in EUR and USD." in " ".join(comparison.notes)


@pytest.mark.parametrize(
    ("hosts", "second", "expected"),
    [
        (1, {}, {"M1": 2}),
        (1, {"lock_keys": ["eui.1"], "serial": "S1"}, {"M1": 4}),  # two partitions of one disk
        (1, {"lock_keys": ["eui.2", "nvme-drive:M1:S1"], "serial": "S1"}, {"M1": 4}),  # two namespaces
        (1, {"lock_keys": []}, {}),
        (1, {"model": ""}, {}),
        (1, {"lock_keys": ["eui.1"]}, {}),  # two virtual drives on one drive
        (2, {}, {"M1": 2}),
        (2, {"lock_keys": ["eui.1"], "serial": "S1"}, {"M1": 4}),
        (2, {"lock_keys": ["1:sda"], "serial": ""}, {}),
    ],
)
def test_a_drive_under_several_targets_counts_once(
    hosts: int, second: dict[str, Any], expected: dict[str, float]
) -> None:
    priced("M1", "250")
    host = a_host("a")
    first = a_drive(host, "x", model="M1", serial="S1", lock_keys=["eui.1"])
    other = a_drive(host if hosts == 1 else a_host("b"), "y", **({"model": "M1"} | second))
    (result,) = Lab(first).measure(1000.0, at_once=2 // hosts, hosts_at_once=hosts)
    assert result.trial is not None
    FurtherTarget.objects.create(trial=result.trial, stream=1, target=other)
    assert means(made()) == expected
