"""What all operations share: who may ask, errors, unknown input, lengths of lists."""

import json
import re
from typing import Any

import pytest
from django.conf import LazySettings
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.api.common.errors import MAX_LEVELS
from webapp.api.tests.clients import DOCUMENT, Caller
from webapp.api.urls import api
from webapp.core.middleware import json_errors
from webapp.core.models import ApiToken, Role, User
from webapp.core.services import create_api_token
from webapp.hosts.models import Host
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab
from webapp.tests.hostile import leak

pytestmark = pytest.mark.django_db


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
    page = client.get("/api/v1/docs").content.decode()
    assert set(re.findall(r'(?:src|href)="(?!/|#|{)([^"]*)"', page)) == set()


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
        if "application/json" in operation.get("requestBody", {}).get("content", {})  # others are files
    }
    assert {"post /api/v1/runs", "post /api/v1/people", "delete /api/v1/people/{pk}"} <= set(bodies)
    schemas = described["components"]["schemas"]
    used = _with_parts(set(bodies.values()), schemas)
    assert {name for name in used if schemas[name].get("additionalProperties") is not False} == set()


def test_every_list_of_a_body_has_a_greatest_length(client: Client) -> None:
    """A body of 16 MiB with a million wrong elements would be checked element by element."""
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    of_bodies = {name: schema for name, schema in schemas.items() if name.endswith("In")}
    fields = [
        (f"{name}.{field}", part)
        for name, schema in of_bodies.items()
        for field, described in schema["properties"].items()
        for part in (described, *described.get("anyOf", ()))
    ]
    lists = {field: "maxItems" in part for field, part in fields if part.get("type") == "array"}
    assert len(lists) > 10
    assert [field for field, bounded in lists.items() if not bounded] == []


def _with_parts(names: set[str], schemas: dict[str, Any]) -> set[str]:
    """The objects of these names and those inside them."""
    texts = json.dumps([schemas[name] for name in names])
    inner = {name for name in re.findall(r'"#/components/schemas/(\w+)"', texts) if "properties" in schemas[name]}
    return names if inner <= names else _with_parts(names | inner, schemas)


def test_parameters_and_bodies_that_an_operation_does_not_take_are_refused(
    viewer: Caller, operator: Caller, lab: Lab
) -> None:
    status, refused = viewer("get", "runs?colour=red")
    assert status == 422
    assert refused["message"] == ("query.colour: Unknown parameter. Use host, limit, offset, plan, schedule, state.")
    assert viewer("get", "runs?sate=done")[1]["message"].startswith(
        "query.sate: Unknown parameter. Did you mean state?"
    )
    assert viewer("get", "runs?plan=plan-1&limit=1&offset=0&state=done&host=a")[0] == 200
    assert viewer("get", "hosts/a?colour=red")[0] == 422
    status, refused = operator("post", "runs/1/cancel", {"dry_run": True})
    assert (status, refused["message"]) == (422, "body: This operation takes no body. Remove it.")
    assert operator("post", "plans/plan-1/undelete", {})[0] == 200


def test_what_is_asked_wrongly_is_422_and_names_the_place(viewer: Caller, operator: Caller) -> None:
    assert viewer("get", "runs?limit=501")[0] == 422
    assert viewer("get", "runs?state=odd")[1]["code"] == "request_refused"
    assert viewer("get", "trials/not-an-id")[0] == 404
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
        other = Lab(a_target(a_host(f"h{number}"), f"t{number}"), number=number)
        other.measure(1.0, 2.0, iodepth=number)
    # the token's person with its last use, the list, its count; what the list belongs to, of results runs and targets,
    # and the points that this process has not read yet
    with django_assert_max_num_queries(7 if path == "results" else 6):
        status, found = viewer("get", path)
    assert status == 200
    assert found["count"] >= 1


def test_a_nul_inside_a_list_is_refused_without_the_statement(client: Client) -> None:
    client.force_login(a_user())
    body = {"plan": a_version().plan.slug, "targets": [str(a_target())], "armed_serials": ["\u0000"]}
    answer = client.post("/api/v1/runs", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "request_refused")
    assert leak(answer.json()["message"]) == ""


def test_errors_that_no_operation_answers_are_problems_too(viewer: Caller, client: Client) -> None:
    for path in ("/api/v1/nothing", "/api/nothing", "/api/v1/runs/"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
    status, problem = viewer("put", "runs")
    assert (status, problem["code"]) == (405, "method_not_allowed")
    assert problem["message"] == "This address does not accept PUT. Use GET, POST."


def test_bodies_that_cannot_be_read_are_problems(client: Client, settings: LazySettings) -> None:
    client.force_login(a_user())
    broken = client.post("/api/v1/runs", "{", content_type="application/json")
    assert (broken.status_code, broken.json()["code"]) == (400, "request_refused")
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    large = client.post("/api/v1/runs", " " * 2**20 + "{}", content_type="application/json")
    assert (large.status_code, large.json()) == (
        413,
        {"code": "too_large", "message": "The JSON has more than 1 MiB. Split it into several requests."},
    )


@pytest.mark.parametrize(("levels", "status"), [(MAX_LEVELS, 422), (MAX_LEVELS + 1, 400), (800, 400)])
def test_json_that_is_nested_too_deeply_is_refused(levels: int, status: int) -> None:
    """Python cannot print 800 lists in each other, as the message for a wrong role would."""
    lists = levels - 1  # the body is the first level
    body = f'{{"username": "a", "role": {"[" * lists}{"]" * lists}}}'
    client = Client(headers={"Authorization": f"Bearer {create_api_token(user=a_user(role=Role.ADMIN), name='test')}"})
    response = client.post("/api/v1/people", body, content_type="application/json")
    assert response.status_code == status
    assert response.json()["code"]


@pytest.mark.parametrize(
    ("status", "code"), [(413, "too_large"), (429, "too_many_requests"), (500, "server_failed"), (503, "busy")]
)
def test_pages_of_errors_under_api_become_problems(status: int, code: str) -> None:
    page = json_errors(lambda _: HttpResponse("<h1>It failed.</h1>", status=status))
    answer = page(RequestFactory().get("/api/v1/runs"))
    assert (answer.status_code, json.loads(answer.content)["code"]) == (status, code)


def test_the_manual_and_openapi_name_the_same_errors(settings: LazySettings) -> None:
    manual = (settings.BASE_DIR / "docs/reference/api.md").read_text()
    told = set(re.findall(r"\d{3}", "".join(re.findall(r"^\| (\d{3}[\d, ]*) \|", manual, re.MULTILINE))))
    for methods in json.loads(json.dumps(api.get_openapi_schema(), default=str))["paths"].values():
        for operation in methods.values():
            errors = {str(status) for status in operation["responses"] if int(status) >= 400}
            assert errors == told - {"405"}  # of methods that are no operation
