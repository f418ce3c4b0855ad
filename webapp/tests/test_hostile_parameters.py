"""Hostile values of every parameter of every address: no failure, one status, no words of a library, bounded cost.

Addresses come from the URL resolver and from openapi.json, so a new one is walked without being listed. The parameters
of a page are those that it reads while it answers, and the fields of its forms and links. A test compares them with
the names in the code. In `make test` the seed chooses a part of the values, `make fuzz` tries all. `-s` shows the
slowest requests and those with the largest memory.
"""

import copy
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings
from django.core.signals import got_request_exception
from django.db import connection, transaction
from django.test import Client
from django.urls import Resolver404, resolve

from webapp.api.urls import api
from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.serving.places import kind_of
from webapp.tests import hostile, page_parameters
from webapp.tests.access_table import API, PAGES, Who
from webapp.tests.addresses import Address, operations_of_api, pages
from webapp.tests.peak import cpu_seconds, measured_cost
from webapp.tests.samples import ADMIN, OPERATOR, VIEWER, make_samples
from webapp.tests.sampling import part_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("broker")]

# Of one request, with a body of at most 2 MB, beyond what the process had before.
MAX_MEMORY_BYTES = 100 * 2**20
MAX_CPU_S = 4.0  # of the web process and of PostgreSQL's process, on a slow machine
MAX_SHORT_CPU_S = 1.5  # of an address that needs no place (webapp/serving/places.py)
MOST = 8  # cases of each kind at an address, in a normal run
WRONG_VALUE = 422
SUCCESS = frozenset({200, 201, 202, 204})
PAGE_ANSWERS = SUCCESS | {302, 404, WRONG_VALUE}
FORM_ANSWERS = PAGE_ANSWERS | {409, 429}  # 429: too many log-ins
API_ANSWERS = SUCCESS | {404, 409, WRONG_VALUE}
UNREADABLE = frozenset({400, 413, WRONG_VALUE})  # a body that is no JSON, or too large to be read
WORKER_ANSWERS = frozenset({200, 400, 401, 403, 404, 413, 422, 426, 429})
PEOPLE = {Who.VIEWER: VIEWER, Who.OPERATOR: OPERATOR, Who.ADMIN: ADMIN}
FORM = "application/x-www-form-urlencoded"
# A page that reads further parameters only with these.
QUERIES = {
    "trends": "plan={plan}&target={target}",
    "acceptance": "baseline=run%3D1&candidate=run%3D1&candidate.factor.pattern=randread",
    "bench": "product=run:1",
    "explore": "run=1&x=iodepth&series=pattern&panel=block_size",
    "explore_timeline": "run=1&x=iodepth&series=pattern&panel=block_size&view=timeline&from=0&to=60",
    "plan": "target={target_id}",
    "new_schedule": "plan={plan}&target={target}",
}
LIKE = {  # the same parameters
    "results_csv": "results", "results_json": "results", "results_parquet": "results",
    "bench_csv": "bench", "bench_json": "bench", "bench_parquet": "bench", "acceptance_csv": "acceptance",
    "rankings_csv": "rankings", "rankings_json": "rankings", "rankings_parquet": "rankings",
    "explore_csv": "explore", "explore_parquet": "explore", "explore_json": "explore", "explore_timeline": "explore",
}  # fmt: skip
LARGE_BODIES: tuple[Callable[[list[str]], object], ...] = (
    lambda names: {f"name{n}": n for n in range(20_000)},
    lambda names: {"x" * 1_000_000: 1},
    lambda names: dict.fromkeys(names, hostile.nested(900)),
    lambda names: dict.fromkeys(names, hostile.deep_object(300)),
    lambda names: dict.fromkeys(names, ["a"] * 100_000),
    lambda names: dict.fromkeys(names[:2], "x" * 1_000_000),
)  # fmt: skip


