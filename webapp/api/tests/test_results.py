"""Results and trials over HTTP, against the real database."""

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from webapp.api.tests.clients import Caller
from webapp.tests.factories.results import Lab, add_samples

pytestmark = pytest.mark.django_db


def test_results_are_filtered_by_any_factor(viewer: Caller, lab: Lab) -> None:
    found = viewer("get", "results?factor.ioengine=psync&run=1&limit=2")[1]
    assert found["count"] == 3
    assert [result["iops"] for result in found["items"]] == [63.0, 62.0]
    assert found["items"][0]["target"] == "a/scratch"
    assert found["items"][0]["p999_ns"] is None
    assert viewer("get", "results?factor.block_size=4096")[1]["count"] == 6
    assert viewer("get", "results?factor.block_size=8k")[1]["count"] == 0
    for unknown in ("results?colour=red", "results.parquet?offset=500"):
        assert viewer("get", unknown)[1]["code"] == "filter_refused"


def test_a_trial_comes_with_its_tries_configuration_and_job(viewer: Caller, lab: Lab) -> None:
    trial = lab.run.trials.first()
    assert trial is not None
    attempt = trial.attempts.get()
    add_samples(attempt, 5)
    found = viewer("get", f"trials/{trial.id}")[1]
    assert found["configuration"]["kernel.release"] == "6.1.0"
    assert [(result["direction"], result["iops"]) for result in found["results"]] == [("read", 99.0)]
    assert [one["number"] for one in found["attempts"]] == [1]
    assert found["workload"]["pattern"] == "randread"
    job = viewer("get", f"trials/{trial.id}/job")[1][0]
    assert job["job_text"] == "[sweetspot]\nrw=randread\n"
    (attachment,) = job["attachments"]
    assert attachment["name"] == "fio.json"
    assert json.loads(attachment["text"]) == {"fio version": "fio-3.33"}


def test_a_series_is_read_on_from_where_one_was(viewer: Caller, lab: Lab) -> None:
    trial = lab.run.trials.first()
    assert trial is not None
    add_samples(trial.attempts.get(), 5)
    first = viewer("get", f"trials/{trial.id}/samples?limit=3")[1]
    assert ([s["offset_ms"] for s in first["samples"]], first["more"]) == ([1000, 2000, 3000], True)
    rest = viewer("get", f"trials/{trial.id}/samples?after_ms=3000")[1]
    assert ([s["offset_ms"] for s in rest["samples"]], rest["more"]) == ([4000, 5000], False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30), st.text(max_size=30))
@example("run", "a\0b")
def test_no_filter_makes_it_fail(viewer: Caller, key: str, value: str) -> None:
    from urllib.parse import urlencode

    query = urlencode([(key, value), (f"factor.{key}", value)], errors="replace")
    expected = {422} if "\0" in key + value else {200, 422}
    for path in ("results", "compare", "runs", "targets"):
        assert viewer("get", f"{path}?{query}")[0] in expected
