"""The public API from outside: HTTP requests against the real database."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from webapp.api import api
from webapp.compare.comparison import Comparison
from webapp.core.api import schema_of
from webapp.core.models import ApiToken, Role, User
from webapp.core.services import create_api_token
from webapp.hosts.lifecycle import rename_host
from webapp.hosts.models import Host, HostSnapshot, Snapshot
from webapp.plans.models import Plan
from webapp.results.tests.lab import Lab, add_samples, make_host, make_target
from webapp.runs.models import Run, RunState

pytestmark = pytest.mark.django_db

CAPABILITIES = {
    "engines": {"fio": {"version": "fio-3.33", "features": ["io_uring", "psync"]}}, "settings": ["scheduler"],
    "as_root": True, "isolation": "cgroup1",
}  # fmt: skip
DOCUMENT = {
    "title": "Mine",
    "repeats": 2,
    "common": {"size": "1M", "runtime": "3s"},
    "parts": [{"name": "a", "factors": {"pattern": "randread", "iodepth": "1, 2"}}],
}
Caller = Callable[..., tuple[int, Any]]


def caller(role: Role) -> Caller:
    """A person with a token: (method, path, body) -> status and JSON."""
    user = User.objects.create(username=f"{role}-person", role=role)
    token = create_api_token(user=user, name="test")
    client = Client(headers={"Authorization": f"Bearer {token}"})

    def call(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        response = getattr(client, method)(f"/api/v1/{path}", **data)
        is_json = response.content and response.headers.get("Content-Type", "").startswith("application/json")
        return response.status_code, response.json() if is_json else response.content.decode()

    return call


@pytest.fixture
def viewer() -> Caller:
    return caller(Role.VIEWER)


@pytest.fixture
def operator() -> Caller:
    return caller(Role.OPERATOR)


@pytest.fixture
def host() -> Host:
    host = make_host()
    host.capabilities, host.last_seen_at = CAPABILITIES, timezone.now()
    host.save()
    return host


@pytest.fixture
def lab(host: Host) -> Lab:
    lab = Lab(make_target(host))
    lab.measure(99.0, 100.0, 101.0, iodepth=1)
    lab.measure(61.0, 62.0, 63.0, iodepth=1, ioengine="psync")
    return lab


def test_openapi_is_public_and_nothing_else(client: Client) -> None:
    described = client.get("/api/v1/openapi.json")
    assert described.status_code == 200
    paths = described.json()["paths"]
    assert {"/api/v1/hosts", "/api/v1/plans/{slug}/preview", "/api/v1/compare", "/api/v1/trials/{trial_id}/job"} <= set(
        paths
    )
    for path, methods in paths.items():
        for method in methods:
            filled = path.replace("{slug}", "x").replace("{number}", "1").replace("{trial_id}", "0" * 32)
            answer = getattr(client, method)(filled)
            assert (answer.status_code, answer.json()["code"]) == (401, "not_logged_in"), (method, path)


def test_there_is_no_page_that_loads_scripts_from_elsewhere(client: Client) -> None:
    assert api.docs_url is None
    assert client.get("/api/v1/docs").status_code == 404


def test_a_viewer_may_change_nothing(viewer: Caller, lab: Lab) -> None:
    start = {"plan": "plan-1", "targets": ["a/scratch"]}
    changing: list[tuple[str, str, object]] = [
        ("post", "plans", {"document": DOCUMENT}),
        ("post", "job-files", {"text": "[a]\nsize=1m"}),
        ("post", "plans/plan-1/versions", {"document": DOCUMENT}),
        ("post", "plans/plan-1/undelete", None),
        ("delete", "plans/plan-1", None),
        ("post", "runs", start),
        ("post", "runs/1/cancel", None),
    ]
    for method, path, body in changing:
        assert viewer(method, path, body)[0] == 403, path
        assert viewer(method, path, body)[1]["code"] == "not_allowed"
    assert Plan.objects.count() == Run.objects.count() == 1


def test_a_revoked_token_and_that_of_a_person_who_left_open_nothing(viewer: Caller) -> None:
    assert viewer("get", "hosts")[0] == 200
    assert ApiToken.objects.get().last_used_at is not None
    User.objects.update(is_active=False)
    assert viewer("get", "hosts")[0] == 401
    User.objects.update(is_active=True)
    ApiToken.objects.update(revoked_at=timezone.now())
    assert viewer("get", "hosts")[0] == 401


def test_the_browsers_log_in_reads_and_needs_the_csrf_token_to_write(host: Host) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="olga", role=Role.OPERATOR))
    assert client.get("/api/v1/hosts").json()["count"] == 1
    refused = client.post("/api/v1/plans", data=json.dumps({"document": DOCUMENT}), content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
    assert not Plan.objects.exists()


def test_hosts_come_with_targets_and_inventory(viewer: Caller, lab: Lab, host: Host) -> None:
    snapshot = Snapshot.objects.create(digest="d", facts={"hostname": "a"})
    HostSnapshot.objects.create(host=host, snapshot=snapshot, taken_at=timezone.now())
    status, found = viewer("get", "hosts/a")
    assert status == 200
    assert [target["name"] for target in found["targets"]] == ["a/scratch"]
    assert found["inventory"] == {"hostname": "a"}
    assert "token_hash" not in found
    assert viewer("get", "targets?host=a&kind=directory&present=true")[1]["count"] == 1
    assert viewer("get", "targets?kind=block")[1]["items"] == []


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
    assert refused["message"].startswith("Part a: Pattern: `sideways` is none of")


def test_a_job_file_becomes_a_plan_or_its_line_is_named(operator: Caller) -> None:
    status, made = operator("post", "job-files", {"text": "[a]\nsize=1m\nrw=randread\n", "title": "Old job"})
    assert (status, made["plan"]) == (201, "old-job")
    status, refused = operator("post", "job-files", {"text": "[a]\nexec_prerun=id\nsize=1m"})
    assert (status, refused["code"]) == (422, "job_file_refused")
    assert refused["message"] == "Line 2: `exec_prerun` is not an option that Sweetspot takes."


def test_a_preview_shows_the_job_text_and_touches_nothing(viewer: Caller, operator: Caller, host: Host) -> None:
    make_target(host)
    make_target(host, "nvme0", kind="block")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, made = viewer("get", "plans/mine/preview?target=a/scratch&target=a/nvme0&limit=3")
    assert (status, made["problems"], made["arm"]) == (200, [], [])
    assert (made["estimate"]["trials"], len(made["trials"])) == (8, 3)
    texts = [trial["job_text"] for trial in viewer("get", "plans/mine/preview?target=a/scratch")[1]["trials"]]
    assert all("filename=sweetspot.1048576.0" in text and "rw=randread" in text for text in texts)
    assert not Run.objects.exists()
    assert viewer("get", "plans/mine/preview")[1]["code"] == "request_refused"
    assert viewer("get", "plans/mine/preview?target=a/none")[1]["code"] == "target_unknown"


def test_what_has_to_be_armed_is_said_before(operator: Caller, host: Host) -> None:
    make_target(host, "nvme0", kind="block")
    parts = [{"name": "a", "factors": {"pattern": "randwrite"}}]
    operator("post", "plans", {"document": DOCUMENT | {"parts": parts}, "slug": "w"})
    assert operator("get", "plans/w/preview?target=a/nvme0")[1]["arm"] == ["SN1"]
    status, refused = operator("post", "runs", {"plan": "w", "targets": ["a/nvme0"]})
    assert (status, refused["code"]) == (422, "not_armed")
    assert operator("post", "runs", {"plan": "w", "targets": ["a/nvme0"], "armed_serials": ["SN1"]})[0] == 201


def test_a_preview_says_what_is_expected_by_earlier_results(operator: Caller, lab: Lab) -> None:
    lab.measure(1000.0, 2000.0, direction="write", pattern="randwrite")
    plan = DOCUMENT | {"repeats": 1, "parts": [{"name": "a", "factors": {"pattern": "randwrite"}}]}
    operator("post", "plans", {"document": plan, "slug": "w"})
    made = operator("get", "plans/w/preview?target=a/scratch")[1]
    assert made["expected"] == [{"target": "a/scratch", "bytes": 3 * 2000 * 4096 + 2**20, "by_model": False}]
    assert made["estimate"]["bytes_written_max"] > made["expected"][0]["bytes"]


def test_a_run_is_started_watched_and_cancelled(operator: Caller, viewer: Caller, host: Host) -> None:
    make_target(host)
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, run = operator("post", "runs", {"plan": "mine", "targets": ["a/scratch"], "note": "first", "seed": 3})
    assert (status, run["number"], run["plan"], run["trial_count"], run["seed"]) == (201, 1, "mine", 4, 3)
    assert viewer("get", "runs/1")[1]["progress"]["total"] == 4
    assert viewer("get", "runs/1")[1]["targets"] == ["a/scratch"]
    listed = viewer("get", "runs/1/trials?limit=2")[1]
    assert (listed["count"], [t["number"] for t in listed["items"]]) == (4, [1, 2])
    assert listed["items"][0]["point"]["pattern"] == "randread"
    assert viewer("get", f"trials/{listed['items'][0]['id']}/samples")[1]["samples"] == []
    assert viewer("get", f"trials/{listed['items'][1]['id']}/job")[1]["code"] == "job_unknown"
    cancelled = operator("post", "runs/1/cancel")[1]
    assert operator("post", "runs/1/cancel")[0] == 200
    assert cancelled["state"] in (RunState.CANCELLED, RunState.RUNNING, RunState.CLOSING, RunState.QUEUED)
    assert viewer("get", "runs/1/trials?state=cancelled")[1]["count"] >= 3
    assert viewer("get", "runs?plan=mine&host=a")[1]["count"] == 1
    assert viewer("get", "runs?plan=other")[1]["count"] == 0


def test_a_target_is_found_by_a_former_name_of_its_host_wherever_it_is_named(operator: Caller, host: Host) -> None:
    make_target(host, "nvme0", "block")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    rename_host(host=host, slug="rack4", by=None)
    make_target(make_host("b"), "nvme0", "block")
    for name in ("a", "rack4"):
        assert operator("post", f"hosts/{name}/targets/nvme0/endurance", {"tbw_tb": 9, "source": "paper"})[0] == 200
        assert operator("get", f"hosts/{name}/targets/nvme0/purges")[0] == 200
        assert operator("get", f"hosts/{name}/targets/nvme0/settings")[0] == 200
    twice = operator("get", "plans/mine/preview?target=a/nvme0&target=b/nvme0&target=rack4/nvme0")[1]
    assert {trial["target"] for trial in twice["trials"]} == {"rack4/nvme0", "b/nvme0"}
    assert (twice["problems"], twice["estimate"]["trials"]) == ([], 8)
    assert operator("post", "runs", {"plan": "mine", "targets": ["a/nvme0"]})[0] == 201
    assert operator("get", "runs/1")[1]["targets"] == ["rack4/nvme0"]
    status, told = operator("get", "hosts/c/targets/nvme0/purges")
    assert (status, told["code"]) == (404, "target_unknown")


def test_a_run_that_cannot_be_is_refused_in_words(operator: Caller, host: Host) -> None:
    make_target(host, present=False, problem="unplugged")
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, refused = operator("post", "runs", {"plan": "mine", "targets": ["a/scratch"]})
    assert (status, refused["code"]) == (409, "target_unavailable")
    assert "unplugged" in refused["message"]


def test_results_are_filtered_by_any_factor(viewer: Caller, lab: Lab) -> None:
    found = viewer("get", "results?factor.ioengine=psync&run=1&limit=2")[1]
    assert found["count"] == 3
    assert [result["iops"] for result in found["items"]] == [63.0, 62.0]
    assert found["items"][0]["target"] == "a/scratch"
    assert found["items"][0]["p999_ns"] is None
    assert viewer("get", "results?factor.block_size=4096")[1]["count"] == 6
    assert viewer("get", "results?factor.block_size=8k")[1]["count"] == 0
    assert viewer("get", "results?colour=red")[1]["code"] == "filter_refused"


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
    assert json.loads(job["fio_json"]) == {"fio version": "fio-3.33"}


def test_a_series_is_read_on_from_where_one_was(viewer: Caller, lab: Lab) -> None:
    trial = lab.run.trials.first()
    assert trial is not None
    add_samples(trial.attempts.get(), 5)
    first = viewer("get", f"trials/{trial.id}/samples?limit=3")[1]
    assert ([s["second"] for s in first["samples"]], first["more"]) == ([0, 1, 2], True)
    rest = viewer("get", f"trials/{trial.id}/samples?after=2")[1]
    assert ([s["second"] for s in rest["samples"]], rest["more"]) == ([3, 4], False)


def test_a_comparison_is_as_described(viewer: Caller, lab: Lab) -> None:
    status, made = viewer("get", "compare?x=iodepth&series=ioengine&factor.block_size=4k")
    assert status == 200
    assert made["panels"][0]["series"][1]["sentence"] == "psync is 38 % slower than io_uring (95 % CI −40 % to −36 %)."
    schema_of(Comparison).model_validate(made)
    assert viewer("get", "compare")[1]["code"] == "compare_x_missing"
    assert viewer("get", "compare?x=colour")[0] == 422


def test_a_person_is_invited_changed_switched_off_and_removed() -> None:
    admin = caller(Role.ADMIN)
    status, made = admin("post", "people", {"username": "olga", "role": "viewer"})
    assert (status, made["username"], made["has_password"]) == (201, "olga", False)
    assert "/set-password/" in made["password_link"]
    path = f"people/{made['id']}"
    assert admin("post", f"{path}/role", {"role": "operator"})[1]["role"] == "operator"
    assert admin("post", f"{path}/deactivate", {})[1]["is_active"] is False
    assert admin("post", f"{path}/reactivate")[1]["is_active"] is True
    assert admin("post", f"{path}/password-link")[1]["password_link"] != made["password_link"]
    assert admin("post", f"{path}/anonymise", {"confirm": "olga"})[1]["code"] == "not_left"
    assert admin("delete", path, {})[1]["left_at"]
    assert [one["username"] for one in admin("get", "people")[1]["items"]] == ["admin-person"]
    assert [one["username"] for one in admin("get", "people?left=true")[1]["items"]] == ["olga"]
    assert admin("post", f"{path}/anonymise", {"confirm": "x"})[1]["code"] == "confirmation_wrong"
    assert admin("post", f"{path}/anonymise", {"confirm": "olga"})[1]["username"] == f"former-person-{made['id']}"
    assert admin("post", "people", {"username": "a b"})[1]["code"] == "username_refused"
    assert admin("get", "people/999")[0] == 404


def test_a_comparison_is_saved_changed_copied_deleted_and_brought_back(operator: Caller, viewer: Caller) -> None:
    status, made = operator("post", "comparisons", {"title": "Engines", "query": "x=iodepth&series=ioengine&saved=3"})
    assert (status, made["query"], made["owner"]) == (201, "x=iodepth&series=ioengine", "operator-person")
    path = f"comparisons/{made['id']}"
    changed = operator("post", path, {"title": "Both engines"})[1]
    assert (changed["title"], changed["query"]) == ("Both engines", made["query"])
    assert viewer("get", path)[1] == changed
    assert [one["id"] for one in viewer("get", "comparisons")[1]["items"]] == [made["id"]]
    assert viewer("get", "comparisons?show=own")[1]["count"] == 0
    assert operator("post", f"{path}/copy")[1]["title"] == "Both engines (copy)"
    assert [operator("delete", path)[0] for _ in range(2)] == [204, 204]
    assert operator("post", path, {"title": "x"})[1]["code"] == "comparison_deleted"
    assert operator("post", f"{path}/undelete")[1]["deleted_at"] is None
    assert operator("post", "comparisons", {"title": "x", "query": "x=nonsense"})[0] == 422
    assert operator("get", "comparisons/999")[0] == 404
    other = Client(headers={"Authorization": f"Bearer {_token_of('oskar')}"})
    assert other.delete(f"/api/v1/{path}").status_code == 403


def _token_of(name: str) -> str:
    return create_api_token(user=User.objects.create(username=name, role=Role.OPERATOR), name="test")


def test_what_is_not_there_is_404(viewer: Caller, lab: Lab) -> None:
    for path in (
        "hosts/none",
        "plans/none",
        "plans/plan-1?version=9",
        "runs/99",
        "runs/99/trials",
        f"trials/{'0' * 32}",
    ):
        status, problem = viewer("get", path)
        assert status == 404, path
        assert set(problem) == {"code", "message"}


def test_every_body_forbids_fields_that_it_does_not_have(client: Client) -> None:
    described = client.get("/api/v1/openapi.json").json()
    bodies = {
        f"{method} {path}": operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }
    assert {"post /api/v1/runs", "post /api/v1/people", "delete /api/v1/people/{pk}"} <= set(bodies)
    schemas = described["components"]["schemas"]
    assert {name for name in bodies.values() if schemas[name].get("additionalProperties") is not False} == set()


@pytest.mark.parametrize(
    ("path", "more", "words"),
    [
        ("runs", {"dry_run": True}, "body.dry_run: Extra inputs are not permitted"),
        ("runs?dry_run=1", {}, "query.dry_run: There is no such parameter. There are none."),
    ],
)
def test_a_run_that_is_asked_for_with_an_unknown_field_is_not_started(
    operator: Caller, host: Host, path: str, more: dict[str, object], words: str
) -> None:
    make_target(host)
    operator("post", "plans", {"document": DOCUMENT, "slug": "mine"})
    status, refused = operator("post", path, {"plan": "mine", "targets": ["a/scratch"], **more})
    assert (status, refused) == (422, {"code": "request_refused", "message": words})
    assert not Run.objects.exists()


def test_parameters_and_bodies_that_an_operation_does_not_take_are_refused(
    viewer: Caller, operator: Caller, lab: Lab
) -> None:
    status, refused = viewer("get", "runs?colour=red")
    assert status == 422
    assert refused["message"] == (
        "query.colour: There is no such parameter. There are host, limit, offset, plan, schedule, state."
    )
    assert viewer("get", "runs?plan=plan-1&limit=1&offset=0&state=done&host=a")[0] == 200
    assert viewer("get", "hosts/a?colour=red")[0] == 422
    status, refused = operator("post", "runs/1/cancel", {"dry_run": True})
    assert (status, refused["message"]) == (422, "body: This operation takes no body. Leave it out.")
    assert operator("post", "plans/plan-1/undelete", {})[0] == 200


def test_what_is_asked_wrongly_is_422_and_names_the_place(viewer: Caller, operator: Caller) -> None:
    assert viewer("get", "runs?limit=501")[0] == 422
    assert viewer("get", "runs?state=odd")[1]["code"] == "request_refused"
    assert viewer("get", "trials/not-an-id")[0] in (404, 422)
    status, problem = operator("post", "runs", {"plan": "x"})
    assert (status, problem["code"], problem["message"]) == (422, "request_refused", "body.targets: Field required")
    assert operator("post", "plans", {})[1]["code"] == "plan_file_refused"
    assert (
        operator("post", "plans", {"document": {"title": "a\x00", "parts": DOCUMENT["parts"]}})[1]["code"]
        == "text_refused"
    )


@pytest.mark.parametrize(
    "path", ["hosts", "targets", "plans", "plans/plan-1/versions", "runs", "runs/1/trials", "results"]
)
def test_lists_take_a_fixed_number_of_queries(
    path: str, viewer: Caller, lab: Lab, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    viewer("get", path)  # the token's last use is written once a minute
    for number in range(2, 6):
        other = Lab(make_target(make_host(f"h{number}"), f"t{number}"), number=number)
        other.measure(1.0, 2.0, iodepth=number)
    # the token's person with its last use, the list, its count; what the list belongs to, of results runs and targets,
    # and the points that this process has not read yet
    with django_assert_max_num_queries(7 if path == "results" else 6):
        status, found = viewer("get", path)
    assert status == 200
    assert found["count"] >= 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30), st.text(max_size=30))
@example("run", "a\0b")
def test_no_filter_makes_it_fail(viewer: Caller, key: str, value: str) -> None:
    from urllib.parse import urlencode

    query = urlencode([(key, value), (f"factor.{key}", value)], errors="replace")
    expected = {400} if "\0" in key + value else {200, 422}
    for path in ("results", "compare", "runs", "targets"):
        assert viewer("get", f"{path}?{query}")[0] in expected