@dataclass
class Walk:
    """Sends requests, undoes what they change, and notes what is wrong and what they cost."""

    clients: Mapping[Who, Client]
    problems: list[str] = field(default_factory=list)
    costs: list[tuple[float, int, str]] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    _errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        got_request_exception.connect(self._note)

    def _note(self, **_: object) -> None:
        frames = traceback.extract_tb(sys.exc_info()[2])
        places = [
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames if "/webapp/" in frame.filename
        ]
        self._errors.append(f"{sys.exc_info()[1]!r:.200} at {', '.join(places[-4:])}")

    def send(
        self, who: Who, method: str, address: str, allowed: Collection[int], body: bytes | str | None = None,
        kind: str = "application/json", *, raw: bool = False,
    ) -> None:  # fmt: skip
        """Note a problem unless the status is allowed, the text is ours and the cost is within the bounds."""
        self._errors.clear()
        client, backend = self.clients[who], connection.connection.info.backend_pid
        cookies = copy.deepcopy(client.cookies)
        data = {} if body is None else {"data": body, "content_type": kind}
        before_s = cpu_seconds(backend)
        with measured_cost() as cost, transaction.atomic():
            answer = getattr(client, method.lower())(address, **data)
            content = b"".join(answer) if answer.streaming else answer.content
            transaction.set_rollback(True)
        cpu_s = cost.cpu_s + cpu_seconds(backend) - before_s
        client.cookies = cookies
        self.statuses[answer.status_code] += 1
        text = "" if body is None else f" {body[:150]!r}{len(body)}"
        words = f"{who} {method} {address[:250]}{text}"
        self.costs.append((cpu_s, cost.memory_bytes, words))
        problems = [] if answer.status_code in allowed else [f"status {answer.status_code}, not {sorted(allowed)}"]
        problems += [f"failed: {error}" for error in self._errors]
        if answer.status_code >= 400 and not raw and (word := hostile.leak(content.decode(errors="replace"))):
            place = content.decode(errors="replace").find(word)
            problems.append(f"says {content.decode(errors='replace')[max(0, place - 150) : place + 100]!r}")
        if cost.memory_bytes > MAX_MEMORY_BYTES or cpu_s > MAX_CPU_S:
            problems.append(f"takes {cost.memory_bytes / 2**20:.0f} MiB and {cpu_s:.1f} s")
        elif cpu_s > MAX_SHORT_CPU_S and kind_of(address) is None:
            problems.append(f"takes {cpu_s:.1f} s without a place for an expensive request")
        self.problems += [f"{words}: {problem}" for problem in problems]

    def report(self) -> None:
        print(f"\n{len(self.costs)} requests; status: {dict(sorted(self.statuses.items()))}")
        for cpu_s, memory_bytes, words in [*sorted(self.costs)[-3:], *sorted(self.costs, key=lambda c: c[1])[-3:]]:
            print(f"{cpu_s:5.2f} s CPU {memory_bytes / 2**20:6.1f} MiB  {words[:160]}")

    def check(self) -> None:
        got_request_exception.disconnect(self._note)
        self.report()
        assert not self.problems, f"{len(self.problems)} problems:\n" + "\n".join(self.problems[:60])


@pytest.fixture
def samples() -> dict[str, object]:
    return make_samples()


@pytest.fixture
def walk(samples: dict[str, object]) -> Walk:
    clients = {Who.ANYBODY: Client(raise_request_exception=False)}
    for who, name in PEOPLE.items():
        clients[who] = Client(raise_request_exception=False)
        clients[who].force_login(User.objects.get(username=name))
    return Walk(clients)


Case = TypeVar("Case")


def some(cases: Sequence[Case], number: int, most: int = MOST) -> Sequence[Case]:
    """About `most` of the cases, which the seed chooses; all with `make fuzz`."""
    return part_of(cases, number, ceil(len(cases) / most) or 1)


# ---- pages


def queries_of(samples: Mapping[str, object]) -> dict[str, str]:
    target = Target.objects.get(slug="scratch")
    named = {"plan": samples["plans/slug"], "target": target, "target_id": target.pk}
    return {name: query.format(**named) for name, query in QUERIES.items()}


