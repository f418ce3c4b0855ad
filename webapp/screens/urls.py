"""Addresses of the pages."""

from collections.abc import Callable, Iterator

from django.contrib.auth.views import LogoutView
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from webapp.screens import ceilings, notices, search, storage
from webapp.screens.bench import picker, product_page, summary
from webapp.screens.bench import views as bench_views
from webapp.screens.explore import saved, share
from webapp.screens.explore import views as explore_views
from webapp.screens.hosts import groups, inventory_comparison, manage, target_page
from webapp.screens.hosts import views as hosts
from webapp.screens.imports import upload_views
from webapp.screens.imports import views as imports
from webapp.screens.overview import views as overview
from webapp.screens.people import account, audit
from webapp.screens.people import views as people
from webapp.screens.plans import editor_views
from webapp.screens.plans import views as plans
from webapp.screens.rankings import views as rankings
from webapp.screens.results import views as results
from webapp.screens.runs import action_views as run_actions
from webapp.screens.runs import live, trial_views
from webapp.screens.runs import views as runs
from webapp.screens.schedules import calendar_view, form_views
from webapp.screens.schedules import views as schedules
from webapp.screens.trend import acceptance_views
from webapp.screens.trend import views as trends


def _files(
    page: str, view: Callable[..., HttpResponseBase], endings: tuple[str, ...] = ("csv", "json", "parquet")
) -> Iterator[URLPattern]:
    """What a page shows, as files: `bench.csv`, named `bench_csv`."""
    for ending in endings:
        yield path(f"{page}.{ending}", view, {"ending": ending}, name=f"{page}_{ending}")


