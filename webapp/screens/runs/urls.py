"""Addresses of the pages of runs."""

from django.urls import URLPattern, path

from webapp.screens.runs import action_views as actions
from webapp.screens.runs.action_views import bulk, run_invalid, run_valid, trial_invalid, trial_valid
from webapp.screens.runs.live import live, marks, samples_picture, settings, wear
from webapp.screens.runs.trial_views import trial_attachment, trial_page, trial_samples
from webapp.screens.runs.views import run_page, runs_page

urlpatterns: list[URLPattern] = [
    path("runs/", runs_page, name="runs"),
    path("runs/bulk/<slug:action>/", bulk, name="bulk_runs"),
    path("runs/marks/", marks, name="marks"),
    path("runs/<int:number>/", run_page, name="run"),
    path("runs/<int:number>/live/", live, name="run_live"),
    path("runs/<int:number>/samples.svg", samples_picture, name="run_samples"),
    path("runs/<int:number>/wear/", wear, name="run_wear"),
    path("runs/<int:number>/settings/", settings, name="run_settings"),
    path("runs/<int:number>/cancel/", actions.cancel, name="cancel_run"),
    path("runs/<int:number>/pause/", actions.pause, name="pause_run"),
    path("runs/<int:number>/resume/", actions.resume, name="resume_run"),
    path("runs/<int:number>/skip/", actions.skip, name="skip_trials"),
    path("runs/<int:number>/arm/", actions.arm, name="arm_run"),
    path("runs/<int:number>/disarm/", actions.disarm, name="disarm_run"),
    path("runs/<int:number>/again/", actions.again, name="run_again"),
    path("runs/<int:number>/notes/", actions.note, name="add_note"),
    path("runs/<int:number>/notes/<int:note_id>/delete/", actions.remove_note, name="delete_note"),
    path("runs/<int:number>/notes/<int:note_id>/restore/", actions.restore_removed_note, name="restore_note"),
    path("runs/<int:number>/invalid/", run_invalid, name="run_invalid"),
    path("runs/<int:number>/valid/", run_valid, name="run_valid"),
    path("runs/<int:number>/findings/<slug:key>/review/", actions.review, name="review_finding"),
    path("runs/<int:number>/findings/<slug:key>/plan/", actions.plan_check, name="plan_check"),
    path("runs/<int:number>/trials/<int:trial>/", trial_page, name="trial"),
    path("runs/<int:number>/trials/<int:trial>/samples.svg", trial_samples, name="trial_samples"),
    path(
        "runs/<int:number>/trials/<int:trial>/attachments/<int:attachment>/", trial_attachment, name="trial_attachment"
    ),
    path("runs/<int:number>/trials/<int:trial>/invalid/", trial_invalid, name="trial_invalid"),
    path("runs/<int:number>/trials/<int:trial>/valid/", trial_valid, name="trial_valid"),
]