def readable_pages() -> list[Address]:
    return [page for page in pages() if PAGES[page.name].get not in (None, Who.HOST)]


def read_from_address(walk: Walk, samples: Mapping[str, object]) -> dict[str, set[str]]:
    """Page -> names of its parameters."""
    queries, names = queries_of(samples), dict[str, set[str]]()
    for page in readable_pages():
        rule = PAGES[page.name].get
        assert rule
        with page_parameters.recording() as (read, _), transaction.atomic():
            path = f"{page.filled(samples)}?{queries.get(page.name, '')}"
            answer = walk.clients[rule].get(path, follow=True)
            transaction.set_rollback(True)
        if page_parameters.ALL in read and not answer.streaming:
            read |= page_parameters.names_in_links(answer.content.decode(errors="replace"))
        read |= names_in_view(page.filled(samples), "GET")
        names[page.name] = read - {page_parameters.ALL, page_parameters.CSRF}
    for name, other in LIKE.items():
        names[name] |= names[other]
    return names


def names_in_view(path: str, kind: str) -> set[str]:
    """The names that the module of the view reads: some of them only in a state that the samples do not have."""
    module = sys.modules[resolve(path).func.__module__]
    file = Path(module.__file__ or "")
    return set(page_parameters.names_in_code(file, kind)) if "webapp" in file.parts else set()


def queries_with(name: str, value: str, query: str) -> str:
    others = urlencode(page_parameters.without(query, name))
    return f"{others}{'&' if others else ''}{quote(name)}={value}"


def hostile_queries(names: Iterable[str], query: str) -> Iterator[str]:
    """Each parameter with each value, alone and after another value; the others are as in the query."""
    for name in (name.replace("<name>", "iodepth") for name in sorted(names)):
        for number, value in enumerate(hostile.VALUES):
            one = queries_with(name, value, query)
            yield one if number % 3 else f"{one}&{quote(name)}={hostile.VALUES[number - 1]}"
    yield f"{query}&nonesuch=1"


def test_pages_answer_hostile_addresses(walk: Walk, samples: dict[str, object]) -> None:
    names, queries = read_from_address(walk, samples), queries_of(samples)
    for number, page in enumerate(readable_pages()):
        rule = PAGES[page.name].get
        assert rule
        path = page.filled(samples)
        cases = [
            f"{path}?{query}" for query in hostile_queries(names[page.name], queries.get(page.name, ""))
        ]  # fmt: skip
        allowed = PAGE_ANSWERS | ({503} if page.name == "healthz" else set())  # a walk of over a minute: old ticks
        for address in some(cases, number):
            walk.send(rule, "GET", address, allowed)
    walk.check()


def test_pages_answer_hostile_paths(walk: Walk, samples: dict[str, object]) -> None:
    """A path that names nothing is not found, whatever stands in it."""
    for number, page in enumerate(pages()):
        if "<" not in page.route or PAGES[page.name].post is Who.HOST:
            continue
        keys = [key for key in samples if page.filled(samples) != page.filled({**samples, key: "x-other-x"})]
        cases = [page.filled({**samples, key: value}) for key in keys for value in hostile.IN_PATHS]
        for address in some(cases, number, 4):
            rule = PAGES[page.name]
            for method, who in (("GET", rule.get), ("POST", rule.post)):
                if who:
                    # a page of a link with a secret says itself that the link is not valid
                    others = {200} if page.name == "set_password" else set()
                    walk.send(who, method, address, {404, 302} | others)
    walk.check()


