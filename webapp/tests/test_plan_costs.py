"""The bound of requests about plans: MAX_MEMORY above the memory of the process before, and MAX_CPU_S of CPU time.

A text of 957 bytes once took 4.5 GiB. Each plan goes through every address that reads it; most are refused.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from django.test import Client

from webapp.core.models import Role, User
from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument, write
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.part_levels import TOO_LARGE as CODE
from webapp.runs.models import Run
from webapp.schedules.models import Schedule
from webapp.screens.plans.draft import data_of, draft_of
from webapp.tests import hostile_plans
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.peak import measured_cost
from webapp.tests.sampling import part_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("broker")]
MAX_MEMORY = 128 * 2**20
MAX_CPU_S = 10.0  # the start of the largest run writes 10,000 rows; everything else takes less than 3 s
PARTS = 4  # `make test` sends a quarter of the plans to each group of addresses; `make fuzz` sends all


@pytest.fixture
def client(db: None) -> Client:
    client = Client()
    client.force_login(a_user("olga", Role.OPERATOR))
    client.get("/plans/")  # imports, templates
    return client


@pytest.fixture
def target(db: None) -> Target:
    return a_target(a_host("storage1"), "scratch")


def bounded(name: str, request: Callable[[], Any]) -> Any:
    with measured_cost() as cost:
        answer = request()
    said = f"{name}: {cost.memory_bytes / 2**20:.0f} MiB, {cost.cpu_s:.2f} s, status {answer.status_code}"
    print(said)
    assert cost.memory_bytes < MAX_MEMORY, said
    assert cost.cpu_s < MAX_CPU_S, said
    assert answer.status_code < 500, said
    return answer


def sent(client: Client, path: str, body: Mapping[str, object], method: str = "post") -> Any:
    data = msgspec.json.encode(body)
    return bounded(path, lambda: client.generic(method.upper(), f"/api/v1/{path}", data, "application/json"))


def form(document: PlanDocument, target: Target) -> dict[str, Any]:
    return dict(data_of(draft_of(document)).lists()) | {"targets-asked": "1", "target": [str(target.pk)]}


def all_documents() -> list[tuple[str, PlanDocument]]:
    return [*hostile_plans.TOO_LARGE.items(), *hostile_plans.LARGEST.items(), *hostile_plans.INVALID.items()]


@pytest.mark.parametrize(("name", "document"), part_of(all_documents(), 0, PARTS))
def test_a_plan_that_is_not_saved(client: Client, target: Target, name: str, document: PlanDocument) -> None:
    plain = write(document)
    for targets in ([], [str(target)]):
        answer = sent(client, "previews", {"document": plain, "targets": targets, "limit": 100}).json()
        assert (answer["code"] == CODE) is (name in hostile_plans.TOO_LARGE), answer["problems"]
        assert (answer["code"] == "") is (name in hostile_plans.LARGEST), answer["problems"]
        assert bool(answer["trials"]) is bool(targets and name in hostile_plans.LARGEST)
    bounded("plans/preview/", lambda: client.post("/plans/preview/", form(document, target)))
    bounded("plans/new/ do", lambda: client.post("/plans/new/", form(document, target) | {"do": "preview"}))


@pytest.mark.parametrize(("name", "document"), part_of(all_documents(), 1, PARTS))
def test_a_plan_to_be_saved(client: Client, target: Target, name: str, document: PlanDocument) -> None:
    plain = write(document)
    saved = sent(client, "plans/hostile", {"document": plain}, "put")
    bounded("plans/new/", lambda: client.post("/plans/new/", form(document, target)))
    if name in hostile_plans.LARGEST:
        assert saved.status_code == 201
    else:
        assert saved.status_code == 422
        assert saved.json()["code"] == (CODE if name in hostile_plans.TOO_LARGE else "plan_refused")
        assert not Plan.objects.exists()


READ = (
    "/plans/", "/plans/hostile/", "/plans/hostile/?{target}", "/plans/hostile/edit/", "/plans/hostile/versions/",
    "/plans/hostile/yaml/", "/plans/hostile/job-file/", "/api/v1/plans/hostile", "/api/v1/plans/hostile/versions",
    "/api/v1/plans/hostile/yaml", "/api/v1/plans/hostile/job-file", "/api/v1/plans/hostile/differences?before=1",
    "/api/v1/plans/hostile/preview?target=storage1/scratch", "/schedules/new/?plan=hostile&version=1&target={name}",
)  # fmt: skip


STORED = (  # those that cost most; each is read at 14 addresses
    "six parts of a million points", "every common factor in 50 parts", "one combination of 10^24",
    "trials of eight streams", "10,000 points", "100 repeats of eight streams", "points with long splits",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "document"), part_of([each for each in all_documents() if each[0] in STORED], 2, PARTS)
)
def test_a_plan_that_was_stored_before_there_was_a_limit(
    client: Client, target: Target, name: str, document: PlanDocument
) -> None:
    version = a_version(document, "hostile")
    for address in READ:
        path = address.format(target=f"target={target.pk}", name=quote(str(target)))
        bounded(path, lambda path=path: client.get(path))  # type: ignore[misc]
    sent(client, "plans/hostile/copy?most_bytes=1048576", {})
    start = {"plan": "hostile", "targets": [str(target)]}
    schedule = start | {"name": "Nightly", "trigger": "cron", "cron": "0 3 * * *"}
    previewed = sent(client, "schedules/preview", schedule)
    scheduled = sent(client, "schedules", schedule)
    started = sent(client, "runs", start)
    if name in hostile_plans.TOO_LARGE:
        assert {answer.json()["code"] for answer in (previewed, scheduled, started)} == {CODE}
        assert not Run.objects.exists()
        assert not Schedule.objects.exists()
    else:
        assert started.status_code == 201, started.content
        run = Run.objects.get()
        assert run.trial_count == Run.objects.get().trials.count()
        assert run.version == version
    assert User.objects.count() == 1


@pytest.mark.parametrize(("kind", "text"), hostile_plans.FILES.values(), ids=hostile_plans.FILES)
def test_a_file(client: Client, kind: str, text: str) -> None:
    bounded("plans/import/", lambda: client.post("/plans/import/", {"kind": kind, "text": text}))
    if kind == "job":
        sent(client, "job-files", {"text": text})
    else:
        sent(client, "plans", {"yaml": text})
        sent(client, "previews", {"yaml": text})
    assert PlanVersion.objects.count() <= 1


@pytest.mark.parametrize(
    ("body", "status"),
    [(b'{"document": ' + b"[" * 500_000, 400), (b'{"document": [' + b"[]," * 500_000 + b"1]}", 413)],
    ids=["deep", "large"],
)
def test_json(client: Client, body: bytes, status: int) -> None:
    post = bounded("previews", lambda: client.generic("POST", "/api/v1/previews", body, "application/json"))
    assert post.status_code == status
