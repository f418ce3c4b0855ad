"""Drafts that wait in the session: what was typed when the log-in ended, and what was read from a file.

The next opening of the editor takes it out and shows it. Django keeps what is in the session over the log-in.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from django.contrib import messages
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase

P = ParamSpec("P")
_KEY = "plan_draft"
MAX_BYTES = 300_000  # the largest plan file, as a form; strangers can leave something here too
_BACK = "Here is what you had typed. It is not saved yet."


def keep(request: HttpRequest, path: str, data: QueryDict, message: str) -> None:
    """For the next GET of `path`, if it is not absurdly long."""
    text = data.urlencode()
    if len(text) <= MAX_BYTES:
        request.session[_KEY] = {"path": path, "data": text, "message": message}


def kept_draft(request: HttpRequest) -> QueryDict | None:
    """What waits for this page, once, with its message."""
    kept = request.session.get(_KEY)
    if not isinstance(kept, dict) or kept.get("path") != request.path:
        return None
    del request.session[_KEY]
    messages.info(request, str(kept["message"]))
    return QueryDict(str(kept["data"]))


def keeps_draft(
    view: Callable[Concatenate[HttpRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """What is sent by somebody whose log-in has ended is kept for when they are back."""

    @functools.wraps(view)
    def keeping(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated and "do" not in request.POST:
            keep(request, request.path, request.POST, _BACK)
        return view(request, *args, **kwargs)

    return keeping
