"""Who may do what at which address: one line an address. A new address without a line fails the test of it.

Pages are named by their URL's name, operations of the API by method and path. `what` says with which methods:
`look(role)` is a GET, `act(role)` a POST; an address that does both has both, joined by `|`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class Who(StrEnum):
    """In order; HOST is a worker with its token, which no person is."""

    ANYBODY = "anybody"
    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    HOST = "host"


@dataclass(frozen=True)
class Rule:
    """Who may GET and who may POST; None: nobody, it answers 405."""

    get: Who | None = None
    post: Who | None = None

    def __or__(self, other: "Rule") -> "Rule":
        return replace(self, get=self.get or other.get, post=self.post or other.post)


def look(who: Who) -> Rule:
    return Rule(get=who)


def act(who: Who) -> Rule:
    return Rule(post=who)


PAGES: dict[str, Rule] = {
    # people
    "login": look(Who.ANYBODY) | act(Who.ANYBODY),
    "oidc_login": look(Who.ANYBODY),  # not found without an identity provider
    "oidc_callback": look(Who.ANYBODY),  # likewise
    "logout": act(Who.ANYBODY),
    "set_password": look(Who.ANYBODY) | act(Who.ANYBODY),  # the link itself is what lets in
    "account": look(Who.VIEWER),
    "change_password": act(Who.VIEWER),
    "change_email": act(Who.VIEWER),
    "create_token": act(Who.VIEWER),
    "new_token": look(Who.VIEWER),
    "revoke_token": act(Who.VIEWER),  # one's own; somebody else's is not found
    "people": look(Who.ADMIN),
    "storage": look(Who.ADMIN),
    "add_person": act(Who.ADMIN),
    "person": look(Who.ADMIN),
    "change_role": act(Who.ADMIN),
    "deactivate_person": act(Who.ADMIN),
    "reactivate_person": act(Who.ADMIN),
    "reset_password": act(Who.ADMIN),
    "connect_person": act(Who.ADMIN),
    "password_link": look(Who.ADMIN),
    "remove_person": act(Who.ADMIN),
    "anonymise_person": act(Who.ADMIN),
    "revoke_persons_token": act(Who.ADMIN),
    "audit": look(Who.OPERATOR),
    # search
    "search": look(Who.VIEWER),
    "search_hits": look(Who.VIEWER),
    # overview
    "overview": look(Who.VIEWER),
    # bench
    "bench": look(Who.VIEWER),
    "bench_shares": look(Who.VIEWER),
    "bench_summary": look(Who.VIEWER),
    "bench_csv": look(Who.VIEWER),
    "bench_json": look(Who.VIEWER),
    "bench_parquet": look(Who.VIEWER),
    "bench_plan": act(Who.VIEWER),
    "rankings": look(Who.VIEWER),
    "rankings_csv": look(Who.VIEWER),
    "rankings_json": look(Who.VIEWER),
    "rankings_parquet": look(Who.VIEWER),
    "set_price": act(Who.OPERATOR),
    "enter_ceiling": act(Who.OPERATOR),
    "review_import_finding": act(Who.OPERATOR),
    "product": look(Who.VIEWER),
    # hosts
    "hosts": look(Who.VIEWER),
    "add_host": look(Who.VIEWER),
    "make_enrolment": act(Who.ADMIN),
    "new_host_line": look(Who.ADMIN),
    "enrolment_state": look(Who.VIEWER),
    "withdraw_enrolment": act(Who.ADMIN),
    "host": look(Who.VIEWER),
    "host_log": look(Who.VIEWER),
    "host_differences": look(Who.VIEWER),
    "host_manage": look(Who.VIEWER),
    "host_target": look(Who.VIEWER),
    "host_purge": act(Who.OPERATOR),
    "host_purge_stop": act(Who.OPERATOR),
    "host_setting": act(Who.OPERATOR),
    "host_endurance": act(Who.OPERATOR),
    "host_rename": act(Who.OPERATOR),
    "host_maintenance": act(Who.OPERATOR),
    "host_maintenance_end": act(Who.OPERATOR),
    "host_inventory": act(Who.OPERATOR),
    "host_rotate": act(Who.ADMIN),
    "host_revoke": act(Who.ADMIN),
    "host_remove": act(Who.ADMIN),
    "host_bring_back": act(Who.ADMIN),
    "host_window_weekly": act(Who.OPERATOR),
    "host_window_single": act(Who.OPERATOR),
    "host_window_delete": act(Who.OPERATOR),
    "host_groups": look(Who.VIEWER),
    "new_host_group": look(Who.OPERATOR) | act(Who.OPERATOR),
    "host_group": look(Who.VIEWER) | act(Who.OPERATOR),
    "delete_host_group": act(Who.OPERATOR),
    # plans
    "plans": look(Who.VIEWER),
    "plan": look(Who.VIEWER),
    "start_plan": act(Who.OPERATOR),
    "new_plan": look(Who.VIEWER) | act(Who.OPERATOR),
    "edit_plan": look(Who.VIEWER) | act(Who.OPERATOR),
    "import_plan": look(Who.VIEWER) | act(Who.OPERATOR),
    "preview_plan": act(Who.VIEWER),  # reads a form and touches nothing
    "copy_plan": act(Who.OPERATOR),
    "delete_plan": act(Who.OPERATOR),
    "undelete_plan": act(Who.OPERATOR),
    "plan_versions": look(Who.VIEWER),
    "restore_plan": act(Who.OPERATOR),
    "plan_yaml": look(Who.VIEWER),
    "plan_job_file": look(Who.VIEWER),
    # schedules
    "schedules": look(Who.VIEWER),
    "schedule_calendar": look(Who.VIEWER),
    "new_schedule": look(Who.VIEWER) | act(Who.OPERATOR),
    "preview_schedule": act(Who.VIEWER),  # reads a form and touches nothing
    "schedule": look(Who.VIEWER),
    "edit_schedule": look(Who.VIEWER) | act(Who.OPERATOR),
    "schedule_on": act(Who.OPERATOR),
    "schedule_off": act(Who.OPERATOR),
    "pause_schedule": act(Who.OPERATOR),
    "resume_schedule": act(Who.OPERATOR),
    "skip_next_due": act(Who.OPERATOR),
    "schedule_run_now": act(Who.OPERATOR),
    "delete_schedule": act(Who.OPERATOR),
    "restore_schedule": act(Who.OPERATOR),
    "take_over_schedule": act(Who.OPERATOR),
    "arm_schedule": act(Who.OPERATOR),
    "disarm_schedule": act(Who.OPERATOR),
    "skip_occurrence": act(Who.OPERATOR),
    # runs
    "runs": look(Who.VIEWER),
    "run": look(Who.VIEWER),
    "run_live": look(Who.VIEWER),
    "run_samples": look(Who.VIEWER),
    "run_searches": look(Who.VIEWER),
    "run_wear": look(Who.VIEWER),
    "run_settings": look(Who.VIEWER),
    "marks": look(Who.VIEWER),
    "bulk_runs": act(Who.OPERATOR),
    "cancel_run": act(Who.OPERATOR),
    "restore_note": act(Who.OPERATOR),
    "pause_run": act(Who.OPERATOR),
    "resume_run": act(Who.OPERATOR),
    "skip_trials": act(Who.OPERATOR),
    "arm_run": act(Who.OPERATOR),
    "disarm_run": act(Who.OPERATOR),
    "run_again": act(Who.OPERATOR),
    "add_note": act(Who.OPERATOR),
    "delete_note": act(Who.OPERATOR),
    "trial_attachment": look(Who.VIEWER),
    "queue": look(Who.VIEWER),
    "move_run": act(Who.OPERATOR),
    "review_finding": act(Who.OPERATOR),
    "plan_check": act(Who.OPERATOR),
    "run_invalid": act(Who.OPERATOR),
    "run_valid": act(Who.OPERATOR),
    "trial": look(Who.VIEWER),
    "trial_samples": look(Who.VIEWER),
    "trial_invalid": act(Who.OPERATOR),
    "trial_valid": act(Who.OPERATOR),
    # results
    "results": look(Who.VIEWER),
    "results_columns": act(Who.VIEWER),  # one's own
    "results_csv": look(Who.VIEWER),
    "results_json": look(Who.VIEWER),
    "results_parquet": look(Who.VIEWER),
    # results of other tools
    "imports": look(Who.VIEWER),
    "references": look(Who.VIEWER),
    "import": look(Who.VIEWER),
    "import_test": look(Who.VIEWER),
    "begin_import": act(Who.OPERATOR),
    "add_import_files": act(Who.OPERATOR),  # one's own
    "end_import": act(Who.OPERATOR),  # one's own
    "undo_import": act(Who.OPERATOR),  # one's own; admins anybody's
    "enter_values": act(Who.OPERATOR),
    "preview_import_labels": act(Who.VIEWER),  # stores nothing
    "preview_import_columns": act(Who.VIEWER),  # stores nothing
    # explore
    "explore": look(Who.VIEWER),
    "explore_csv": look(Who.VIEWER),
    "explore_parquet": look(Who.VIEWER),
    "explore_json": look(Who.VIEWER),
    "explore_timeline": look(Who.VIEWER),
    "saved_comparisons": look(Who.VIEWER),
    "saved_comparison": look(Who.VIEWER),
    "save_comparison": act(Who.OPERATOR),
    "change_comparison": act(Who.OPERATOR),
    "copy_comparison": act(Who.OPERATOR),
    "delete_comparison": act(Who.OPERATOR),
    "restore_comparison": act(Who.OPERATOR),
    "comparison_report": look(Who.VIEWER),
    "freeze_comparison": act(Who.OPERATOR),
    "unfreeze_comparison": act(Who.OPERATOR),
    "create_comparison_link": act(Who.OPERATOR),
    "revoke_comparison_link": act(Who.OPERATOR),
    "shared_comparison": look(Who.ANYBODY),  # the token in the address is what lets in
    "shared_chart": look(Who.ANYBODY),  # likewise
    "shared_frame": look(Who.ANYBODY),  # likewise
    # trends
    "trends": look(Who.VIEWER),
    "acceptance": look(Who.VIEWER),
    "acceptance_csv": look(Who.VIEWER),
    "baseline": look(Who.VIEWER),
    "set_baseline": act(Who.OPERATOR),
    "set_import_baseline": act(Who.OPERATOR),
    "remove_baseline": act(Who.OPERATOR),
    # notices: one's own; somebody else's are not found
    "notices": look(Who.VIEWER),
    "add_notice": act(Who.VIEWER),
    "notice": look(Who.VIEWER),
    "change_notice": act(Who.VIEWER),
    "pause_notice": act(Who.VIEWER),
    "resume_notice": act(Who.VIEWER),
    "delete_notice": act(Who.VIEWER),
    "test_notice": act(Who.VIEWER),
    "notice_secret": look(Who.VIEWER),
    "renew_notice_secret": act(Who.VIEWER),
    "send_notice_again": act(Who.VIEWER),
    # workers
    "package-files": look(Who.ANYBODY),  # the command `sweetspot`, without secrets
    "package-file": look(Who.ANYBODY),
    "authority": look(Who.ANYBODY),  # the certificate of a private authority
    "worker-download": look(Who.ANYBODY),  # the worker itself and its installer, without secrets
    "worker-enrol": act(Who.ANYBODY),  # the one-time token is in the message
    "worker-token": act(Who.HOST),
    "worker-hello": act(Who.HOST),
    "worker-report": act(Who.HOST),
    "worker-start": act(Who.HOST),
    # machines that look after this one
    "healthz": look(Who.ANYBODY),
    "healthz-live": look(Who.ANYBODY),
    "metrics": look(Who.ANYBODY),  # on loopback, where the test's client is; elsewhere it takes a token
    # the API's own description
    "api-reference": look(Who.ANYBODY),
    # it reads nothing that is sent, and answers any method alike
    "api:openapi-json": look(Who.ANYBODY) | act(Who.ANYBODY),
    "api:api-root": look(Who.ANYBODY) | act(Who.ANYBODY),
}

API: dict[str, Who] = {
    # people
    "GET storage": Who.ADMIN,
    "GET storage/old-runs": Who.ADMIN,
    "GET people": Who.ADMIN,
    "POST people": Who.ADMIN,
    "GET people/{pk}": Who.ADMIN,
    "DELETE people/{pk}": Who.ADMIN,
    "POST people/{pk}/role": Who.ADMIN,
    "POST people/{pk}/deactivate": Who.ADMIN,
    "POST people/{pk}/reactivate": Who.ADMIN,
    "POST people/{pk}/password-link": Who.ADMIN,
    "POST people/{pk}/connect-external-login": Who.ADMIN,
    "GET people/{pk}/tokens": Who.ADMIN,
    "DELETE people/{pk}/tokens/{token}": Who.ADMIN,
    "POST people/{pk}/anonymise": Who.ADMIN,
    # hosts
    "GET hosts": Who.VIEWER,
    "GET hosts/{slug}": Who.VIEWER,
    "POST hosts/{slug}/rename": Who.OPERATOR,
    "POST hosts/{slug}/maintenance": Who.OPERATOR,
    "DELETE hosts/{slug}/maintenance": Who.OPERATOR,
    "POST hosts/{slug}/inventory": Who.OPERATOR,
    "POST hosts/{slug}/rotate-token": Who.ADMIN,
    "POST hosts/{slug}/revoke": Who.ADMIN,
    "POST hosts/{slug}/bring-back": Who.ADMIN,
    "DELETE hosts/{slug}": Who.ADMIN,
    "GET hosts/{slug}/log": Who.VIEWER,
    "GET enrolments": Who.ADMIN,
    "POST enrolments": Who.ADMIN,
    "DELETE enrolments/{reference}": Who.ADMIN,
    "GET targets": Who.VIEWER,
    "GET hosts/{slug}/windows": Who.VIEWER,
    "POST hosts/{slug}/windows": Who.OPERATOR,
    "DELETE hosts/{slug}/windows/{window_id}": Who.OPERATOR,
    "GET groups": Who.VIEWER,
    "POST groups": Who.OPERATOR,
    "GET groups/{slug}": Who.VIEWER,
    "PUT groups/{slug}": Who.OPERATOR,
    "DELETE groups/{slug}": Who.OPERATOR,
    # plans
    "GET plans": Who.VIEWER,
    "POST plans": Who.OPERATOR,
    "GET plans/{slug}": Who.VIEWER,
    "PUT plans/{slug}": Who.OPERATOR,
    "DELETE plans/{slug}": Who.OPERATOR,
    "GET plans/{slug}/versions": Who.VIEWER,
    "POST plans/{slug}/versions": Who.OPERATOR,
    "POST plans/{slug}/versions/{number}/restore": Who.OPERATOR,
    "GET plans/{slug}/differences": Who.VIEWER,
    "POST plans/{slug}/copy": Who.OPERATOR,
    "GET plans/{slug}/yaml": Who.VIEWER,
    "GET plans/{slug}/job-file": Who.VIEWER,
    "GET plans/{slug}/preview": Who.VIEWER,
    "POST previews": Who.VIEWER,
    "POST plans/{slug}/undelete": Who.OPERATOR,
    "POST job-files": Who.OPERATOR,
    "POST job-files/yaml": Who.VIEWER,
    "GET hosts/{slug}/targets/{target}/purges": Who.VIEWER,
    "POST hosts/{slug}/targets/{target}/purges": Who.OPERATOR,
    "POST hosts/{slug}/targets/{target}/purges/{action}/stop": Who.OPERATOR,
    "GET hosts/{slug}/targets/{target}/settings": Who.VIEWER,
    "POST hosts/{slug}/targets/{target}/settings": Who.OPERATOR,
    "GET hosts/{slug}/targets/{target}/endurance": Who.VIEWER,
    "POST hosts/{slug}/targets/{target}/endurance": Who.OPERATOR,
    "DELETE hosts/{slug}/targets/{target}/endurance": Who.OPERATOR,
    # schedules
    "GET schedules": Who.VIEWER,
    "POST schedules": Who.OPERATOR,
    "POST schedules/preview": Who.OPERATOR,
    "GET schedules/{key}": Who.VIEWER,
    "PUT schedules/{key}": Who.OPERATOR,
    "DELETE schedules/{key}": Who.OPERATOR,
    "POST schedules/{key}/restore": Who.OPERATOR,
    "POST schedules/{key}/on": Who.OPERATOR,
    "POST schedules/{key}/off": Who.OPERATOR,
    "POST schedules/{key}/take-over": Who.OPERATOR,
    "POST schedules/{key}/arm": Who.OPERATOR,
    "POST schedules/{key}/disarm": Who.OPERATOR,
    "POST schedules/{key}/pause": Who.OPERATOR,
    "POST schedules/{key}/resume": Who.OPERATOR,
    "POST schedules/{key}/skip-next": Who.OPERATOR,
    "POST schedules/{key}/run-now": Who.OPERATOR,
    "GET schedules/{key}/occurrences": Who.VIEWER,
    "POST schedules/{key}/occurrences/{occurrence}/skip": Who.OPERATOR,
    # runs
    "GET runs": Who.VIEWER,
    "POST runs": Who.OPERATOR,
    "GET runs/{number}": Who.VIEWER,
    "GET runs/{number}/wait": Who.VIEWER,
    "POST runs/{number}/cancel": Who.OPERATOR,
    "GET runs/{number}/trials": Who.VIEWER,
    "GET runs/{number}/answer": Who.VIEWER,
    "GET findings": Who.VIEWER,
    "GET runs/{number}/findings": Who.VIEWER,
    "PUT runs/{number}/findings/{key}/review": Who.OPERATOR,
    "DELETE runs/{number}/findings/{key}/review": Who.OPERATOR,
    "GET imports/{number}/findings": Who.VIEWER,
    "PUT imports/{number}/findings/{key}/review": Who.OPERATOR,
    "DELETE imports/{number}/findings/{key}/review": Who.OPERATOR,
    "GET runs/{number}/rounds": Who.VIEWER,
    "GET runs/{number}/shares": Who.VIEWER,
    "POST runs/{number}/pause": Who.OPERATOR,
    "POST runs/{number}/resume": Who.OPERATOR,
    "POST runs/{number}/skip": Who.OPERATOR,
    "POST runs/{number}/arm": Who.OPERATOR,
    "POST runs/{number}/disarm": Who.OPERATOR,
    "POST runs/{number}/again": Who.OPERATOR,
    "GET runs/{number}/notes": Who.VIEWER,
    "POST runs/{number}/notes": Who.OPERATOR,
    "DELETE runs/{number}/notes/{note_id}": Who.OPERATOR,
    "GET queue": Who.VIEWER,
    "POST queue/{number}": Who.OPERATOR,
    # results
    "GET results": Who.VIEWER,
    "GET results.parquet": Who.VIEWER,
    "GET trials/{trial_id}": Who.VIEWER,
    "POST trials/{trial_id}/invalid": Who.OPERATOR,
    "DELETE trials/{trial_id}/invalid": Who.OPERATOR,
    "POST runs/{number}/invalid": Who.OPERATOR,
    "DELETE runs/{number}/invalid": Who.OPERATOR,
    "GET trials/{trial_id}/samples": Who.VIEWER,
    "GET trials/{trial_id}/job": Who.VIEWER,
    "GET runs/{number}/wear": Who.VIEWER,
    # results of other tools
    "GET imports": Who.VIEWER,
    "POST imports": Who.OPERATOR,
    "GET imports/{number}": Who.VIEWER,
    "GET imports/{number}/files": Who.VIEWER,
    "POST imports/{number}/files": Who.OPERATOR,  # one's own
    "POST imports/{number}/end": Who.OPERATOR,  # one's own
    "DELETE imports/{number}": Who.OPERATOR,  # one's own; admins anybody's
    # compare
    "GET compare": Who.VIEWER,
    "GET compare.parquet": Who.VIEWER,
    "GET bench": Who.VIEWER,
    "GET rankings": Who.VIEWER,
    "GET comparisons": Who.VIEWER,
    "POST comparisons": Who.OPERATOR,
    "GET comparisons/{pk}": Who.VIEWER,
    "POST comparisons/{pk}": Who.OPERATOR,
    "DELETE comparisons/{pk}": Who.OPERATOR,
    "POST comparisons/{pk}/copy": Who.OPERATOR,
    "POST comparisons/{pk}/undelete": Who.OPERATOR,
    # baseline runs
    "GET baselines": Who.VIEWER,
    "POST baselines": Who.OPERATOR,
    "DELETE baselines/{pk}": Who.OPERATOR,
    "GET runs/{number}/verdict": Who.VIEWER,
    "GET verdict": Who.VIEWER,
    # notices: one's own; somebody else's are not found
    "GET notices/subscriptions": Who.VIEWER,
    "POST notices/subscriptions": Who.VIEWER,
    "GET notices/subscriptions/{pk}": Who.VIEWER,
    "PATCH notices/subscriptions/{pk}": Who.VIEWER,
    "DELETE notices/subscriptions/{pk}": Who.VIEWER,
    "POST notices/subscriptions/{pk}/test": Who.VIEWER,
    "POST notices/subscriptions/{pk}/secret": Who.VIEWER,
    "GET notices/deliveries": Who.VIEWER,
    "POST notices/deliveries/{delivery}/again": Who.VIEWER,
}
