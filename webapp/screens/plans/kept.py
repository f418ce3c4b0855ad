"""Drafts kept in the session: input from before a log-in, and imported files.

The editor shows a kept draft once, when it is next opened. Django keeps the session's data during a log-in.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

from webapp.core.throttle import address_of, may_keep_draft

P = ParamSpec("P")
_KEY = "plan_draft"
MAX_BYTES = 300_000  # the largest plan file as form data
KEPT_WITHOUT_LOG_IN_S = 3600
_BACK = "Your entries were restored. The plan is not saved yet."


def keep(request: HttpRequest, path: str, data: QueryDict, message: str) -> None:
    """Keep a draft for the next GET of `path`, unless it is too large."""
    text = data.urlencode()
    if len(text) <= MAX_BYTES:
        request.session[_KEY] = {"path": path, "data": text, "message": message}


def kept_draft(request: HttpRequest) -> QueryDict | None:
    """Remove and return this page's draft with its message."""
    kept = request.session.get(_KEY)
    if not isinstance(kept, dict) or kept.get("path") != request.path:
        return None
    del request.session[_KEY]
    messages.info(request, str(kept["message"]))
    return QueryDict(str(kept["data"]))


def keeps_draft(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Keep the form of a person whose session has ended until the next log-in.

    Nobody knows who it is, so drafts without a log-in are few for each address, and kept for an hour.
    """

    @functools.wraps(view)
    def keeping(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated and "do" not in request.POST:
            _keep_without_log_in(request)
        return view(request, *args, **kwargs)

    return keeping


def _keep_without_log_in(request: HttpRequest) -> None:
    if may_keep_draft(address=address_of(request)):
        keep(request, request.path, request.POST, _BACK)
        request.session.set_expiry(KEPT_WITHOUT_LOG_IN_S)
