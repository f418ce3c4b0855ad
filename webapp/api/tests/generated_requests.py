"""Requests that schemathesis makes from openapi.json, and what is wrong with the answers.

A module of its own: only the process that runs its test imports schemathesis, which takes a second.
"""

from collections.abc import Iterator
from typing import Any

import schemathesis
from django.core.wsgi import get_wsgi_application
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from webapp.tests.addresses import API_ROOT

SEED = 20260101
EXAMPLES = 3  # an operation, twice: with names that schemathesis makes up, and with names of what is there
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def wrong_answers(token: str, samples: dict[str, object]) -> Iterator[str]:
    """To requests of every operation."""
    headers = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_wsgi(f"/{API_ROOT}openapi.json", get_wsgi_application())
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr] # raises where the description is no good
        known = _names(operation, samples)
        yield from _asked(operation, headers, {})
        if known:
            yield from _asked(operation, headers, known)


def _asked(operation: Any, headers: dict[str, str], known: dict[str, object]) -> list[str]:
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


def _names(operation: Any, samples: dict[str, object]) -> dict[str, object]:
    """What stands for each parameter of its path."""
    area = operation.path.removeprefix(f"/{API_ROOT}").split("/")[0]
    return {parameter.name: str(samples[f"{area}/{parameter.name}"]) for parameter in operation.path_parameters}
