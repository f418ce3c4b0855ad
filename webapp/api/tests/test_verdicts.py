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
