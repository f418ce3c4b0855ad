"""The sentence of each action of `core.services.audit`. Tests demand one for every action that the code records.

`{object}` is where the object's name goes, with its link.
"""

SENTENCES: dict[str, str] = {
    "plan.create": "created the plan {object}",
    "plan.save": "saved a new version of the plan {object}",
    "plan.delete": "deleted the plan {object}",
    "plan.restore": "restored the plan {object}",
    "host.enrolment_create": "created an enrolment command for the host {object}",
    "host.enrolment_revoke": "revoked the enrolment command for the host {object}",
    "host.enrol": "enrolled the host {object}",
    "host.revoke": "revoked the token of the host {object}",
    "host.rename": "renamed the host {object}",
    "host.maintenance_start": "started maintenance of the host {object}",
    "host.maintenance_end": "ended maintenance of the host {object}",
    "host.rotate_token": "requested a new token for the host {object}",
    "host.token_replace": "replaced the token of the host {object}",
    "host.remove": "removed the host {object}",
    "host.restore": "restored the host {object}",
    "host.delete": "deleted the host {object}",
    "host.inventory": "requested an inventory of the host {object}",
    "host.purge": "requested a purge of {object}",
    "host.purge_stop": "stopped the purge of {object}",
    "host.setting_read": "requested a reading of a setting of {object}",
    "host.setting_set": "changed a setting of {object} by hand",
    "host.setting_restore": "restored a setting of {object} by hand",
    "host.window_add": "added a maintenance window to the host {object}",
    "host.window_delete": "deleted a maintenance window of the host {object}",
    "host.endurance_set": "set the rated endurance of {object}",
    "host.endurance_delete": "deleted the rated endurance of {object}",
    "group.create": "created the host group {object}",
    "group.change": "changed the host group {object}",
    "group.delete": "deleted the host group {object}",
    "server_key.create": "created the order signing key {object}",
    "server_key.retire": "retired the order signing key {object}",
    "run.start": "started {object}",
    "run.move": "moved {object} in the queue",
    "run.arm": "armed {object} to overwrite its drives",
    "run.disarm": "disarmed {object}",
    "run.pause": "paused {object}",
    "run.resume": "resumed {object}",
    "run.skip": "skipped trials of {object}",
    "run.stop_host": "stopped {object} on one host after too many failures",
    "run.cancel": "cancelled {object}",
    "run.settings_not_restored": "could not restore all settings after {object}",
    "run.invalid": "marked the results of {object} as invalid",
    "run.valid": "removed the invalid mark from {object}",
    "run.tag": "changed the tags of {object}",
    "run.delete": "deleted {object}",
    "trial.invalid": "marked the results of {object} as invalid",
    "trial.valid": "removed the invalid mark from {object}",
    "schedule.create": "created the schedule {object}",
    "schedule.change": "changed the schedule {object}",
    "schedule.on": "switched on the schedule {object}",
    "schedule.off": "switched off the schedule {object}",
    "schedule.arm": "armed the schedule {object}",
    "schedule.disarm": "disarmed the schedule {object}",
    "schedule.run_now": "requested an immediate run of the schedule {object}",
    "schedule.skip": "skipped one start of the schedule {object}",
    "schedule.owner": "changed the owner of the schedule {object}",
    "schedule.delete": "deleted the schedule {object}",
    "schedule.restore": "restored the schedule {object}",
    "comparison.create": "saved the comparison {object}",
    "comparison.change": "changed the comparison {object}",
    "comparison.copy": "copied the comparison {object}",
    "comparison.freeze": "froze the numbers of the comparison {object}",
    "comparison.unfreeze": "unfroze the numbers of the comparison {object}",
    "comparison.link": "created a link to the comparison {object}",
    "comparison.link_revoke": "revoked a link to the comparison {object}",
    "comparison.delete": "deleted the comparison {object}",
    "comparison.restore": "restored the comparison {object}",
    "baseline.set": "set the baseline run of {object}",
    "baseline.remove": "removed the baseline run of {object}",
    "import.begin": "began the {object}",
    "import.end": "completed the {object}",
    "import.undo": "deleted the {object} with its results",
    "import.reference": "loaded a reference: {object}",
    "import.reference_removed": "removed a reference: {object}",
    "note.add": "added a note to {object}",
    "note.delete": "deleted a note from {object}",
    "note.restore": "restored a note on {object}",
    "notice.subscribe": "created the subscription {object}",
    "notice.change": "changed the subscription {object}",
    "notice.pause": "paused the subscription {object}",
    "notice.resume": "resumed the subscription {object}",
    "notice.delete": "deleted the subscription {object}",
    "notice.renew_secret": "renewed the secret of the subscription {object}",
    "notice.test": "sent a test notice to the subscription {object}",
    "notice.send_again": "sent a notice again to the subscription {object}",
    "token.create": "created an API token of {object}",
    "token.revoke": "revoked an API token of {object}",
    "user.create": "added {object}",
    "user.role": "changed the role of {object}",
    "user.disable": "disabled the account of {object}",
    "user.enable": "enabled the account of {object}",
    "user.remove": "removed {object}",
    "user.anonymise": "removed the name of {object}",
    "user.password": "set the password of {object}",
    "user.email": "changed the e-mail address of {object}",
    "user.password_link": "created a password link for {object}",
}
AREAS: dict[str, str] = {
    "plan": "Plans",
    "host": "Hosts",
    "group": "Host groups",
    "server_key": "Server keys",
    "run": "Runs",
    "schedule": "Schedules",
    "trial": "Trials",
    "comparison": "Comparisons",
    "baseline": "Baseline runs",
    "import": "Imports",
    "note": "Notes",
    "notice": "Notices",
    "token": "API tokens",
    "user": "People",
}
# Which models the actions of an area are about. `screens.people.audit_links` has a rule for each.
OBJECT_TYPES: dict[str, frozenset[str]] = {
    "plan": frozenset({"plan"}),
    "host": frozenset({"host", "target", "enrolmenttoken"}),
    "group": frozenset({"hostgroup"}),
    "server_key": frozenset({"serverkey"}),
    "run": frozenset({"run"}),
    "schedule": frozenset({"schedule"}),
    "trial": frozenset({"trial"}),
    "comparison": frozenset({"savedcomparison"}),
    "baseline": frozenset({"baseline"}),
    "import": frozenset({"import"}),
    "note": frozenset({"run", "trial"}),
    "notice": frozenset({"subscription"}),
    "token": frozenset({"user"}),
    "user": frozenset({"user"}),
}


def sentence_parts(action: str) -> tuple[str, str]:
    """The text before and after the object. An action that this version does not know is shown by its code."""
    before, _, after = SENTENCES.get(action, f"{action} {{object}}").partition("{object}")
    return before, after


def choice(action: str) -> str:
    """The action as an entry of a list: “Created the plan …”."""
    before, after = sentence_parts(action)
    return f"{before}…{after}"[:1].upper() + f"{before}…{after}"[1:]


def area_of(action: str) -> str:
    """The first part of an action's code, as a heading."""
    first = action.partition(".")[0]
    return AREAS.get(first, first.replace("_", " ").capitalize())
