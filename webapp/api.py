"""The public API: one router an app, mounted under /api/v1/.

`/api/v1/openapi.json` can be read by anyone; everything else with the browser's log-in or an API token.
There is no page of documentation here: Swagger's would be fetched from somebody else's server.
"""

from django.urls import URLPattern, URLResolver, path
from ninja import NinjaAPI

from webapp.compare.api import router as compare_router
from webapp.core.api import AUTH, add_error_handlers
from webapp.hosts.api import router as hosts_router
from webapp.plans.api import router as plans_router
from webapp.results.api import router as results_router
from webapp.runs.api import router as runs_router
from webapp.runs.api_actions import router as run_actions_router

api = NinjaAPI(
    title="Sweetspot",
    version="1",
    description="A storage benchmark lab. Values are in bytes/s, ns and IOPS; errors are {code, message}.",
    auth=AUTH,
    docs_url=None,
    urls_namespace="api",
)
add_error_handlers(api)
for _router in (hosts_router, plans_router, runs_router, run_actions_router, results_router, compare_router):
    api.add_router("", _router)

urlpatterns: list[URLPattern | URLResolver] = [path("v1/", api.urls)]
