"""The public API: one router per subject, mounted under /api/v1/.

Anyone may read `/api/v1/openapi.json` and the reference `/api/v1/docs`; everything else needs the browser's session
or an API token. Swagger's page is off, because it would load scripts from another site.
"""

from django.urls import URLPattern, URLResolver, path

from webapp.api import (
    baselines,
    compare,
    findings,
    host_actions,
    host_groups,
    hosts,
    imports,
    notices,
    people,
    plans,
    results,
    runs,
    schedules,
    storage,
    trials,
)
from webapp.api.common.authentication import AUTH
from webapp.api.common.errors import ShallowParser, add_error_handlers, refuse_large_json, refuse_unknown_input
from webapp.api.openapi import Api, reference_of

_SUBJECTS = (
    people,
    hosts,
    host_groups,
    host_actions,
    plans,
    runs,
    findings,
    results,
    trials,
    imports,
    schedules,
    compare,
    baselines,
    notices,
    storage,
)

api = Api(
    title="Sweetspot",
    version="1",
    description="A storage benchmark lab. Values are in bytes, bytes/s, ns and IOPS; errors are {code, message}. "
    "There is no limit for the number of requests; ask for the state of a run at most every two seconds. Many requests "
    "at a time with one token, and too many previews, comparisons or imports, get status 503 with Retry-After.",
    auth=AUTH,
    docs_url=None,
    parser=ShallowParser(),
    urls_namespace="api",
)
add_error_handlers(api)
api.add_decorator(refuse_unknown_input, mode="view")
api.add_decorator(refuse_large_json, mode="view")
for _subject in _SUBJECTS:
    api.add_router("", _subject.router)

urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/docs", reference_of(api), name="api-reference"),
    path("v1/", api.urls),
]
