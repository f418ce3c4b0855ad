"""For all server tests: a queue of their own in the real Redis, and passwords that cost nothing to make."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.contenttypes.management import create_contenttypes
from django.core.management.color import Style
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.models.signals import post_migrate
from django.test import Client
from playwright.sync_api import Browser
from whitenoise.responders import StaticFile

from webapp.celery import app
from webapp.core import answers
from webapp.core.middleware import StaticFiles
from webapp.results.reading import content
from webapp.tests import browser
from webapp.tests.pages import without_line_breaks

# Half a second a password is for those who guess. A server started by a test reads the number from the hash.
PBKDF2PasswordHasher.iterations = 1000


@pytest.fixture(scope="session", autouse=True)
def _no_permissions() -> None:
    """Nobody here uses Django's own; making their rows anew whenever a test has emptied the database takes seconds."""
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)


@pytest.fixture(scope="session", autouse=True)
def _tables_emptied_row_by_row() -> Iterator[None]:
    """After a test with real transactions: TRUNCATE of 44 tables costs a hundred times what their few rows cost."""

    def delete(self: DatabaseOperations, _style: Style, tables: Sequence[str], **_how: bool) -> list[str]:
        without_triggers = "SET LOCAL session_replication_role = replica"  # or each row asks who refers to it
        return [without_triggers, *(f"DELETE FROM {self.quote_name(table)}" for table in tables)]  # noqa: S608

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DatabaseOperations, "sql_flush", delete)
        yield


@pytest.fixture(scope="session", autouse=True)
def _static_files_prepared_once() -> Iterator[None]:
    """Each client of a test starts WhiteNoise anew: 10 ms of CPU time for the headers of several hundred files."""
    prepare = StaticFiles.get_static_file
    prepared: dict[tuple[str, str, int], StaticFile] = {}

    def get(
        self: StaticFiles, path: str, url: str, stat_cache: Mapping[str, os.stat_result] | None = None
    ) -> StaticFile:
        if stat_cache is None:  # with DEBUG, when a request asks for the file
            return prepare(self, path, url)
        key = path, url, stat_cache[path].st_mtime_ns
        if key not in prepared:
            prepared[key] = prepare(self, path, url, stat_cache)
        return prepared[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFiles, "get_static_file", get)
        yield


@pytest.fixture(autouse=True)
def _empty_content_cache() -> None:
    """The number of queries of a page must not depend on earlier tests."""
    content.clear()


@pytest.fixture(scope="session", autouse=True)
def _pages_without_line_breaks() -> Iterator[None]:
    """Django's client reads pages as readers see them: where a template breaks its lines is no concern of a test."""
    request = Client.request

    def read(self: Client, **how: Any) -> Any:
        response = request(self, **how)
        if response.headers.get("Content-Type", "").startswith("text/html") and not response.streaming:
            response.content = without_line_breaks(response.content.decode()).encode()
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "request", read)
        yield


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a module: beyond it, Playwright's event loop would change what other tests see of Django."""
    if not (Path(settings.FRONTEND_BUILD) / "manifest.json").is_file():
        pytest.fail("The front end is not built: run `.ci/setup` first.")
    with browser.chromium() as started:
        yield started


@pytest.fixture
def broker() -> Iterator[None]:
    """The broker, without what an earlier test has left in hosts' queues."""
    with app.connection_for_read() as connection:
        client = connection.default_channel.client
        _remove_queues(client)
        yield
        _remove_queues(client)


def _remove_queues(client: object) -> None:
    for key in client.scan_iter("host.*"):  # type: ignore[attr-defined]
        client.delete(key)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _no_earlier_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another test's database may be in Redis."""
    monkeypatch.setattr(answers, "_is_being_renewed", lambda *_: False)
