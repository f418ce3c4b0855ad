"""Baseline runs and verdicts by the API."""

import pytest

from webapp.api.tests.clients import Caller
from webapp.plans.models import PlanVersion
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.plans import a_version
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db


@pytest.fixture
def version() -> PlanVersion:
    return a_version(slug="nightly")


@pytest.fixture
def nights(version: PlanVersion) -> Nights:
    nights = Nights(version, a_target(a_host("a"), "scratch"))
    nights.run(1000, 4000)
    return nights


BODY = {"run": 1, "target": "a/scratch", "tolerances": {"iops": 5, "latency_mean": 10}}


def test_a_baseline_run_is_set_listed_and_removed(operator: Caller, viewer: Caller, nights: Nights) -> None:
    status, made = operator("post", "baselines", BODY)
    assert status == 201
    assert (made["plan"], made["target"], made["run"]) == ("nightly", "a/scratch", 1)
    assert made["tolerances"] == {"iops": 5.0, "latency_mean": 10.0}
    assert viewer("get", "baselines?plan=nightly")[1]["items"] == [made]
    assert viewer("get", "baselines?plan=other")[1]["items"] == []
    assert viewer("delete", f"baselines/{made['id']}")[0] == 403
    assert operator("delete", f"baselines/{made['id']}")[0] == 204
    assert operator("delete", f"baselines/{made['id']}") == (
        404, {"code": "baseline_unknown", "message": f"There is no baseline {made['id']}."},
    )  # fmt: skip


def test_a_verdict_has_its_rows(operator: Caller, viewer: Caller, nights: Nights) -> None:
    operator("post", "baselines", BODY)
    nights.run(1000, 3000)
    status, verdict = viewer("get", "runs/2/verdict")
    assert (status, verdict["outcome"]) == (200, "fails")
    (target,) = verdict["targets"]
    assert target["counts"] == {"fails": 4, "unclear": 0, "passes": 2}
    assert (target["baseline"]["run"], target["new_cells"]) == (1, 0)
    pair = viewer("get", "verdict?baseline=run%3D1&candidate=run%3D2")[1]
    assert [target[key] for key in ("same", "ignored")] == [pair[key] for key in ("same", "ignored")]
    assert target["same"]
    assert target["limits"]
    mean, *cells = (row for row in target["rows"] if row["metric"] == "iops")
    assert (mean["point"], mean["cells"], mean["outcome"]) == (None, 2, "fails")
    row = next(row for row in cells if row["point"]["iodepth"] == 2)
    assert row["ratio"] == pytest.approx(0.75, rel=0.05)
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"] < row["limit"] == pytest.approx(0.95)
    assert (row["direction"], row["outcome"], row["tolerance_percent"]) == ("read", "fails", 5.0)


def test_a_run_without_a_baseline_run_has_no_outcome(viewer: Caller, nights: Nights) -> None:
    assert viewer("get", "runs/1/verdict") == (200, {"run": 1, "outcome": None, "targets": []})


def test_it_refuses_what_cannot_be_judged(operator: Caller, nights: Nights) -> None:
    assert operator("post", "baselines", BODY | {"tolerances": {"speed": 5}})[1]["code"] == "metric_unknown"
    assert operator("post", "baselines", BODY | {"target": "a/other"})[1]["code"] == "target_unknown"
    assert operator("post", "baselines", BODY | {"run": 99})[1]["code"] == "run_unknown"


def test_an_import_is_set_as_the_baseline_of_a_plan(operator: Caller, viewer: Caller, nights: Nights) -> None:
    made = an_import(text="pattern,block_size,iodepth,iops\nrandread,4k,1,1000\nrandread,4k,2,9000\n")
    body = {"imported": made.number, "plan": "nightly", "target": "a/scratch", "tolerances": {"iops": 5}}
    status, baseline = operator("post", "baselines", {**body, "ignore": ["unstated"], "single_values": True})
    assert status == 201
    assert (baseline["run"], baseline["imported"], baseline["single_values"]) == (None, made.number, True)
    assert (baseline["ignore"], baseline["levels"]) == (["unstated"], {})
    _, verdict = viewer("get", "runs/1/verdict")
    (target,) = verdict["targets"]
    assert (verdict["outcome"], target["counts"], target["problem"]) == (
        "fails", {"fails": 1, "unclear": 0, "passes": 1}, "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"run": 1, "imported": 1}, "baseline_refused"),
        ({}, "baseline_refused"),
        ({"imported": 99, "plan": "nightly"}, "import_unknown"),
        ({"imported": 1, "plan": "other"}, "plan_unknown"),
    ],
)
def test_a_baseline_is_either_a_run_or_an_import(
    operator: Caller, nights: Nights, changes: dict[str, object], code: str
) -> None:
    body = {"target": "a/scratch", "tolerances": {"iops": 5}, **changes}
    assert operator("post", "baselines", body)[1]["code"] == code
