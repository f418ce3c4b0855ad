"""The verdict on two sides over HTTP."""

from urllib.parse import quote

import pytest

from webapp.api.tests.clients import Caller
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db
FASTER, SLOWER = (quote(f"run=1&factor.ioengine={engine}") for engine in ("io_uring", "psync"))


def test_a_verdict_has_a_row_for_each_cell(viewer: Caller, lab: Lab) -> None:
    status, found = viewer("get", f"verdict?baseline={FASTER}&candidate={SLOWER}&tolerance=5")
    assert (status, found["outcome"], found["baseline_results"]) == (200, "fails", 3)
    assert found["counts"] == {"fails": 1, "unclear": 0, "passes": 0}
    (row,) = found["rows"]
    assert (row["metric"], row["outcome"], row["direction"], row["target"]) == ("iops", "fails", "read", "")
    assert row["ratio_high"] < row["limit"] == 0.95
    assert viewer("get", f"verdict?baseline={SLOWER}&candidate={FASTER}")[1]["outcome"] == "passes"
    both = viewer("get", f"verdict?baseline={FASTER}&candidate={SLOWER}&metric=iops&metric=latency_mean")[1]
    assert {row["metric"] for row in both["rows"]} == {"iops", "latency_mean"}


def test_what_cannot_be_judged_is_refused(viewer: Caller, lab: Lab) -> None:
    assert viewer("get", "verdict?baseline=run%3D1&candidate=run%3D7")[0] == 404
    assert viewer("get", "verdict?baseline=colour%3Dred&candidate=run%3D1")[1]["code"] == "filter_refused"
    assert viewer("get", "verdict?baseline=run%3D1&candidate=run%3D1&metric=speed")[1]["code"] == "metric_unknown"
    assert viewer("get", "verdict?baseline=run%3D1&candidate=run%3D1&tolerance=0")[1]["code"] == "tolerance_refused"


def test_single_values_are_judged_only_if_asked(viewer: Caller, lab: Lab) -> None:
    lab.measure(1000.0, ioengine="io_uring", iodepth=7)
    lab.measure(900.0, ioengine="psync", iodepth=7)
    sides = "&".join(
        f"{side}={quote(f'factor.iodepth=7&factor.ioengine={engine}')}"
        for side, engine in (("baseline", "io_uring"), ("candidate", "psync"))
    )
    found = viewer("get", f"verdict?{sides}")[1]
    assert (found["outcome"], found["rows"][0]["ratio"], found["rows"][0]["single_values"]) == ("unclear", None, False)
    found = viewer("get", f"verdict?{sides}&single_values=true")[1]
    (row,) = found["rows"]
    assert (found["outcome"], row["ratio"], row["ratio_low"]) == ("fails", 0.9, None)
    assert (row["single_values"], row["why"]) == (True, "one value on each side, no interval")


def test_ignored_factors_may_differ(viewer: Caller, lab: Lab) -> None:
    address = f"verdict?baseline={FASTER}&candidate={SLOWER}"
    assert "iodepth" in viewer("get", address)[1]["rows"][0]["point"]
    assert "iodepth" not in viewer("get", f"{address}&ignore=iodepth&ignore=direct")[1]["rows"][0]["point"]
    assert viewer("get", f"{address}&ignore=colour")[1]["code"] == "factor_unknown"
