"""Bench over HTTP: the numbers of the page."""

import pytest

from webapp.api.common.schemas import schema_of
from webapp.api.tests.clients import Caller
from webapp.bench.answer import BenchAnswer
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_products_are_compared_as_on_the_page(viewer: Caller) -> None:
    version = None
    for number in (1, 2):
        drive = a_drive(a_host(f"h{number}"), "nvme0", model=f"M{number}")
        lab = Lab(drive, version=version, number=number)
        version = lab.run.version
        lab.measure(*(100.0 * number * noise for noise in (0.99, 1.0, 1.01, 1.0)), iodepth=1)
    status, made = viewer("get", "bench?product=model:M1&product=model:M2&baseline=model:M1")
    assert status == 200
    schema_of(BenchAnswer).model_validate(made)
    (row,) = made["rows"]
    assert (row["title"], row["metric"], [cell["ratio"] for cell in row["cells"]]) == (
        "Random read", "iops", [None, pytest.approx(2.0)],
    )  # fmt: skip
    assert (made["shared"], made["by_all"], made["confounded"][:27]) == (1, 1, "Measured in different hosts")
    assert "M2 has ×2.00 the IOPS of M1" in made["conclusions"][0]


def test_wrong_products_are_refused(viewer: Caller) -> None:
    assert viewer("get", "bench?product=drive:x")[1]["code"] == "bench_kind_unknown"
    assert viewer("get", "bench?product=")[1]["code"] == "bench_no_product"
    assert viewer("get", "bench?product=model:x&metric=speed")[1]["code"] == "bench_metric_unknown"
    assert viewer("get", "bench")[0] == 422
