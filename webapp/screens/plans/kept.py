"""Drafts kept in the session: input from before a log-in, and imported files.

The editor shows a kept draft once, when it is next opened. Django keeps the session's data during a log-in.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

P = ParamSpec("P")
_KEY = "plan_draft"
MAX_BYTES = 300_000  # the largest plan file as form data; unauthenticated clients can also store a draft
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
    """Keep the form of a person whose session has ended until the next log-in."""

    @functools.wraps(view)
    def keeping(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated and "do" not in request.POST:
            keep(request, request.path, request.POST, _BACK)
        return view(request, *args, **kwargs)

    return keeping
