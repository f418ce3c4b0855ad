"""The log-in. Tries are counted before the password is checked."""

import math
from datetime import timedelta

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse

from webapp.core.throttle import address_of, count_try, forgive_try


class Login(LoginView):
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        wait = count_try(name=self._name(), address=address_of(request))
        return self._come_back(wait) if wait else super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        forgive_try(name=self._name(), address=address_of(self.request))
        return super().form_valid(form)

    def _name(self) -> str:
        return self.request.POST.get("username", "")

    def _come_back(self, wait: timedelta) -> HttpResponse:
        """The message is the same for unknown accounts and wrong passwords."""
        minutes = max(1, math.ceil(wait.total_seconds() / 60))
        context = self.get_context_data(form=self.get_form_class()(self.request), wait_minutes=minutes)
        response = self.render_to_response(context, status=429)
        response.headers["Retry-After"] = str(math.ceil(wait.total_seconds()))
        return response