def forms_in_pages(walk: Walk, samples: Mapping[str, object]) -> dict[str, list[tuple[str, str]]]:
    """Page that takes a form -> the fields as a page offers them, and those that it reads."""
    queries, forms = queries_of(samples), dict[str, list[tuple[str, str]]]()
    for page in readable_pages():
        rule = PAGES[page.name].get
        client = walk.clients[Who.ADMIN if rule is not Who.ANYBODY else Who.ANYBODY]
        path = f"{page.filled(samples)}?{queries.get(page.name, '')}"
        answer = client.get(path, follow=True)
        if not answer.streaming and answer.headers.get("Content-Type", "").startswith("text/html"):
            for action, fields in page_parameters.forms_of(answer.content.decode(), path).items():
                try:
                    name = resolve(action).view_name
                except Resolver404:
                    continue
                if len(fields) > len(forms.get(name, ())):
                    forms[name] = fields
    for page in pages():
        if (rule := PAGES[page.name].post) in (None, Who.HOST) or page.name.startswith("worker-"):
            continue
        fields = forms.setdefault(page.name, [])
        with page_parameters.recording() as (_, read), transaction.atomic():
            walk.clients[rule].post(page.filled(samples), urlencode(fields), content_type=FORM)
            transaction.set_rollback(True)
        known = {name for name, _ in fields}
        read |= names_in_view(page.filled(samples), "POST")
        fields += [(name, "") for name in sorted(read - known - {page_parameters.ALL, page_parameters.CSRF})]
    return forms


def test_pages_answer_hostile_forms(walk: Walk, samples: dict[str, object]) -> None:
    forms = forms_in_pages(walk, samples)
    for number, page in enumerate(pages()):
        rule = PAGES[page.name].post
        if rule in (None, Who.HOST) or page.name.startswith("worker-"):
            continue
        assert rule
        fields = forms[page.name]
        cases = list(hostile_queries({name for name, _ in fields}, urlencode(fields)))
        for body in some(cases, number):
            walk.send(rule, "POST", page.filled(samples), FORM_ANSWERS, body, FORM)
    walk.check()


def test_it_walks_every_name_that_the_code_reads(walk: Walk, samples: dict[str, object]) -> None:
    """Also those that it reads outside the modules of views."""
    read = set[str]().union(*read_from_address(walk, samples).values())
    folder = Path(settings.BASE_DIR) / "webapp"
    in_code = page_parameters.names_in_code(folder, "GET")
    assert len(in_code) > 25
    assert {name: file for name, file in in_code.items() if name not in read} == {}
    sent = {name for fields in forms_in_pages(walk, samples).values() for name, _ in fields}
    in_code = page_parameters.names_in_code(folder, "POST")
    assert len(in_code) > 25
    assert {name: file for name, file in in_code.items() if name not in sent} == {}


def test_roles_are_checked_before_forms_are_read(walk: Walk, samples: dict[str, object]) -> None:
    body = urlencode({"version": "9" * 5000, "title": "\0", "target": "nan"})
    for page in pages():
        rule = PAGES[page.name].post
        if rule in (Who.OPERATOR, Who.ADMIN):
            lower = Who.VIEWER if rule is Who.OPERATOR else Who.OPERATOR
            nowhere = page.filled(dict.fromkeys(samples, "9"))
            for address in (page.filled(samples), nowhere if is_address(nowhere) else page.filled(samples)):
                walk.send(lower, "POST", address, {403}, body, FORM)
                walk.send(Who.ANYBODY, "POST", address, {302}, body, FORM)
    walk.check()


def is_address(path: str) -> bool:
    """Whether the URL resolver knows it: nobody may anything at other addresses."""
    try:
        resolve(path.partition("?")[0])
    except Resolver404:
        return False
    return True


# ---- the API


@cache
def described_api() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    return described


def schemas() -> dict[str, Any]:
    described: dict[str, Any] = described_api()["components"]["schemas"]
    return described


