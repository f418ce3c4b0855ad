"""Who may see and do what: everybody who is logged in may look, operators may change."""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET, require_POST

from webapp.core.models import User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(view: View[P]) -> View[P]:
    """A page to look at: GET, logged in."""
    made: View[P] = login_required(require_GET(view))
    return made


def operator_action(view: View[P]) -> View[P]:
    """Something that changes: POST, logged in, operator. Others get 403 in words."""

    @functools.wraps(view)
    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not person(request).is_operator:
            raise PermissionDenied("Your role is viewer: you may look at everything and change nothing.")
        return view(request, *args, **kwargs)

    made: View[P] = login_required(require_POST(checked))
    return made


def person(request: HttpRequest) -> User:
    """The user of a request that has passed `page` or `operator_action`."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user
