"""Every parameter of results and comparisons is described, and every one described is accepted."""

from urllib.parse import quote

import pytest

from webapp.analysis.question import KEYS as COMPARE_KEYS
from webapp.analysis.trial_metrics import COMPARED
from webapp.api.tests.clients import Caller
from webapp.api.urls import api
from webapp.results.reading.filter import DIRECTIONS, KEYS
from webapp.tests.factories.results import Lab
from worker.contract.steadiness import Verdict

pytestmark = pytest.mark.django_db
GROUPS = {"fact.<name>": "fact.table", "factor.<name>": "factor.iodepth"}  # described together -> one of them
OWN = {"limit", "offset"}  # read by the operation itself
ADDRESSES = [("results", ()), ("results.parquet", ()), ("compare", COMPARE_KEYS), ("compare.parquet", COMPARE_KEYS)]
VALUES = {
    "run": "1", "host": "a", "target": "a/scratch", "model": "x", "serial": "x", "controller": "x", "layout": "x",
    "tool": "fio", "tool_version": "fio 3.33", "import": "1", "configuration": "0123456", "plan": "plan-1", "part": "x",
    "label": "x", "direction": "read", "repeat": "1", "steadiness": "steady", "invalid": "1", "reference": "1",
    "fact.table": "x", "factor.iodepth": "1", "x": "block_size", "series": "ioengine", "panel": "pattern",
    "metric": "iops", "baseline": "", "ratios": "percent", "margin": "2",
}  # fmt: skip


def described(path: str) -> dict[str, str]:
    return {
        one["name"]: one["description"]
        for one in api.get_openapi_schema()["paths"][f"/api/v1/{path}"]["get"]["parameters"]
    }


@pytest.mark.parametrize(("path", "own"), ADDRESSES)
def test_every_parameter_that_is_accepted_is_described(path: str, own: tuple[str, ...]) -> None:
    assert set(described(path)) - OWN == {*KEYS, *GROUPS, *own}


def test_every_described_parameter_is_accepted(viewer: Caller, lab: Lab) -> None:
    for path in ("results", "compare"):
        for name in set(described(path)) - OWN:
            key = GROUPS.get(name, name)
            pairs = {"x": "block_size", key: VALUES[key]} if path == "compare" else {key: VALUES[key]}
            status, answer = viewer("get", f"{path}?{'&'.join(f'{k}={quote(text)}' for k, text in pairs.items())}")
            assert status == 200, (path, name, answer)
    assert viewer("get", "results?colour=red")[1]["code"] == "filter_refused"


def test_descriptions_have_every_level(viewer: Caller) -> None:
    assert [name for name in COMPARED if name not in described("compare")["metric"]] == []
    assert [verdict for verdict in Verdict if verdict not in described("results")["steadiness"]] == []
    assert [way for way in DIRECTIONS if way not in described("results")["direction"]] == []
    for verdict in Verdict:
        assert viewer("get", f"results?steadiness={quote(verdict)}")[0] == 200
