"""The public API: one router an app, mounted under /api/v1/.

`/api/v1/openapi.json` can be read by anyone; everything else with the browser's log-in or an API token.
There is no page of documentation here: Swagger's would be fetched from somebody else's server.
"""

from typing import Any

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from webapp.compare.api import router as compare_router
from webapp.compare.saved_api import router as saved_comparisons_router
from webapp.core.api import AUTH, Problem, add_error_handlers, only_known
from webapp.core.people_api import router as people_router
from webapp.hosts.api import router as hosts_router
from webapp.hosts.endurance_api import router as endurance_router
from webapp.hosts.groups_api import router as groups_router
from webapp.hosts.windows_api import router as windows_router
from webapp.notices.api import router as notices_router
from webapp.plans.api import router as plans_router
from webapp.results.api import router as results_router
from webapp.results.api_preview import router as preview_router
from webapp.results.wear_api import router as wear_router
from webapp.runs.api import router as runs_router
from webapp.runs.api_actions import router as run_actions_router
from webapp.runs.api_host_actions import router as host_actions_router
from webapp.schedules.api import router as schedules_router

# What any operation may answer beside its own; the body is always a Problem.
ERRORS = {
    "400": "The request cannot be read.",
    "401": "No log-in and no API token that opens.",
    "403": "Your role may not do this.",
    "404": "There is no such thing.",
    "409": "Not as things are now.",
    "422": "The request says something that cannot be.",
}


class Api(NinjaAPI):
    """With the answers to what went wrong in its description: django-ninja describes only those that went well."""

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
api.add_decorator(only_known, mode="view")
for _router in (
    people_router,
    hosts_router,
    endurance_router,
    groups_router,
    windows_router,
    plans_router,
    preview_router,
    runs_router,
    run_actions_router,
    host_actions_router,
    results_router,
    wear_router,
    schedules_router,
    compare_router,
    saved_comparisons_router,
    notices_router,
):
    api.add_router("", _router)

urlpatterns: list[URLPattern | URLResolver] = [path("v1/", api.urls)]
