"""What was done, in words: one line an action of `core.services.audit`. A test finds every action that has none."""

WORDS: dict[str, str] = {
    "plan.create": "made the plan",
    "plan.save": "saved a new version of the plan",
    "plan.delete": "deleted the plan",
    "plan.undelete": "brought back the plan",
    "host.invite": "made the line to add the host",
    "host.enrol": "enrolled the host",
    "host.revoke": "revoked the host",
    "host.invite_withdrawn": "withdrew the line to add the host",
    "host.rename": "renamed the host",
    "host.maintenance": "began maintenance of the host",
    "host.maintenance_end": "ended maintenance of the host",
    "host.rotate_token": "asked for a new token of the host",
    "host.token_renewed": "gave a new token to the host",
    "host.archive": "removed the host",
    "host.bring_back": "brought back the host",
    "host.delete": "deleted the host",
    "host.inventory": "had the host take its inventory",
    "host.purge": "had the host purge the drive",
    "host.purge_stop": "stopped the purge of",
    "host.setting_read": "had the host read a setting of",
    "host.setting_set": "set a setting by hand of",
    "host.setting_put_back": "had the host put back a setting of",
    "host.endurance_rated": "entered the rated endurance of",
    "host.endurance_forgotten": "took away the rated endurance of",
    "server_key.create": "made a new key that signs orders",
    "server_key.retire": "retired a key that signs orders",
    "run.start": "started",
    "run.queue": "moved in the queue",
    "run.arm": "armed, to destroy what is on its drives,",
    "run.disarm": "disarmed",
    "run.pause": "paused",
    "run.resume": "resumed",
    "run.skip": "skipped trials of",
    "run.stop": "stopped a host's part of",
    "run.cancel": "cancelled",
    "run.settings_not_restored": "could not put back settings of",
    "run.invalid": "marked as invalid",
    "run.trusted": "took back the invalid mark of",
    "run.delete": "deleted",
    "trial.invalid": "marked as invalid",
    "trial.trusted": "took back the invalid mark of",
    "comparison.save": "saved the comparison",
    "comparison.change": "changed the comparison",
    "comparison.copy": "copied the comparison",
    "comparison.delete": "deleted the comparison",
    "comparison.restore": "brought back the comparison",
    "note.add": "added a note to",
    "note.delete": "deleted a note of",
    "token.create": "made an API token for",
    "token.revoke": "revoked an API token of",
    "user.create": "added the person",
    "user.role": "changed the role of",
    "user.deactivate": "switched off the account of",
    "user.reactivate": "switched on the account of",
    "user.leave": "removed the person",
    "user.anonymise": "took away the name of",
    "user.password": "set the password of",
    "user.password_link": "made a password link for",
}
AREAS: dict[str, str] = {
    "plan": "Plans",
    "host": "Hosts",
    "server_key": "Server keys",
    "run": "Runs",
    "trial": "Trials",
    "comparison": "Comparisons",
    "note": "Notes",
    "token": "API tokens",
    "user": "People",
}


def in_words(action: str) -> str:
    """The action in words, itself where it has none: an entry of a newer or an older version is shown all the same."""
    return WORDS.get(action, action)


def area_of(action: str) -> str:
    """The first part of an action's name, in words."""
    first = action.partition(".")[0]
    return AREAS.get(first, first.replace("_", " ").capitalize())