@dataclass(frozen=True)
class Operation:
    name: str
    route: str
    described: dict[str, Any]

    @property
    def method(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def who(self) -> Who:
        return API[self.name]

    @property
    def queries(self) -> dict[str, dict[str, Any]]:
        return {p["name"]: p["schema"] for p in self.described.get("parameters", ()) if p["in"] == "query"}

    @property
    def contents(self) -> dict[str, Any]:
        return dict(self.described.get("requestBody", {}).get("content", {}))

    @property
    def body_schema(self) -> dict[str, Any] | None:
        """Of a JSON body."""
        content = self.contents.get("application/json")
        return schemas()[content["schema"]["$ref"].rsplit("/", 1)[1]] if content else None

    @property
    def form_fields(self) -> list[str]:
        return [name for kind, content in self.contents.items() if "json" not in kind
                for name in content["schema"]["properties"]]  # fmt: skip


def operations() -> list[Operation]:
    return [
        Operation(one.name, one.route, described_api()["paths"][f"/{one.route}"][one.name.partition(" ")[0].lower()])
        for one in operations_of_api()
    ]


def example_of(operation: Operation) -> Any:
    schema = operation.body_schema
    return schema["examples"][0] if schema else None


def sent_body(operation: Operation) -> bytes | None:
    return hostile.encoded(example_of(operation)) if operation.body_schema else None


def test_the_api_answers_hostile_parameters(walk: Walk, samples: dict[str, object]) -> None:
    count = 0
    for number, operation in enumerate(operations()):
        path = Address(operation.name, operation.route).filled(samples)
        count += len(operation.queries)
        cases = list(hostile_queries(operation.queries, ""))
        for query in some(cases, number):
            walk.send(operation.who, operation.method, f"{path}?{query}", API_ANSWERS, sent_body(operation))
        for name, schema in operation.queries.items():
            wrong = wrong_texts(schema)
            for value in some(wrong, number, 1):
                query = queries_with(name, value, "")
                walk.send(operation.who, operation.method, f"{path}?{query}", {WRONG_VALUE}, sent_body(operation))
        walk.send(operation.who, operation.method, f"{path}?nonesuch=1", {WRONG_VALUE}, sent_body(operation))
    assert count > 170
    walk.check()


def wrong_texts(schema: Mapping[str, Any]) -> list[str]:
    """Values of an address that violate the type."""
    parts = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    part = parts[0]
    if "$ref" in part:
        part = schemas()[part["$ref"].rsplit("/", 1)[1]]
    if "enum" in part:
        return ["nonesuch", "1", ",".join(map(str, part["enum"])), "%F0%9F%92%A5"]
    values = [quote(text, safe="%") for text in hostile.WRONG.get(str(part.get("format", part.get("type"))), ())]
    values += [str(part["maximum"] + 1)] if "maximum" in part else []
    return values + ([str(part["minimum"] - 1)] if "minimum" in part else [])


def test_a_path_of_the_api_that_names_nothing_is_not_found(walk: Walk, samples: dict[str, object]) -> None:
    for number, operation in enumerate(operations()):
        address = Address(operation.name, operation.route)
        keys = [key for key in samples if address.filled(samples) != address.filled({**samples, key: "x-other-x"})]
        cases = [address.filled({**samples, key: value}) for key in keys for value in hostile.IN_PATHS]
        for path in some(cases, number, 4):
            allowed = {404}
            if operation.name == "PUT plans/{slug}":
                allowed |= {200, 201, WRONG_VALUE}  # it creates the plan
            if operation.method == "DELETE":
                allowed |= {204}  # safe to repeat
            if any(p.get("required") and p["in"] == "query" for p in operation.described.get("parameters", ())):
                allowed |= {WRONG_VALUE}
            walk.send(operation.who, operation.method, path, allowed, sent_body(operation))
    walk.check()


def test_the_api_answers_hostile_bodies(walk: Walk, samples: dict[str, object]) -> None:
    count = 0
    for number, operation in enumerate(operations()):
        if operation.method == "GET":
            continue
        path = Address(operation.name, operation.route).filled(samples)

        def send(allowed: Collection[int], body: bytes, path: str = path, operation: Operation = operation) -> None:
            walk.send(operation.who, operation.method, path, allowed, body)

        schema = operation.body_schema
        whole = [*hostile.UNREADABLE_BODIES, *hostile.NO_OBJECTS]
        if not schema:
            for body in some([body for body in whole if body not in (b"", b"null")], number, 2):
                if not operation.form_fields:
                    send(UNREADABLE, body)
            continue
        count += 1
        names = list(schema["properties"])
        for body in some(whole, number, 3):
            send(UNREADABLE | (API_ANSWERS if not schema.get("required") else set()), body)
        for make in some(LARGE_BODIES, number, 2):
            send(UNREADABLE | {404}, hostile.encoded(make(names)))  # 404: a name of 1 MB
        send({WRONG_VALUE}, hostile.encoded({**example_of(operation), "nonesuch": 1}))
        wrong = [
            {**example_of(operation), name: value}
            for name in names
            for value in hostile.wrong_json(hostile.types_of(schema["properties"][name], schemas()))
        ]
        for changed in some(wrong, number, 4):
            send({WRONG_VALUE}, hostile.encoded(changed))
        for changed in some(list(mutations(example_of(operation))), number):
            send(API_ANSWERS | {413}, hostile.encoded(changed))  # 413: a body above the limit
    assert count > 30
    walk.check()


def mutations(plain: Any) -> Iterator[Any]:
    """Every single replacement of a value in a body, also of a nested one, by each odd value."""
    yield from hostile.ODD_JSON if not isinstance(plain, dict) else ()
    if isinstance(plain, dict):
        for key in plain:
            yield from ({**plain, key: inner} for inner in mutations(plain[key]))
            yield {key: value for key, value in plain.items() if key != key}
    elif isinstance(plain, list) and plain:
        yield from ([inner, *plain[1:]] for inner in mutations(plain[0]))


def test_the_api_answers_hostile_forms(walk: Walk, samples: dict[str, object]) -> None:
    boundary = "b0"
    for number, operation in enumerate(operations()):
        path = Address(operation.name, operation.route).filled(samples)
        values = [*hostile.TEXTS, *hostile.LISTS, *hostile.NUMBERS, "\0", "\u2028"]
        cases = [(name, value) for name in operation.form_fields for value in values]
        for name, value in some(cases, number, 4):
            body = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--{boundary}--\r\n'
            ).encode()
            walk.send(
                operation.who, operation.method, path, API_ANSWERS, body, f"multipart/form-data; boundary={boundary}"
            )  # fmt: skip
    walk.check()


