"""Previews of runs over HTTP, against the real database."""

import pytest

from webapp.api.tests.clients import DOCUMENT, Caller
from webapp.hosts.models import Host
from webapp.plans.factors import FACTORS
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive, a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def test_a_preview_shows_the_job_text_and_touches_nothing(viewer: Caller, operator: Caller, host: Host) -> None:
    a_target(host, "scratch")
    a_drive(host, "nvme0", serial="SN1")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, made = viewer("get", "plans/mine/preview?target=a/scratch&target=a/nvme0&limit=3")
    assert (status, made["problems"], made["arm"]) == (200, [], [])
    assert (made["estimate"]["trials"], len(made["trials"])) == (8, 3)
    texts = [trial["job_text"] for trial in viewer("get", "plans/mine/preview?target=a/scratch")[1]["trials"]]
    assert all("filename=sweetspot.1048576.0" in text and "rw=randread" in text for text in texts)
    assert not Run.objects.exists()
    assert viewer("get", "plans/mine/preview")[1]["code"] == "request_refused"
    assert viewer("get", "plans/mine/preview?target=a/none")[1]["code"] == "target_unknown"


def test_a_preview_warns_about_factors_and_targets(operator: Caller, host: Host) -> None:
    host.capabilities |= {"settings": ["read_ahead_kb"]}
    host.save()
    a_drive(host, "nvme0", warnings=["nvme0n1 was purged."])
    parts = [{"name": "a", "factors": {"pattern": "randread", "read_ahead_kb": "0, 128"}}]
    operator("post", "plans", {"document": DOCUMENT | {"parts": parts}, "slug": "w"})
    target, factor = operator("get", "plans/w/preview?target=a/nvme0")[1]["warnings"]
    assert target == "a/nvme0: nvme0n1 was purged."
    assert factor.startswith("Part a: Read-ahead has no effect here")
    assert operator("get", "hosts/a")[1]["targets"][0]["warnings"] == ["nvme0n1 was purged."]


@pytest.mark.parametrize(("factors", "changes", "place"), [
    ({"block_size": "512, 4k"}, {"kind": "block", "logical_block_bytes": 4096}, "block_size"),
    ({"offset": "512"}, {"kind": "block", "logical_block_bytes": 4096}, "offset"),
    ({"size": "6G"}, {"kind": "directory", "file_system": "8:1", "size_bytes": 10 * 2**30}, "size"),
])  # fmt: skip
def test_a_plan_that_every_target_would_refuse_is_refused_before_the_run(
    operator: Caller, host: Host, factors: dict[str, str], changes: dict[str, object], place: str
) -> None:
    for slug in ("first", "second"):
        a_target(host, slug, **changes)
    targets = ["a/first", "a/second"]
    plan = DOCUMENT | {"common": {"runtime": "3s", "size": "1M"}, "parts": [
        {"name": "a", "factors": {"pattern": "randread", **factors}}
    ]}  # fmt: skip
    made = operator("post", "previews", {"document": plan, "targets": targets})[1]
    assert made["problems"]
    assert any(text.startswith(f"Part a: {FACTORS[place].label}") for text in made["warnings"])
    operator("post", "plans", {"document": plan, "slug": "w"})
    assert operator("get", "plans/w/preview?target=a/first&target=a/second")[1]["problems"] == made["problems"]
    assert operator("post", "runs", {"plan": "w", "targets": targets})[0] == 422
    assert not Run.objects.exists()


