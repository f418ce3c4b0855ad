"""Logged-in people for the tests of the pages."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from webapp.core.models import Role
from webapp.results.reading import content
from webapp.screens.tests.factories import make_user


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(make_user("olga", Role.OPERATOR))
    return client


@pytest.fixture
def admin(db: None) -> Client:
    client = Client()
    client.force_login(make_user("anna", Role.ADMIN))
    return client


@pytest.fixture
def viewer(db: None) -> Client:
    client = Client()
    client.force_login(make_user("vera", Role.VIEWER))
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