urlpatterns: list[URLPattern] = [
    path("login/", account.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("ceilings/", ceilings.ceiling_action, name="enter_ceiling"),
    # Overview
    path("", overview.overview_page, name="overview"),
    # Bench and pages of products
    path("bench/", bench_views.bench_page, name="bench"),
    path("bench/shares.json", picker.bench_shares, name="bench_shares"),
    path("bench/summary/", summary.bench_summary, name="bench_summary"),
    *_files("bench", bench_views.bench_file),
    path("bench/plan/", bench_views.plan_missing, name="bench_plan"),
    path("products/price/", bench_views.price_action, name="set_price"),
    path("products/<str:kind>/<path:value>/", product_page.product_page, name="product"),
    # Rankings
    path("rankings/", rankings.rankings_page, name="rankings"),
    *_files("rankings", rankings.rankings_file),
    # Hosts, their targets and groups
    path("hosts/", hosts.hosts_page, name="hosts"),
    path("hosts/add/", manage.add_host, name="add_host"),
    path("hosts/add/line/", manage.make_enrolment, name="make_enrolment"),
    path("hosts/add/<slug:reference>/", manage.new_host_line, name="new_host_line"),
    path("hosts/add/<slug:reference>/state/", manage.enrolment_state, name="enrolment_state"),
    path("hosts/add/<slug:reference>/withdraw/", manage.withdraw, name="withdraw_enrolment"),
    path("groups/", groups.groups_page, name="host_groups"),
    path("groups/new/", groups.new_group, name="new_host_group"),
    path("groups/<slug:slug>/", groups.group, name="host_group"),
    path("groups/<slug:slug>/delete/", groups.delete, name="delete_host_group"),
    path("hosts/<slug:slug>/", hosts.host_page, name="host"),
    path("hosts/<slug:slug>/log/", hosts.worker_log, name="host_log"),
    path("hosts/<slug:slug>/targets/<str:target>/", target_page.target_page, name="host_target"),
    path("hosts/<slug:slug>/targets/<str:target>/purge/", target_page.purge, name="host_purge"),
    path("hosts/<slug:slug>/targets/<str:target>/purge/<int:action>/stop/", target_page.stop, name="host_purge_stop"),
    path("hosts/<slug:slug>/targets/<str:target>/setting/", target_page.setting, name="host_setting"),
    path("hosts/<slug:slug>/targets/<str:target>/endurance/", target_page.endurance, name="host_endurance"),
    path("hosts/<slug:slug>/differences/", inventory_comparison.host_differences, name="host_differences"),
    path("hosts/<slug:slug>/manage/", manage.manage_page, name="host_manage"),
    path("hosts/<slug:slug>/rename/", manage.rename, name="host_rename"),
    path("hosts/<slug:slug>/maintenance/", manage.maintenance, name="host_maintenance"),
    path("hosts/<slug:slug>/inventory/", manage.inventory, name="host_inventory"),
    path("hosts/<slug:slug>/maintenance/end/", manage.maintenance_end, name="host_maintenance_end"),
    path("hosts/<slug:slug>/windows/weekly/", manage.add_weekly, name="host_window_weekly"),
    path("hosts/<slug:slug>/windows/single/", manage.add_single, name="host_window_single"),
    path("hosts/<slug:slug>/windows/<int:window_id>/delete/", manage.delete, name="host_window_delete"),
    path("hosts/<slug:slug>/rotate/", manage.rotate, name="host_rotate"),
    path("hosts/<slug:slug>/revoke/", manage.revoke, name="host_revoke"),
    path("hosts/<slug:slug>/remove/", manage.remove, name="host_remove"),
    path("hosts/<slug:slug>/bring-back/", manage.bring_back_host, name="host_bring_back"),
    # Plans
    path("plans/", plans.plans_page, name="plans"),
    path("plans/new/", editor_views.new_plan, name="new_plan"),
    path("plans/import/", plans.import_plan_page, name="import_plan"),
    path("plans/preview/", editor_views.preview_plan, name="preview_plan"),
    path("plans/<slug:slug>/", plans.plan_page, name="plan"),
    path("plans/<slug:slug>/start/", plans.start_plan, name="start_plan"),
    path("plans/<slug:slug>/edit/", editor_views.edit_plan, name="edit_plan"),
    path("plans/<slug:slug>/copy/", plans.copy_plan_action, name="copy_plan"),
    path("plans/<slug:slug>/delete/", plans.delete_plan_action, name="delete_plan"),
    path("plans/<slug:slug>/undelete/", plans.undelete_plan_action, name="undelete_plan"),
    path("plans/<slug:slug>/versions/", plans.plan_versions_page, name="plan_versions"),
    path("plans/<slug:slug>/restore/", plans.restore_plan_action, name="restore_plan"),
    path("plans/<slug:slug>/yaml/", plans.plan_yaml, name="plan_yaml"),
    path("plans/<slug:slug>/job-file/", plans.plan_job_file, name="plan_job_file"),
    # Queue
    path("queue/", run_actions.queue_page, name="queue"),
    path("queue/<int:number>/move/", run_actions.move_run, name="move_run"),
    # Schedules
    path("schedules/", schedules.schedules_page, name="schedules"),
    path("schedules/calendar/", calendar_view.calendar_page, name="schedule_calendar"),
    path("schedules/new/", form_views.new_schedule, name="new_schedule"),
    path("schedules/preview/", form_views.preview_schedule, name="preview_schedule"),
    path("schedules/<int:pk>/", schedules.schedule_page, name="schedule"),
    path("schedules/<int:pk>/edit/", form_views.edit_schedule, name="edit_schedule"),
    path("schedules/<int:pk>/on/", schedules.turn_on, name="schedule_on"),
    path("schedules/<int:pk>/off/", schedules.turn_off, name="schedule_off"),
    path("schedules/<int:pk>/pause/", schedules.pause, name="pause_schedule"),
    path("schedules/<int:pk>/resume/", schedules.resume, name="resume_schedule"),
    path("schedules/<int:pk>/skip-next/", schedules.skip_next_due, name="skip_next_due"),
    path("schedules/<int:pk>/run/", schedules.run_now, name="schedule_run_now"),
    path("schedules/<int:pk>/delete/", schedules.delete, name="delete_schedule"),
    path("schedules/<int:pk>/restore/", schedules.restore, name="restore_schedule"),
    path("schedules/<int:pk>/take-over/", schedules.take_over, name="take_over_schedule"),
    path("schedules/<int:pk>/arm/", schedules.arm, name="arm_schedule"),
    path("schedules/<int:pk>/disarm/", schedules.disarm, name="disarm_schedule"),
    path("schedules/<int:pk>/occurrences/<uuid:occurrence>/skip/", schedules.skip, name="skip_occurrence"),
    # Runs and trials
    path("runs/", runs.runs_page, name="runs"),
    path("runs/bulk/<slug:action>/", run_actions.bulk, name="bulk_runs"),
    path("runs/marks/", live.marks, name="marks"),
    path("runs/<int:number>/", runs.run_page, name="run"),
    path("runs/<int:number>/live/", live.live, name="run_live"),
    path("runs/<int:number>/samples.svg", live.samples_picture, name="run_samples"),
    path("runs/<int:number>/wear/", live.wear, name="run_wear"),
    path("runs/<int:number>/searches/", live.searches, name="run_searches"),
    path("runs/<int:number>/settings/", live.settings, name="run_settings"),
    path("runs/<int:number>/cancel/", run_actions.cancel, name="cancel_run"),
    path("runs/<int:number>/pause/", run_actions.pause, name="pause_run"),
    path("runs/<int:number>/resume/", run_actions.resume, name="resume_run"),
    path("runs/<int:number>/skip/", run_actions.skip, name="skip_trials"),
    path("runs/<int:number>/arm/", run_actions.arm, name="arm_run"),
    path("runs/<int:number>/disarm/", run_actions.disarm, name="disarm_run"),
    path("runs/<int:number>/again/", run_actions.again, name="run_again"),
    path("runs/<int:number>/notes/", run_actions.note, name="add_note"),
    path("runs/<int:number>/notes/<int:note_id>/delete/", run_actions.remove_note, name="delete_note"),
    path("runs/<int:number>/notes/<int:note_id>/restore/", run_actions.restore_removed_note, name="restore_note"),
    path("runs/<int:number>/invalid/", run_actions.run_invalid, name="run_invalid"),
    path("runs/<int:number>/valid/", run_actions.run_valid, name="run_valid"),
    path("runs/<int:number>/findings/<slug:key>/review/", run_actions.review, name="review_finding"),
    path("runs/<int:number>/findings/<slug:key>/plan/", run_actions.plan_check, name="plan_check"),
    path("runs/<int:number>/trials/<int:trial>/", trial_views.trial_page, name="trial"),
    path("runs/<int:number>/trials/<int:trial>/samples.svg", trial_views.trial_samples, name="trial_samples"),
    path(
        "runs/<int:number>/trials/<int:trial>/attachments/<int:attachment>/",
        trial_views.trial_attachment,
        name="trial_attachment",
    ),
    path("runs/<int:number>/trials/<int:trial>/invalid/", run_actions.trial_invalid, name="trial_invalid"),
    path("runs/<int:number>/trials/<int:trial>/valid/", run_actions.trial_valid, name="trial_valid"),
    # Results
    path("results/", results.results_page, name="results"),
    path("results/columns/", results.keep_columns, name="results_columns"),
    *_files("results", results.results_file),
    # Explore, saved comparisons and shared ones
    path("explore/", explore_views.explore_page, name="explore"),
    path("explore/timeline.json", explore_views.explore_timeline, name="explore_timeline"),
    *_files("explore", explore_views.explore_file, ("csv", "parquet")),
    path("explore.json", explore_views.explore_json, name="explore_json"),
    path("comparisons/", saved.saved_list, name="saved_comparisons"),
    path("comparisons/save/", saved.save_action, name="save_comparison"),
    path("comparisons/<int:pk>/", saved.saved_page, name="saved_comparison"),
    path("comparisons/<int:pk>/change/", saved.change_action, name="change_comparison"),
    path("comparisons/<int:pk>/copy/", saved.copy_action, name="copy_comparison"),
    path("comparisons/<int:pk>/delete/", saved.delete_action, name="delete_comparison"),
    path("comparisons/<int:pk>/restore/", saved.restore_action, name="restore_comparison"),
    path("comparisons/<int:pk>/report/", share.report_page, name="comparison_report"),
    path("comparisons/<int:pk>/freeze/", share.freeze_action, name="freeze_comparison"),
    path("comparisons/<int:pk>/unfreeze/", share.unfreeze_action, name="unfreeze_comparison"),
    path("comparisons/<int:pk>/links/", share.create_link_action, name="create_comparison_link"),
    path("comparisons/<int:pk>/links/<int:link>/revoke/", share.revoke_link_action, name="revoke_comparison_link"),
    path("shared/<str:token>/chart.svg", share.shared_chart, name="shared_chart"),
    path("shared/<str:token>/frame/", share.shared_frame, name="shared_frame"),
    path("shared/<str:token>/", share.shared_page, name="shared_comparison"),
    # Trends, acceptance tests and baselines
    path("trends/", trends.trend_page, name="trends"),
    path("trends/acceptance/", acceptance_views.acceptance_page, name="acceptance"),
    path("trends/acceptance.csv", acceptance_views.acceptance_file, name="acceptance_csv"),
    path("trends/baselines/", trends.set_baseline_run, name="set_baseline"),
    path("trends/baselines/import/", trends.set_import, name="set_import_baseline"),
    path("trends/baselines/<int:pk>/", trends.baseline_page, name="baseline"),
    path("trends/baselines/<int:pk>/remove/", trends.remove_baseline_run, name="remove_baseline"),
    # Imports and references
    path("imports/", imports.imports_page, name="imports"),
    path("references/", imports.references_page, name="references"),
    path("imports/new/", upload_views.begin_import_action, name="begin_import"),
    path("imports/values/", imports.enter_values_action, name="enter_values"),
    path("imports/labels/", upload_views.preview_import_labels, name="preview_import_labels"),
    path("imports/columns/", upload_views.preview_import_columns, name="preview_import_columns"),
    path("imports/<int:number>/", imports.import_page, name="import"),
    path("imports/<int:number>/tests/<int:test>/", imports.import_test_page, name="import_test"),
    path("imports/<int:number>/files/", upload_views.add_import_files, name="add_import_files"),
    path("imports/<int:number>/end/", upload_views.end_import_action, name="end_import"),
    path("imports/<int:number>/findings/<slug:key>/review/", imports.review_action, name="review_import_finding"),
    path("imports/<int:number>/undo/", upload_views.undo_import_action, name="undo_import"),
    # People and one's own account
    path("login/oidc/", account.ToProvider.as_view(), name="oidc_login"),
    path("login/oidc/callback/", account.FromProvider.as_view(), name="oidc_callback"),
    path("people/", people.people_page, name="people"),
    path("people/add/", people.add_person, name="add_person"),
    path("people/<int:pk>/", people.person_page, name="person"),
    path("people/<int:pk>/role/", people.change_role, name="change_role"),
    path("people/<int:pk>/deactivate/", people.deactivate, name="deactivate_person"),
    path("people/<int:pk>/reactivate/", people.reactivate, name="reactivate_person"),
    path("people/<int:pk>/remove/", people.remove, name="remove_person"),
    path("people/<int:pk>/anonymise/", people.anonymise, name="anonymise_person"),
    path("people/<int:pk>/password/", people.reset_password, name="reset_password"),
    path("people/<int:pk>/password/link/", people.password_link, name="password_link"),
    path("people/<int:pk>/connect/", people.connect, name="connect_person"),
    path("people/<int:pk>/tokens/<uuid:token>/revoke/", people.revoke_persons_token, name="revoke_persons_token"),
    path("audit/", audit.audit_page, name="audit"),
    path("account/", account.account_page, name="account"),
    path("account/password/", account.change_password, name="change_password"),
    path("account/email/", account.change_email, name="change_email"),
    path("account/tokens/", account.create_token, name="create_token"),
    path("account/tokens/new/", account.new_token, name="new_token"),
    path("account/tokens/<uuid:token>/revoke/", account.revoke_token, name="revoke_token"),
    path("set-password/<uidb64>/<token>/", account.SetPasswordView.as_view(), name="set_password"),
    # Notices
    path("notices/", notices.notices_page, name="notices"),
    path("notices/add/", notices.add, name="add_notice"),
    path("notices/<int:pk>/", notices.notice_page, name="notice"),
    path("notices/<int:pk>/change/", notices.change, name="change_notice"),
    path("notices/<int:pk>/pause/", notices.pause, name="pause_notice"),
    path("notices/<int:pk>/resume/", notices.resume, name="resume_notice"),
    path("notices/<int:pk>/delete/", notices.delete, name="delete_notice"),
    path("notices/<int:pk>/test/", notices.test, name="test_notice"),
    path("notices/<int:pk>/secret/", notices.secret_page, name="notice_secret"),
    path("notices/<int:pk>/secret/renew/", notices.renew, name="renew_notice_secret"),
    path("notices/deliveries/<uuid:delivery>/again/", notices.send_one_again, name="send_notice_again"),
    # Search
    path("search/", search.search_page, name="search"),
    path("search/hits/", search.search_hits, name="search_hits"),
    # Storage
    path("storage/", storage.storage_page, name="storage"),
]
