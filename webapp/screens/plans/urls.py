"""Addresses of the pages of plans."""

from django.urls import URLPattern, path

from webapp.screens.plans.editor_views import edit_plan, new_plan, preview_plan
from webapp.screens.plans.views import (
    copy_plan_action,
    delete_plan_action,
    import_plan_page,
    plan_job_file,
    plan_page,
    plan_versions_page,
    plan_yaml,
    plans_page,
    restore_plan_action,
    start_plan,
    undelete_plan_action,
)

urlpatterns: list[URLPattern] = [
    path("plans/", plans_page, name="plans"),
    path("plans/new/", new_plan, name="new_plan"),
    path("plans/import/", import_plan_page, name="import_plan"),
    path("plans/preview/", preview_plan, name="preview_plan"),
    path("plans/<slug:slug>/", plan_page, name="plan"),
    path("plans/<slug:slug>/start/", start_plan, name="start_plan"),
    path("plans/<slug:slug>/edit/", edit_plan, name="edit_plan"),
    path("plans/<slug:slug>/copy/", copy_plan_action, name="copy_plan"),
    path("plans/<slug:slug>/delete/", delete_plan_action, name="delete_plan"),
    path("plans/<slug:slug>/undelete/", undelete_plan_action, name="undelete_plan"),
    path("plans/<slug:slug>/versions/", plan_versions_page, name="plan_versions"),
    path("plans/<slug:slug>/restore/", restore_plan_action, name="restore_plan"),
    path("plans/<slug:slug>/yaml/", plan_yaml, name="plan_yaml"),
    path("plans/<slug:slug>/job-file/", plan_job_file, name="plan_job_file"),
]
