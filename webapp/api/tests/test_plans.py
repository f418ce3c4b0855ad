"""Plans over HTTP, against the real database."""

import pytest

from webapp.api.tests.clients import DOCUMENT, Caller

pytestmark = pytest.mark.django_db


def test_a_plan_is_written_read_changed_exported_deleted_and_brought_back(operator: Caller) -> None:
    status, made = operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    assert (status, made["plan"], made["number"], made["created_by"]) == (201, "mine", 1, "operator-person")
    changed = operator("post", "plans/mine/versions", {"document": DOCUMENT | {"repeats": 5}})[1]
    assert (changed["number"], changed["document"]["repeats"]) == (2, 5)
    assert operator("get", "plans/mine?version=1")[1]["document"]["repeats"] == 2
    assert [v["number"] for v in operator("get", "plans/mine/versions")[1]["items"]] == [2, 1]
    exported = operator("get", "plans/mine/yaml?version=2")[1]
    assert operator("post", "plans", {"yaml": exported})[1]["document"] == changed["document"]
    assert operator("delete", "plans/mine")[0] == 204
    assert [p["slug"] for p in operator("get", "plans")[1]["items"]] == ["mine-2"]
    assert operator("post", "plans/mine/undelete")[0] == 200
    assert operator("get", "plans")[1]["count"] == 2


def test_a_plan_is_copied_compared_restored_and_exported_as_a_job_file(operator: Caller, viewer: Caller) -> None:
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    operator("post", "plans/mine/versions", {"document": DOCUMENT | {"repeats": 5}, "base": 1})
    status, refused = operator("post", "plans/mine/versions", {"document": DOCUMENT | {"repeats": 6}, "base": 1})
    assert (status, refused["code"]) == (422, "plan_changed")
    difference = {"where": "", "what": "Repeats", "before": "2", "after": "5"}
    assert viewer("get", "plans/mine/differences?before=1") == (200, [difference])
    assert operator("post", "plans/mine/versions/1/restore")[1]["number"] == 3
    assert operator("post", "plans/mine/versions/9/restore")[0] == 404
    status, copied = operator("post", "plans/mine/copy?version=2")
    assert (status, copied["plan"], copied["document"]["repeats"]) == (201, "mine-copy", 5)
    text = viewer("get", "plans/mine/job-file?version=2")[1]
    again = operator("post", "job-files", {"text": text})[1]["document"]
    assert (again["title"], again["repeats"], again["parts"][0]["name"]) == ("Mine", 5, "a")
    for path in ("copy", "versions/1/restore", "undelete"):
        assert viewer("post", f"plans/mine/{path}")[0] == 403
    assert viewer("delete", "plans/mine")[0] == 403


def test_a_plan_that_can_run_nowhere_is_refused_by_its_place(operator: Caller) -> None:
    parts = [{"name": "a", "factors": {"pattern": "sideways"}}]
    status, refused = operator("post", "plans", {"document": DOCUMENT | {"parts": parts}})
    assert (status, refused["code"]) == (422, "plan_refused")
    assert refused["message"].startswith("Part a: Pattern: `sideways` is not one of")


def test_a_job_file_becomes_a_plan_or_its_line_is_named(operator: Caller) -> None:
    status, made = operator("post", "job-files", {"text": "[a]\nsize=1m\nrw=randread\n", "title": "Old job"})
    assert (status, made["plan"]) == (201, "old-job")
    status, refused = operator("post", "job-files", {"text": "[a]\nexec_prerun=id\nsize=1m"})
    assert (status, refused["code"]) == (422, "job_file_refused")
    assert refused["message"] == "Line 2: `exec_prerun` is not supported by Sweetspot: it runs a program. Remove it."


def test_a_job_file_is_checked_and_converted_without_saving(operator: Caller, viewer: Caller) -> None:
    job = {"text": "[a]\nsize=${SIZE}\n[b]\nrw=write\nsize=1m\nthread\n", "variables": {"SIZE": "1m"}}
    status, preview = viewer("post", "previews", {"job_file": job})
    assert (status, preview["problems"]) == (200, [])
    assert "`thread` ignored" in preview["note"]
    status, found = viewer("post", "job-files/yaml", job | {"title": "Both"})
    assert status == 200
    assert operator("post", "previews", {"yaml": found["yaml"]})[1]["problems"] == []
    assert viewer("post", "job-files/yaml", {"text": job["text"]})[1]["code"] == "job_file_refused"
    assert operator("put", "plans/both", {"job_file": job})[0] == 201
    assert viewer("post", "previews", {"job_file": job, "yaml": found["yaml"]})[1]["code"] == "plan_file_refused"


def test_a_plan_is_created_or_updated_at_its_name(operator: Caller, viewer: Caller) -> None:
    assert viewer("put", "plans/mine", {"document": DOCUMENT})[0] == 403
    status, made = operator("put", "plans/mine", {"document": DOCUMENT})
    assert (status, made["plan"], made["number"]) == (201, "mine", 1)
    assert operator("put", "plans/mine", {"document": DOCUMENT})[0] == 200
    status, saved = operator("put", "plans/mine", {"document": DOCUMENT | {"repeats": 7}})
    assert (status, saved["number"]) == (201, 2)
    operator("delete", "plans/mine")
    assert operator("put", "plans/mine", {"document": DOCUMENT | {"repeats": 8}})[1]["code"] == "plan_deleted"
