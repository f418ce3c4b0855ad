"""Addresses of the pages: each package of pages lists its own."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, path

from webapp.screens.bench.urls import urlpatterns as bench
from webapp.screens.ceilings import ceiling_action
from webapp.screens.explore.urls import urlpatterns as explore
from webapp.screens.hosts.urls import urlpatterns as hosts
from webapp.screens.imports.urls import urlpatterns as imports
from webapp.screens.notices.urls import urlpatterns as notices
from webapp.screens.overview.urls import urlpatterns as overview
from webapp.screens.people.account import Login
from webapp.screens.people.urls import urlpatterns as people
from webapp.screens.plans.urls import urlpatterns as plans
from webapp.screens.queue.urls import urlpatterns as queue
from webapp.screens.rankings.urls import urlpatterns as rankings
from webapp.screens.results.urls import urlpatterns as results
from webapp.screens.runs.urls import urlpatterns as runs
from webapp.screens.schedules.urls import urlpatterns as schedules
from webapp.screens.search.urls import urlpatterns as search
from webapp.screens.storage.urls import urlpatterns as storage
from webapp.screens.trend.urls import urlpatterns as trend

urlpatterns: list[URLPattern] = [
    path("login/", Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("ceilings/", ceiling_action, name="enter_ceiling"),
    *overview,
    *bench,
    *rankings,
    *hosts,
    *plans,
    *queue,
    *schedules,
    *runs,
    *results,
    *explore,
    *trend,
    *imports,
    *people,
    *notices,
    *search,
    *storage,
]
