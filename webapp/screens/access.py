"""Who may see and do what: everybody who is logged in may look, operators may change, admins manage people.

Each view carries exactly one of these decorators. `webapp/tests/access_table.py` says for every address which,
and a test holds all of them to it.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods

from webapp.core.models import Role, User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
LOG_IN_AGAIN = "Your log-in had ended, so nothing was changed. Log in and do it again."
MAY = {
    Role.VIEWER: "you may look at everything and change nothing",
    Role.OPERATOR: "you may start and change runs, plans and hosts, but not manage people, nor add or remove hosts",
}


class RoleNeeded(PermissionDenied):
    """Somebody is logged in whose role does not reach."""

    def __init__(self, has: Role, needed: Role) -> None:
        super().__init__(f"Your role is {has}: {MAY[has]}. This needs the role {needed}.")
        self.needed = needed


def page(view: View[P]) -> View[P]:
    """A page to look at: GET, logged in."""
    return _guarded(view, Role.VIEWER, "GET", "HEAD")


def own_action(view: View[P]) -> View[P]:
    """Something that changes what is one's own: POST, logged in."""
    return _guarded(view, Role.VIEWER, "POST")


def operator_page(view: View[P]) -> View[P]:
    """A page that viewers do not see: GET, operator."""
    return _guarded(view, Role.OPERATOR, "GET", "HEAD")


def operator_action(view: View[P]) -> View[P]:
    """Something that changes: POST, operator."""
    return _guarded(view, Role.OPERATOR, "POST")


def admin_page(view: View[P]) -> View[P]:
    """A page that only admins see: GET, admin."""
    return _guarded(view, Role.ADMIN, "GET", "HEAD")


def admin_action(view: View[P]) -> View[P]:
    """Something that only admins may change: POST, admin."""
    return _guarded(view, Role.ADMIN, "POST")


def _guarded(view: View[P], needed: Role, *methods: str) -> View[P]:
    """Who is not logged in goes to the log-in, who is but may not gets 403 in words, another method gets 405."""

    @functools.wraps(view)
    def checked(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not isinstance(request.user, User):
            return to_log_in(request)
        if not request.user.has_role(needed):
            raise RoleNeeded(Role(request.user.role), needed)
        return allowed(request, *args, **kwargs)

    allowed: View[P] = require_http_methods(methods)(view)
    return checked


def to_log_in(request: HttpRequest) -> HttpResponse:
    """To the log-in and back. What was sent is not kept: it leads back to the page that it was sent from, in words."""
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    messages.warning(request, LOG_IN_AGAIN)
    return redirect_to_login(_came_from(request))


def _came_from(request: HttpRequest) -> str:
    """The page of ours that sent this request, else the overview."""
    referrer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure()):
        return reverse("overview")
    address = urlsplit(referrer)
    return address._replace(scheme="", netloc="").geturl() or reverse("overview")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403: which role is needed, and who can give it."""
    needed = getattr(exception, "needed", None)
    admins = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("username") if needed else []
    context = {"exception": exception, "needed": needed, "admins": admins}
    return render(request, "403.html", context, status=403)


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django gives it
    """CSRF_FAILURE_VIEW: a form without its token. Where the log-in has ended too, that is what is said."""
    if not request.user.is_authenticated and request.path != reverse("login"):
        return to_log_in(request)
    return render(request, "403_csrf.html", status=403)


def person(request: HttpRequest) -> User:
    """The user of a request that has passed one of the decorators."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user
