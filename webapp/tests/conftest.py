from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.base.creation import TEST_DATABASE_PREFIX
from django.test.utils import setup_databases, teardown_databases
from playwright.sync_api import Browser, Page
from pytest_django import DjangoDbBlocker

from webapp.tests.system import StorageHost, System, Web

SCRATCH = """
[[target]]
id = "scratch"
kind = "directory"
path = "{path}"
"""


@pytest.fixture(scope="session")
def test_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A database for tests that outlives single tests.

    pytest-django makes one only if a collected test carries its mark, and that mark empties the
    tables after each test; where it made none, one is made here. The real one is never touched.
    """
    made_before = connection.settings_dict["NAME"].startswith(TEST_DATABASE_PREFIX)
    with django_db_blocker.unblock():
        made = None if made_before else setup_databases(verbosity=0, interactive=False, aliases={"default": None})
        assert connection.settings_dict["NAME"].startswith(TEST_DATABASE_PREFIX)
        yield
        if made is not None:
            teardown_databases(made, verbosity=0)


@pytest.fixture(scope="session")
def web(test_database: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """One web tier for all tests of this process, because each start takes more than 2 s of CPU time."""
    web = Web(tmp_path_factory.mktemp("web"))
    yield web
    web.stop()


@pytest.fixture(scope="module")
def system(web: Web, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system without hosts, for all tests of a module."""
    with django_db_blocker.unblock():
        web.ensure_running()
        system = System(tmp_path_factory.mktemp("system"), web)
        try:
            yield system
        finally:
            system.stop_hosts()
            call_command("flush", interactive=False, verbosity=0)


@pytest.fixture(scope="module")
def enrolled(system: System) -> StorageHost:
    """A host that allows one scratch directory."""
    scratch = system.folder / "scratch"
    scratch.mkdir(mode=0o755)
    return system.add_host("storage1", SCRATCH.format(path=scratch))


@pytest.fixture
def storage(enrolled: StorageHost) -> StorageHost:
    """The same, running, whatever the test before did to it."""
    enrolled.ensure_running()
    return enrolled


@pytest.fixture
def page(system: System, chromium: Browser) -> Iterator[Page]:
    """A page of somebody who is not logged in."""
    page = chromium.new_page(base_url=system.web.url, viewport={"width": 1440, "height": 900})
    yield page
    connections.close_all()  # the one that belongs to Playwright's event loop
    page.close()
