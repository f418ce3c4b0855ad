"""Addresses of the pages."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, path

from webapp.screens.compare.views import compare_page
from webapp.screens.hosts.views import add_host, host_page, hosts_page
from webapp.screens.overview.views import overview_page
from webapp.screens.plans.views import plan_page, plans_page, start_plan
from webapp.screens.results.views import results_csv, results_page
from webapp.screens.runs.live_views import live
from webapp.screens.runs.trial_views import trial_page
from webapp.screens.runs.views import cancel, run_page, runs_page

urlpatterns: list[URLPattern] = [
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("", overview_page, name="overview"),
    path("hosts/", hosts_page, name="hosts"),
    path("hosts/add/", add_host, name="add_host"),
    path("hosts/<slug:slug>/", host_page, name="host"),
    path("plans/", plans_page, name="plans"),
    path("plans/<slug:slug>/", plan_page, name="plan"),
    path("plans/<slug:slug>/start/", start_plan, name="start_plan"),
    path("runs/", runs_page, name="runs"),
    path("runs/<int:number>/", run_page, name="run"),
    path("runs/<int:number>/live/", live, name="run_live"),
    path("runs/<int:number>/cancel/", cancel, name="cancel_run"),
    path("runs/<int:number>/trials/<int:index>/", trial_page, name="trial"),
    path("results/", results_page, name="results"),
    path("results.csv", results_csv, name="results_csv"),
    path("compare/", compare_page, name="compare"),
]
