"""Requests that schemathesis makes from openapi.json: no answer is a bug of ours, none is other than it says."""

from collections.abc import Iterator

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from webapp.core.models import User
from webapp.core.services import create_api_token
from webapp.tests.samples import ADMIN, make_samples

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """A request of a server ends with the database's connection closed; here it holds what is to be undone."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_it_answers_every_operation_as_documented() -> None:
    from webapp.api.tests.generated_requests import wrong_answers

    samples = make_samples()
    wrong = list(wrong_answers(create_api_token(user=User.objects.get(username=ADMIN), name="schemathesis"), samples))
    assert not wrong, f"{len(wrong)}:\n" + "\n\n".join(wrong)
