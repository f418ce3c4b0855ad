"""The log-in. Tries are counted before the password is checked."""

import math
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from webapp.core.throttle import address_of, count_try, forgive_try, password_slot

BUSY = timedelta(seconds=5)  # until one of the other log-ins is over


class Login(LoginView):
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(**context, has_provider=bool(settings.OIDC_ISSUER))

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        with password_slot() as free:
            if not free:
                return self.come_back(BUSY, busy=True)
            wait = count_try(name=self._name(), address=address_of(request))
            return self.come_back(wait) if wait else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        forgive_try(name=self._name(), address=address_of(self.request))
        self.request.session.set_expiry(None)  # a draft from before has a shorter one
        return super().form_valid(form)

    def _name(self) -> str:
        return self.request.POST.get("username", "")

    def come_back(self, wait: timedelta, *, busy: bool = False) -> HttpResponse:
        """The message is the same for unknown accounts and wrong passwords."""
        minutes = max(1, math.ceil(wait.total_seconds() / 60))
        context = self.get_context_data(form=self.get_form_class()(self.request), wait_minutes=minutes, busy=busy)
        response = self.render_to_response(context, status=503 if busy else 429)
        response.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return response