def test_the_api_checks_roles_before_it_reads_anything(walk: Walk, samples: dict[str, object]) -> None:
    """Also before it looks for the objects in the path."""
    lower = {Who.OPERATOR: (Who.VIEWER,), Who.ADMIN: (Who.VIEWER, Who.OPERATOR)}
    for operation in operations():
        address = Address(operation.name, operation.route)
        paths = [f"{address.filled(samples)}?nonesuch=1&limit=a", address.filled(dict.fromkeys(samples, "²"))]
        for path in filter(is_address, paths):
            for body in (None,) if operation.method == "GET" else (b"{", b'{"nonesuch": 1}', b"[1]"):
                walk.send(Who.ANYBODY, operation.method, path, {401}, body)
                for who in lower.get(operation.who, ()):
                    walk.send(who, operation.method, path, {403}, body)
    walk.check()


# ---- workers


def test_workers_addresses_answer_hostile_bodies(walk: Walk, samples: dict[str, object]) -> None:
    """Messages in detail: webapp/worker_api/tests/test_damaged.py."""
    from webapp.core.tokens import new_token

    plain, token_hash = new_token()
    Host.objects.filter(slug="storage1").update(token_hash=token_hash)
    host = Client(headers={"authorization": f"Bearer {plain}"}, raise_request_exception=False)
    for who, client in ((Who.HOST, host), (Who.ANYBODY, walk.clients[Who.ANYBODY])):
        walk.clients = {**walk.clients, who: client}
        for page in pages():
            if page.name.startswith("worker-") and PAGES[page.name].post:
                for body in (*hostile.UNREADABLE_BODIES, *hostile.NO_OBJECTS, b'{"version": 1e999}'):
                    walk.send(who, "POST", page.filled(samples), WORKER_ANSWERS, body)
    walk.check()