def test_a_preview_shows_the_steps_before_a_trial(operator: Caller, host: Host) -> None:
    a_drive(host, "nvme0", serial="SN1", size_bytes=2**30)
    parts = [{"name": "a", "factors": {"pattern": "randread"}, "before": ["once write 2x sequential 128k", "flush"]}]
    plan = DOCUMENT | {"common": {"runtime": "3s"}, "parts": parts}
    made = operator("post", "previews", {"document": plan, "targets": ["a/nvme0"], "limit": 2})[1]
    first, second = made["trials"]
    fill, flush = first["steps"]
    assert fill["step"] == "write 2x sequential 128 KiB"
    assert "rw=write\nbs=128k\n" in fill["job_text"]
    assert "io_size=2g\n" in fill["job_text"]
    assert flush == {"step": "flush", "job_text": None}
    assert second["steps"] == [flush]
    assert (made["arm"], made["estimate"]["bytes_written_max"]) == (["SN1"], 2 * 2**31)  # twice, if a trial fails


def test_a_preview_lists_the_drives_that_must_be_armed(arming_operator: Caller, host: Host) -> None:
    operator = arming_operator
    a_drive(host, "nvme0", serial="SN1")
    parts = [{"name": "a", "factors": {"pattern": "randwrite"}}]
    operator("post", "plans", {"document": DOCUMENT | {"parts": parts}, "slug": "w"})
    assert operator("get", "plans/w/preview?target=a/nvme0")[1]["arm"] == ["SN1"]
    status, refused = operator("post", "runs", {"plan": "w", "targets": ["a/nvme0"]})
    assert (status, refused["code"]) == (422, "not_armed")
    assert operator("post", "runs", {"plan": "w", "targets": ["a/nvme0"], "armed_serials": ["SN1"]})[0] == 201


def test_a_preview_shows_the_bytes_expected_from_earlier_results(operator: Caller, lab: Lab) -> None:
    lab.measure(1000.0, 2000.0, direction="write", pattern="randwrite")
    plan = DOCUMENT | {"repeats": 1, "parts": [{"name": "a", "factors": {"pattern": "randwrite"}}]}
    operator("post", "plans", {"document": plan, "slug": "w"})
    made = operator("get", "plans/w/preview?target=a/scratch")[1]
    assert made["expected"] == [{"target": "a/scratch", "bytes": 3 * 1500 * 4096 + 2**20, "by_model": False}]
    assert made["estimate"]["bytes_written_max"] > made["expected"][0]["bytes"]


def test_the_time_of_an_amount_comes_from_the_nearest_measured_workload(operator: Caller, lab: Lab) -> None:
    def estimated(pattern: str) -> tuple[int, float]:
        factors = {"pattern": pattern, "iodepth": "48", "amount": "40M"}
        plan = DOCUMENT | {"repeats": 1, "parts": [{"name": "a", "factors": factors}]}
        made = operator("post", "previews", {"document": plan, "targets": ["a/scratch"]})[1]["estimate"]
        return made["unknown_trials"], made["seconds"]

    lab.measure(1000.0, pattern="randread", iodepth=1)
    lab.measure(5000.0, pattern="randread", iodepth=64)
    unknown, seconds = estimated("randread")
    assert unknown == 0
    assert seconds == pytest.approx(40 * 2**20 / (5000 * 4096), abs=0.6)
    assert estimated("randwrite")[0] == 1  # no such result


def test_a_plan_that_is_not_saved_is_checked_and_previewed(viewer: Caller, host: Host) -> None:
    a_target(host, "scratch")
    status, made = viewer("post", "previews", {"document": DOCUMENT, "targets": ["a/scratch"], "limit": 1})
    assert (status, made["problems"], made["estimate"]["trials"], len(made["trials"])) == (200, [], 4, 1)
    checked = viewer("post", "previews", {"document": DOCUMENT})[1]
    assert (checked["problems"], checked["skipped"], checked["trials"]) == ([], [], [])
    parts = [{"name": "a", "factors": {"pattern": "sideways"}}]
    (problem,) = viewer("post", "previews", {"document": DOCUMENT | {"parts": parts}})[1]["problems"]
    assert problem.startswith("Part a: Pattern: `sideways` is not one of")
    assert viewer("post", "previews", {"yaml": "parts: 3"})[1]["code"] == "plan_file_refused"
    assert not Plan.objects.exists()
