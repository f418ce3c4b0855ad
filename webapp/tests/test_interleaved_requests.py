"""Two people change one thing at once, one of them stopped at each moment of the request: no answer is 500, and the
rows are those of one request after the other, in either order."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, product
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

from webapp.analysis.services import create_link, save_comparison
from webapp.core.models import Role, User
from webapp.core.services import create_api_token
from webapp.hosts.models import EnrolmentToken
from webapp.hosts.services import issue_enrolment_token
from webapp.imports.services import begin_import
from webapp.notices.models import Channel, Event, Subscription
from webapp.notices.webhook import sealed
from webapp.plans.services import create_plan
from webapp.runs.actions.annotations import add_note
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import DOCUMENT
from webapp.tests.factories.results import Lab
from webapp.tests.factories.runs import a_run, next_number
from webapp.tests.factories.schedules import a_group, a_schedule
from webapp.tests.interleaving import State, changes, interleave, state
from webapp.tests.sampling import part_of
from webapp.trends.services import set_baseline
from worker.contract.workload import Pattern

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
NEVER = 10_000  # more statements than a request has


@dataclass(frozen=True)
class Request:
    """A form of a page, or with `body` an operation of the API."""

    method: str
    path: str
    form: Mapping[str, object]
    body: Mapping[str, object] | None = None
    file: str = ""

    def send(self, client: Client) -> HttpResponse:
        options: dict[str, Any] = {"data": dict(self.form)}
        if self.body is not None:
            options = {"data": json.dumps(self.body), "content_type": "application/json"}
        if self.file:
            options["data"]["file"] = SimpleUploadedFile("table.csv", self.file.encode())
        response: HttpResponse = getattr(client, self.method)(self.path, **options)
        return response


Requests = Mapping[str, Request]
Life = Callable[[User], Requests]


def form(path: str, **fields: object) -> Request:
    return Request("post", path, fields)


def api(method: str, path: str, **body: object) -> Request:
    return Request(method, f"/api/v1/{path}", {}, body)


def ended_run(by: User) -> Requests:
    lab = Lab(a_target(), number=next_number())
    lab.measure(100.0, 110.0)
    run, number = lab.run, lab.run.number
    note = add_note(run=run, text="A note", by=by).pk
    return {
        "delete": form("/runs/bulk/delete/", run=number),
        "tag": form("/runs/bulk/tag/", run=number, text="old"),
        "untag": form("/runs/bulk/untag/", run=number, text="old"),
        "invalid": form(f"/runs/{number}/invalid/", reason="A fan was off"),
        "valid": form(f"/runs/{number}/valid/"),
        "trial invalid": form(f"/runs/{number}/trials/1/invalid/", reason="A fan was off"),
        "trial valid": form(f"/runs/{number}/trials/1/valid/"),
        "add note": form(f"/runs/{number}/notes/", text="Another note"),
        "delete note": form(f"/runs/{number}/notes/{note}/delete/"),
        "restore note": form(f"/runs/{number}/notes/{note}/restore/"),
        "again": api("post", f"runs/{number}/again"),
        "baseline": api("post", "baselines", run=number, target=str(lab.target), tolerances={"iops": 5}),
    }


def open_run(by: User) -> Requests:
    Run.objects.all().delete()  # the queue is one for all runs
    drive = a_drive(a_host(last_seen_at=None))  # no order is sent
    run = a_run(drive, pattern=Pattern.RANDWRITE, created_by=by, armed_serials=[drive.serial])
    other, host = a_run(drive, created_by=by), drive.host.slug
    return {
        "cancel": form(f"/runs/{run.number}/cancel/"),
        "pause": form(f"/runs/{run.number}/pause/"),
        "resume": form(f"/runs/{run.number}/resume/"),
        "skip both": form(f"/runs/{run.number}/skip/", trial=["1", "2"]),
        "skip one": form(f"/runs/{run.number}/skip/", trial="2"),
        "arm": form(f"/runs/{run.number}/arm/", serial=drive.serial),
        "disarm": form(f"/runs/{run.number}/disarm/"),
        "move": form(f"/queue/{run.number}/move/", after=other.number),
        "move other": form(f"/queue/{other.number}/move/", before=run.number),
        "delete": form("/runs/bulk/delete/", run=run.number),
        "remove host": form(f"/hosts/{host}/remove/", typed=host),
        "revoke host": form(f"/hosts/{host}/revoke/"),
    }


def host(by: User) -> Requests:
    target, plan, name = a_target(), create_plan(document=DOCUMENT, by=by), f"rack{secrets.token_hex(6)}"
    group = a_group(a_target(), slug=secrets.token_hex(6))
    slug = target.host.slug
    issue_enrolment_token(by=by, host=target.host)
    member = {"host": slug, "targets": [target.slug]}
    schedule = {"name": name, "plan": plan.slug, "trigger": "cron", "cron": "0 3 * * 1"}
    return {
        "remove": form(f"/hosts/{slug}/remove/", typed=slug),
        "revoke": form(f"/hosts/{slug}/revoke/"),
        "bring back": form(f"/hosts/{slug}/bring-back/"),
        "rename": form(f"/hosts/{slug}/rename/", slug=name),
        "maintenance": form(f"/hosts/{slug}/maintenance/", note="A new fan"),
        "end maintenance": form(f"/hosts/{slug}/maintenance/end/"),
        "rotate": form(f"/hosts/{slug}/rotate/"),
        "inventory": form(f"/hosts/{slug}/inventory/"),
        "window": api("post", f"hosts/{slug}/windows", days=[6], opens="02:00", closes="04:00"),
        "rate": api("post", f"hosts/{slug}/targets/{target.slug}/endurance", tbw_tb=600, source="data sheet"),
        "start run": api("post", "runs", plan=plan.slug, targets=[str(target)]),
        "add group": api("post", "groups", title="A rack", members=[member], slug=name),
        "change group": api("put", f"groups/{group.slug}", title="A rack", members=[member]),
        "delete group": api("delete", f"groups/{group.slug}"),
        "schedule": api("post", "schedules", targets=[str(target)], **schedule),
        "schedule group": api("post", "schedules", group=group.slug, **schedule),
        "enrol again": api("post", "enrolments", again=slug),
        "withdraw": api("delete", f"enrolments/{EnrolmentToken.objects.order_by('pk').last().reference}"),  # type: ignore[union-attr]
    }


def plan(by: User) -> Requests:
    slug, target, new = create_plan(document=DOCUMENT, by=by).slug, str(a_target()), secrets.token_hex(6)
    changed = {"title": "Changed", "common": dict(DOCUMENT.common), "parts": [{"name": "a", "factors": {}}]}
    return {
        "delete": form(f"/plans/{slug}/delete/"),
        "undelete": form(f"/plans/{slug}/undelete/"),
        "copy": api("post", f"plans/{slug}/copy"),
        "save": api("post", f"plans/{slug}/versions", document=changed),
        "push": api("put", f"plans/{slug}", document=changed),
        "push new": api("put", f"plans/{new}", document=changed),
        "create": api("post", "plans", document=changed, slug=new),
        "create titled": api("post", "plans", document=changed | {"title": new}),
        "restore": api("post", f"plans/{slug}/versions/1/restore"),
        "start": api("post", "runs", plan=slug, targets=[target], request_id=secrets.token_hex(16)),
    }


def schedule(by: User) -> Requests:
    target, name = a_target(), secrets.token_hex(6)
    made = a_schedule(by, name=name, targets=[target])
    slug, path = made.version.plan.slug, f"schedules/{made.pk}"
    plan = {"plan": slug, "targets": [str(target)]}
    weekly = {"trigger": "cron", "cron": "0 3 * * 1", **plan}
    return {
        "delete": api("delete", path),
        "change": api("put", path, name=name, **weekly),
        "rename": api("put", path, name=f"{name} x", **weekly),
        "add": api("post", "schedules", name=f"{name} x", **weekly),
        "follow": api("post", "schedules", name=f"{name} y", trigger="after_schedule", after_schedule=made.pk, **plan),
        "restore": api("post", f"{path}/restore"),
        "on": api("post", f"{path}/on"),
        "off": api("post", f"{path}/off"),
        "take over": api("post", f"{path}/take-over"),
        "disarm": api("post", f"{path}/disarm"),
        "run now": api("post", f"{path}/run-now"),
        "delete plan": form(f"/plans/{slug}/delete/"),
    }


def comparison(by: User) -> Requests:
    lab = Lab(a_target(), number=next_number())
    lab.measure(100.0, 110.0)
    saved = save_comparison(title="Engines", note="", query=f"x=iodepth&run={lab.run.number}", by=by)
    create_link(saved=saved, name="a customer", by=by)
    path = f"/comparisons/{saved.pk}"
    return {
        "delete": form(f"{path}/delete/"),
        "restore": form(f"{path}/restore/"),
        "change": form(f"{path}/change/", title="Sizes", note="", query="x=block_size"),
        "copy": form(f"{path}/copy/"),
        "freeze": form(f"{path}/freeze/"),
        "unfreeze": form(f"{path}/unfreeze/"),
        "link": form(f"{path}/links/", name="a friend"),
        "revoke": form(f"{path}/links/{saved.links.get().pk}/revoke/"),
        "delete run": form("/runs/bulk/delete/", run=lab.run.number),
    }


def baseline(by: User) -> Requests:
    lab = Lab(a_target(), number=next_number())
    other = Lab(lab.target, number=next_number(), version=lab.run.version)
    for each in (lab, other):
        each.measure(100.0, 110.0)
    made = set_baseline(run=lab.run, target=lab.target, tolerances={"iops": 5.0}, by=by)
    both = {"target": str(lab.target), "tolerances": {"iops": 5}}
    return {
        "remove": api("delete", f"baselines/{made.pk}"),
        "set": api("post", "baselines", run=lab.run.number, **both),
        "set other": api("post", "baselines", run=other.run.number, **both),
        "delete run": form("/runs/bulk/delete/", run=lab.run.number),
        "delete other": form("/runs/bulk/delete/", run=other.run.number),
    }


def an_import_of(by: User) -> Requests:
    made, tables = begin_import(title="Old", pattern="", given={"drive": "A"}, by=by), secrets.randbelow(10**9)
    done = an_import(by=by, text=f"{PLAIN}randread,8k,1,{tables},39.8,1\n")
    table, target = f"{PLAIN}randread,8k,2,{tables},39.8,1\n", str(a_target())
    acceptance = {"plan": create_plan(document=DOCUMENT, by=by).slug, "target": target, "tolerances": {"iops": 5}}
    return {
        "add": Request("post", f"/api/v1/imports/{made.number}/files", {}, file=table),
        "new": Request("post", "/api/v1/imports", {"title": "x"}, file=table),
        "end": form(f"/imports/{made.number}/end/"),
        "undo": form(f"/imports/{made.number}/undo/"),
        "undo by API": api("delete", f"imports/{made.number}"),
        "undo ended": api("delete", f"imports/{done.number}"),
        "baseline": api("post", "baselines", **{"import": done.number}, **acceptance),
    }


def person(_: User) -> Requests:
    name = secrets.token_hex(6)
    user = a_user(f"{name}-old", Role.OPERATOR)
    create_api_token(user=user, name="nightly job")
    create_link(saved=save_comparison(title="A", note="", query="x=iodepth", by=user), name="a customer", by=user)
    a_schedule(user, name=name)
    return {
        "add": api("post", "people", username=name),
        "add again": api("post", "people", username=name.upper()),
        "viewer": api("post", f"people/{user.pk}/role", role="viewer"),
        "admin": api("post", f"people/{user.pk}/role", role="admin"),
        "deactivate": api("post", f"people/{user.pk}/deactivate"),
        "reactivate": api("post", f"people/{user.pk}/reactivate"),
        "remove": api("delete", f"people/{user.pk}"),
        "anonymise": api("post", f"people/{user.pk}/anonymise", confirm=user.username),
        "password link": api("post", f"people/{user.pk}/password-link"),
        "connect": api("post", f"people/{user.pk}/connect-external-login"),
        "revoke token": api("delete", f"people/{user.pk}/tokens/{user.api_tokens.get().pk}"),
    }


def own_thing(by: User) -> Requests:
    url = f"https://hooks.example/{secrets.token_hex(6)}"
    hook: dict[str, Any] = {"channel": Channel.WEBHOOK, "url": url, "events": [Event.ENDED]}
    notice = Subscription.objects.create(user=by, secret=sealed("a secret"), **hook)
    price = {"kind": "model", "name": secrets.token_hex(4), "currency": "EUR", "priced_on": "2026-11-01"}
    path = f"notices/subscriptions/{notice.pk}"
    return {
        "price": form("/bench/prices/", amount="10", **price),
        "other price": form("/bench/prices/", amount="20", **price),
        "no price": form("/bench/prices/", remove="1", **price),
        "delete notice": api("delete", path),
        "pause notice": api("patch", path, paused=True),
        "test notice": api("post", f"{path}/test"),
        "new secret": api("post", f"{path}/secret"),
        "token": form("/account/tokens/", name="x"),
        "columns": form("/results/columns/", column=["run"]),
    }


LIVES = (
    ended_run, open_run, host, plan, schedule, comparison, baseline, an_import_of, person, own_thing,
)  # fmt: skip
PARTS = 40  # `make test` sends one of so many pairs, stopped at one of STEP moments; `make fuzz` all
STEP = 6
# Of several transactions, between which the other request may come: a host is removed, then its runs end; a run is
# started, then its first order is sent.
SEVERAL = {"remove host", "revoke host", "remove", "revoke", "start run", "start", "again", "inventory", "run now"}
FAULTS = (
    (ended_run, "delete", "delete"),  # 500
    (ended_run, "delete", "tag"),  # 500
    (ended_run, "again", "delete"),  # 500
    (ended_run, "baseline", "delete"),  # 500
    (host, "remove", "rename"),  # 500
    (host, "start run", "remove"),  # 500, and the run of a host that is gone
    (host, "remove", "inventory"),  # 500
    (host, "change group", "delete group"),  # the group stays
    (plan, "copy", "copy"),  # only one copy
    (open_run, "cancel", "remove host"),  # 500
    (person, "add", "add again"),  # two people whose names differ in case only
    (an_import_of, "undo", "undo"),  # two entries of the audit for one import
    (schedule, "follow", "delete"),  # a schedule that follows a deleted one, for ever
)


@pytest.fixture
def people() -> tuple[Client, Client]:
    clients = []
    for name in ("ada", "bob"):
        client = Client(raise_request_exception=False)
        client.force_login(a_user(name, Role.ADMIN))
        clients.append(client)
    return clients[0], clients[1]


def sent(people: tuple[Client, Client], life: Life, names: tuple[str, str], before: int) -> tuple[State, str, bool]:
    """What the two requests changed, the errors that were answered with 500, and whether the first one was stopped."""
    requests = life(User.objects.get(username="ada"))
    earlier = state()
    first, second = (lambda each=each: requests[each[1]].send(each[0]) for each in zip(people, names, strict=True))
    answers = interleave(first, second, before=before)
    failed = [error for status, error in zip(answers.statuses, answers.errors, strict=True) if status >= 500]
    return changes(earlier, state()), " ".join(failed), answers.stopped


def problems(people: tuple[Client, Client], life: Life, names: tuple[str, str], step: int) -> list[str]:
    """Of the pair of requests, the first one stopped before every `step`-th of its statements."""
    in_order = [sent(people, life, names, before)[0] for before in (NEVER, 0)]
    found: list[str] = []
    for before in count(step, step):
        changed, failed, stopped = sent(people, life, names, before)
        if not stopped:
            return found
        if failed:
            found.append(f"{names} at {before}: {failed}")
        elif changed not in in_order and not SEVERAL & {*names}:
            found.append(f"{names} at {before}: {changed} is neither of {in_order}")
    return found


@pytest.mark.parametrize(("life", "first", "second"), FAULTS, ids=lambda part: getattr(part, "__name__", part))
def test_pairs_that_once_failed(people: tuple[Client, Client], life: Life, first: str, second: str) -> None:
    assert problems(people, life, (first, second), step=2) == []


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.__name__)
def test_two_requests_at_once_are_one_after_the_other(people: tuple[Client, Client], life: Life) -> None:
    names = list(life(User.objects.get(username="ada")))
    pairs = part_of(list(product(names, names)), LIVES.index(life), PARTS)
    steps = part_of(range(1, STEP + 1), LIVES.index(life), STEP)
    assert [problem for pair in pairs for problem in problems(people, life, pair, max(steps))] == []
