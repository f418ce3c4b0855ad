"""Requests that schemathesis makes from openapi.json: no answer is a bug of ours, none is other than it says."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from webapp.core.models import User
from webapp.core.services import create_api_token
from webapp.tests.addresses import API_ROOT
from webapp.tests.samples import ADMIN, make_samples
from webapp.wsgi import application

pytestmark = pytest.mark.django_db

SEED = 20260101
EXAMPLES = 3  # an operation, twice: with names that schemathesis makes up, and with names of what is there
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """A request of a server ends with the database's connection closed; here it holds what is to be undone."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def asked(operation: Any, headers: dict[str, str], known: dict[str, object]) -> list[str]:
    """What is wrong with the answers to requests, good ones and bad ones; everything they changed is undone."""
    wrong: list[str] = []

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def play(case: Any) -> None:
        case.path_parameters.update(known)
        with transaction.atomic():
            response = case.call(headers=headers)
            transaction.set_rollback(True)
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            said = "; ".join(f"{type(failure).__name__}: {failure}" for failure in group.exceptions)
            wrong.append(f"{operation.label} ({response.status_code}): {said}\n{case.as_curl_command()}")

    play()
    return wrong


def names(operation: Any, samples: dict[str, object]) -> dict[str, object]:
    """What stands for each parameter of its path."""
    area = operation.path.removeprefix(f"/{API_ROOT}").split("/")[0]
    return {parameter.name: str(samples[f"{area}/{parameter.name}"]) for parameter in operation.path_parameters}


def test_it_answers_every_operation_as_documented() -> None:
    samples = make_samples()
    token = create_api_token(user=User.objects.get(username=ADMIN), name="schemathesis")
    headers = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_wsgi(f"/{API_ROOT}openapi.json", application)
    wrong: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr] # raises where the description is no good
        known = names(operation, samples)
        wrong += asked(operation, headers, {})
        if known:
            wrong += asked(operation, headers, known)
    assert not wrong, f"{len(wrong)}:\n" + "\n\n".join(wrong)
