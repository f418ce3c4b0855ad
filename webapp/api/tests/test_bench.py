"""Bench over HTTP: the numbers of the page."""

import pytest

from webapp.api.common.schemas import schema_of
from webapp.api.tests.clients import Caller
from webapp.bench.answer import BenchAnswer
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import FACTS, Lab

pytestmark = pytest.mark.django_db


def test_products_are_compared_as_on_the_page(viewer: Caller) -> None:
    host, version = a_host("h1"), None
    for number in (1, 2):
        drive = a_drive(host, f"nvme{number}", model=f"M{number}")
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
    assert (made["shared"], made["by_all"], made["confounded"], made["advice"]) == (1, 1, "", [])
    assert "M2 has ×2.00 the IOPS of M1" in made["conclusions"][0]


def test_drives_of_two_hosts_have_no_ratio_and_it_says_why(viewer: Caller) -> None:
    for number in (1, 2):
        host = a_host(f"h{number}")
        for place, model in enumerate((f"M{number}", f"N{number}")):
            lab = Lab(a_drive(host, f"nvme{place}", model=model), number=10 * number + place)
            lab.measure(100.0, iodepth=1)
    made = viewer("get", "bench?product=model:M1&product=model:M2")[1]
    schema_of(BenchAnswer).model_validate(made)
    assert (made["rows"], made["shared"], made["conclusions"]) == ([], 0, [])
    (advice,) = made["advice"]
    assert (advice["compare"], advice["query"]) == ("Compare N1 with M1", "product=model%3AM1&product=model%3AN1")
    assert viewer("get", f"bench?{advice['query']}")[1]["conclusions"]


def test_results_can_be_held_at_a_level(viewer: Caller) -> None:
    """One drive was measured under a plan that sets the scheduler, the other one under a host with one."""
    host = a_host("h1")
    swept, plain = (Lab(a_drive(host, f"nvme{n}", model=f"M{n}"), number=n) for n in (1, 2))
    for scheduler in ("none", "mq-deadline"):
        swept.measure(100.0, iodepth=1, scheduler=scheduler)
    plain.measure(50.0, iodepth=1, facts=FACTS | {"device.scheduler": "mq-deadline"})
    made = viewer("get", "bench?product=model:M1&product=model:M2")[1]
    (advice,) = made["advice"]
    assert (made["shared"], advice["query"]) == (
        0,
        "product=model%3AM1&product=model%3AM2&hold=scheduler%3Amq-deadline",
    )
    (row,) = viewer("get", f"bench?{advice['query']}")[1]["rows"]
    assert [cell["ratio"] for cell in row["cells"]] == [pytest.approx(2.0), None]  # to the slower one
    assert viewer("get", "bench?product=model:M1&hold=scheduler")[1]["code"] == "bench_factor_unknown"


def test_wrong_products_are_refused(viewer: Caller) -> None:
    assert viewer("get", "bench?product=drive:x")[1]["code"] == "bench_kind_unknown"
    assert viewer("get", "bench?product=")[1]["code"] == "bench_no_product"
    assert viewer("get", "bench?product=model:x&metric=speed")[1]["code"] == "bench_metric_unknown"
    assert viewer("get", "bench")[0] == 422
