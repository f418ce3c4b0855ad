"""Logged-in people for the tests of the pages, by Django's client or in a browser."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from webapp.core.models import Role, User
from webapp.plans.models import PlanVersion
from webapp.results.reading import content
from webapp.runs.models import Run
from webapp.schedules.models import Schedule
from webapp.tests.browser import PATIENCE_MS
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_trial
from webapp.tests.factories.runs import first_look_run
from webapp.tests.factories.schedules import a_schedule
from webapp.tests.visits import log_in


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(a_user("olga", Role.OPERATOR))
    return client


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(a_user("anna", Role.ADMIN))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    client = Client()
    client.force_login(a_user("vera", Role.VIEWER))
    return client


@pytest.fixture
def queries_of(operator: Client) -> Callable[[str], int]:
    """How many queries a page takes."""

    def count(url: str) -> int:
        content.clear()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert operator.get(url).status_code == 200
        return len(queries)

    return count


@pytest.fixture
def problems() -> list[str]:
    """Errors of the page's scripts."""
    return []


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, problems: list[str]) -> Iterator[Page]:
    """A page of an operator who has just logged in."""
    context = chromium.new_context(base_url=live_server.url, viewport={"width": 1440, "height": 900})
    log_in(context, live_server.url, a_user("olga"))
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto("/")
    yield page
    context.close()


@pytest.fixture
def run(page: Page) -> Run:
    """Two trials done, the third running."""
    target = storage1_scratch(a_host("storage1"))
    began = timezone.now() - timedelta(seconds=20)
    run = first_look_run(first_look(), [target], repeats=2, started_at=began)
    for index in (0, 1):
        finish_trial(run.trials.get(index=index), began + timedelta(seconds=5 * index))
    return run


@pytest.fixture
def olga(operator: Client) -> User:
    return User.objects.get(username="olga")


@pytest.fixture
def version(db: None) -> PlanVersion:
    return first_look()


@pytest.fixture
def nightly(olga: User, version: PlanVersion) -> Schedule:
    return a_schedule(olga, version=version, targets=[storage1_scratch(a_host("storage1"))])


@pytest.fixture
def overwriting(olga: User) -> Schedule:
    drive = storage1_drive(a_host("storage9"))
    version = first_look(slug="overwrites")
    return a_schedule(olga, name="overwrite", version=version, targets=[drive])
