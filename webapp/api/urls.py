"""The public API: one router per subject, mounted under /api/v1/.

Anyone may read `/api/v1/openapi.json`; everything else needs the browser's session or an API token.
There is no documentation page, because Swagger's would load scripts from another site.
"""

from typing import Any

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from webapp.api import (
    baselines,
    bench,
    compare,
    endurance,
    enrolments,
    host_actions,
    host_groups,
    hosts,
    imports,
    maintenance_windows,
    notices,
    occurrences,
    people,
    plans,
    preview,
    results,
    run_actions,
    run_findings,
    runs,
    saved_comparisons,
    schedules,
    trials,
    validity,
    verdicts,
    wear,
    worker_log,
)
from webapp.api.common.authentication import AUTH
from webapp.api.common.errors import Problem, add_error_handlers
from webapp.api.common.unknown_input import refuse_unknown_input

_SUBJECTS = (
    people,
    hosts,
    enrolments,
    worker_log,
    endurance,
    host_groups,
    maintenance_windows,
    host_actions,
    plans,
    preview,
    runs,
    run_actions,
    run_findings,
    results,
    trials,
    validity,
    wear,
    imports,
    schedules,
    occurrences,
    compare,
    bench,
    saved_comparisons,
    baselines,
    verdicts,
    notices,
)

# The error responses of every operation; the body is always a Problem.
ERRORS = {
    "400": "The request cannot be read.",
    "401": "No session and no valid API token.",
    "403": "Your role may not do this.",
    "404": "Not found.",
    "409": "Not possible in the current state.",
    "422": "A value in the request is not valid.",
}


class Api(NinjaAPI):
    """Adds the error responses to openapi.json: django-ninja describes only successful ones."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        components = schema["components"]
        components["schemas"]["Problem"] = Problem.model_json_schema()
        body = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
        components["responses"] = {
            f"Error{status}": {"description": words, "content": body} for status, words in ERRORS.items()
        }
        errors = {status: {"$ref": f"#/components/responses/Error{status}"} for status in ERRORS}
        for methods in schema["paths"].values():
            for operation in methods.values():
                operation["responses"] |= errors
        return schema


api = Api(
    title="Sweetspot",
    version="1",
    description="A storage benchmark lab. Values are in bytes/s, ns and IOPS; errors are {code, message}.",
    auth=AUTH,
    docs_url=None,
    urls_namespace="api",
)
add_error_handlers(api)
api.add_decorator(refuse_unknown_input, mode="view")
for _subject in _SUBJECTS:
    api.add_router("", _subject.router)

urlpatterns: list[URLPattern | URLResolver] = [path("v1/", api.urls)]
