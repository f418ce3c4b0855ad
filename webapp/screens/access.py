"""Access rules of views: everyone who is logged in may read, operators may change, admins manage people.

Each view has exactly one of these decorators. `webapp/tests/access_table.py` lists the rule for every address, and a
test checks all views against it.
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
LOG_IN_AGAIN = "Your session had ended, so nothing was changed. Log in and try again."
MAY = {
    Role.VIEWER: "you may read everything and change nothing",
    Role.OPERATOR: "you may start and change runs, plans and hosts, but not manage people or add or remove hosts",
}


class RoleNeeded(PermissionDenied):
    """The person is logged in, but the role is not sufficient."""

    def __init__(self, has: Role, needed: Role) -> None:
        super().__init__(f"Your role is {has}: {MAY[has]}. This requires the {needed} role.")
        self.needed = needed


def page(view: View[P]) -> View[P]:
    """A page for everyone: GET, logged in."""
    return _guarded(view, Role.VIEWER, "GET", "HEAD")


def own_action(view: View[P]) -> View[P]:
    """An action on the person's own data: POST, logged in."""
    return _guarded(view, Role.VIEWER, "POST")


def operator_page(view: View[P]) -> View[P]:
    """A page for operators: GET, operator."""
    return _guarded(view, Role.OPERATOR, "GET", "HEAD")


def operator_action(view: View[P]) -> View[P]:
    """An action of operators: POST, operator."""
    return _guarded(view, Role.OPERATOR, "POST")


def admin_page(view: View[P]) -> View[P]:
    """A page for admins: GET, admin."""
    return _guarded(view, Role.ADMIN, "GET", "HEAD")


def admin_action(view: View[P]) -> View[P]:
    """An action of admins: POST, admin."""
    return _guarded(view, Role.ADMIN, "POST")


def _guarded(view: View[P], needed: Role, *methods: str) -> View[P]:
    """Redirect to the log-in without a session, 403 with a reason without the role, 405 for another method."""

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
    """Redirect to the log-in and back. A form's data is lost: a message says so on the page that it was sent from."""
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    messages.warning(request, LOG_IN_AGAIN)
    return redirect_to_login(_came_from(request))


def _came_from(request: HttpRequest) -> str:
    """The page of this site that sent the request, else the overview."""
    referrer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referrer, {request.get_host()}, require_https=request.is_secure()):
        return reverse("overview")
    address = urlsplit(referrer)
    return address._replace(scheme="", netloc="").geturl() or reverse("overview")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403: the required role, and the admins who can assign it."""
    needed = getattr(exception, "needed", None)
    admins = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("username") if needed else []
    context = {"exception": exception, "needed": needed, "admins": admins}
    return render(request, "403.html", context, status=403)


def form_out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django gives it
    """CSRF_FAILURE_VIEW: a form without its token. If the session has ended too, redirect to the log-in."""
    if not request.user.is_authenticated and request.path != reverse("login"):
        return to_log_in(request)
    return render(request, "403_csrf.html", status=403)


def person(request: HttpRequest) -> User:
    """The user of a request that has passed one of the decorators."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user
