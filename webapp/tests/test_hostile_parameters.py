"""Parameters that no page of ours links to: the server answers them, and never with 500.

The parameters of a page are those that it reads from the address, and the names in its forms and links.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import pytest
from django.core.handlers import wsgi
from django.db import transaction
from django.http import QueryDict
from django.test import Client

from webapp.api.urls import api
from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.tests.access_table import API, PAGES, Who
from webapp.tests.addresses import operations_of_api, pages
from webapp.tests.samples import VIEWER, make_samples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broker")]
ALL = "*"  # a page that goes through all of its parameters
FINE = (200, 302, 400, 404, 422)  # 422: the API names the parameter
HOSTILE = (
    "99999999999999999999", "-1", "9" * 5000, "1e400", "nan", "-inf", "0001-01-01", "9999-12-31T23:59:59.999999",
    "2026-02-30", "2026-02-28T24:00+99:99", "9999-12-31~99999999999999999999", "nan~1", "a", "'\"><script>{{ 7 }}%s",
    "\u202e💥\ufffe", "x" * 5000, "1,,2", "1..99999999999", "[](){}*?+\\", "٣", "²", "",
)  # fmt: skip
RAW = (*map(quote, HOSTILE), "%00", "%ff%fe", "%ed%a0%80")  # with NUL, with bytes that are not UTF-8
IN_PATHS = (HOSTILE[0], "%00", "%F0%9F%92%A5")
# A page that reads further parameters only with these.
QUERIES = {
    "trends": "plan={plan}&target={target}",
    "bench": "product=run:1",
    "explore": "run=1&x=iodepth&series=pattern&panel=block_size",
    "plan": "target={target_id}",
}
LIKE = {  # the same parameters
    "results_csv": "results", "results_json": "results", "results_parquet": "results",
    "bench_csv": "bench", "bench_json": "bench", "bench_parquet": "bench",
    "explore_csv": "explore", "explore_parquet": "explore", "explore_json": "explore",
}  # fmt: skip
_NAMES = re.compile(r"""(?:<(?:input|select|textarea)[^>]*\sname="|[?&](?:amp;)?)([\w.-]+)""")


class Recorded(QueryDict):
    """Notes which parameters a page reads."""

    read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def getlist(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().getlist(key, default)

    def lists(self) -> Any:
        self.read.add(ALL)
        return super().lists()

    def items(self) -> Any:
        self.read.add(ALL)
        return super().items()

    def __iter__(self) -> Any:
        self.read.add(ALL)
        return super().__iter__()


@contextmanager
def recording() -> Iterator[set[str]]:
    with patch.object(wsgi, "QueryDict", Recorded), patch.object(Recorded, "read", set()):
        yield Recorded.read


def parameters_of(client: Client, path: str) -> list[str]:
    with recording() as read:
        answer = client.get(path, follow=True)
    if ALL in read:
        read |= set(_NAMES.findall(answer.content.decode()))
    return sorted(read - {ALL, "csrfmiddlewaretoken"})


def problem(client: Client, address: str) -> str:
    """Empty if the page answers."""
    try:
        with transaction.atomic():
            answer = client.get(address)
            if answer.streaming:
                b"".join(answer)
    except Exception as error:  # noqa: BLE001 - named in the test's message
        return f"{address[:200]}: {type(error).__name__}: {str(error)[:200]}"
    return "" if answer.status_code in FINE else f"{address[:200]}: {answer.status_code}"


def hostile(names: Iterable[str], query: str, path: str) -> Iterator[str]:
    """Each parameter with two hostile values, of which most pages use the last. The others are as in the query."""
    for name in names:
        others = [pair for pair in query.split("&") if pair.partition("=")[0] != name]
        yield f"{path}?{'&'.join([*others, *(f'{name}={next(_values)}' for _ in range(2))])}"


def read_by(client: Client, page: str, samples: dict[str, object]) -> tuple[list[str], str]:
    """The parameters of the page, and the query to which a hostile one is added."""
    address = next(each for each in pages() if each.name == LIKE.get(page, page))
    target = Target.objects.get(slug="scratch")
    query = QUERIES.get(address.name, "").format(plan=samples["plans/slug"], target=target, target_id=target.pk)
    return parameters_of(client, f"{address.filled(samples)}?{query}"), query


_values = cycle(RAW)


@pytest.fixture
def samples() -> dict[str, object]:
    return make_samples()


@pytest.fixture
def viewer(samples: dict[str, object]) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=VIEWER))
    return client


def test_every_page_answers_hostile_parameters(viewer: Client, samples: dict[str, object]) -> None:
    found = []
    for page in pages():
        if PAGES[page.name].get in (Who.VIEWER, Who.ANYBODY):
            path = page.filled(samples)
            found += [problem(viewer, each) for each in hostile(*read_by(viewer, page.name, samples), path)]
            found += [
                problem(viewer, page.filled(dict.fromkeys(samples, value))) for value in IN_PATHS if "<" in page.route
            ]
    assert list(filter(None, found)) == []


def test_the_api_answers_hostile_parameters(viewer: Client, samples: dict[str, object]) -> None:
    found = []
    paths = api.get_openapi_schema()["paths"]
    for operation in operations_of_api():
        if operation.name.startswith("GET") and API[operation.name] is Who.VIEWER:
            described = paths[f"/{operation.route}"]["get"].get("parameters", ())
            names = [each["name"] for each in described if each["in"] == "query"]
            found += [problem(viewer, address) for address in hostile(names, "", operation.filled(samples))]
    assert list(filter(None, found)) == []
