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


# Nobody here uses Django's own permissions. Making their rows anew takes seconds after each test that empties tables.
post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
post_migrate.disconnect(create_contenttypes)


def _delete_rows(self: DatabaseOperations, _style: Style, tables: Sequence[str], **_how: bool) -> list[str]:
    """After a test with real transactions: TRUNCATE of 44 tables costs a hundred times what their few rows cost."""
    without_triggers = "SET LOCAL session_replication_role = replica"  # or each row asks who refers to it
    return [without_triggers, *(f"DELETE FROM {self.quote_name(table)}" for table in tables)]  # noqa: S608


_prepare, _prepared = StaticFiles.get_static_file, dict[tuple[str, str, int], StaticFile]()


def _prepared_once(
    self: StaticFiles, path: str, url: str, stat_cache: Mapping[str, os.stat_result] | None = None
) -> StaticFile:
    """Each client of a test starts WhiteNoise anew: 10 ms of CPU time for the headers of several hundred files."""
    if stat_cache is None:  # with DEBUG, when a request asks for the file
        return _prepare(self, path, url)
    key = path, url, stat_cache[path].st_mtime_ns
    if key not in _prepared:
        _prepared[key] = _prepare(self, path, url, stat_cache)
    return _prepared[key]


_request = Client.request


def _read(self: Client, **how: Any) -> Any:
    """Django's client reads pages as readers see them: where a template breaks its lines is no concern of a test."""
    response = _request(self, **how)
    if response.headers.get("Content-Type", "").startswith("text/html") and not response.streaming:
        response.content = without_line_breaks(response.content.decode()).encode()
    return response


# For the life of this process. As fixtures they would be looked up for each of ten thousand tests.
DatabaseOperations.sql_flush = _delete_rows  # type: ignore[assignment,method-assign]
StaticFiles.get_static_file = _prepared_once
Client.request = _read  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _nothing_of_earlier_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of queries of a page must not depend on them, and answers in Redis are of their database."""
    content.clear()
    monkeypatch.setattr(answers, "_is_being_renewed", lambda *_: False)


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
