"""Reasons for changes of state: a code and fields are stored, the sentence is built when it is shown.

The field `message` is text reported by the worker and is shown unchanged. The
field `on_host` names the host that ended a trial on several hosts. The fields never contain a person: the row
refers to the person, and `by` is the person's current name.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from webapp.core.windows import local_time

Fields = Mapping[str, Any]  # plain JSON

WINDOW_CLOSED = "window_closed"
AT_DEADLINE = "cancelled_at_deadline"
OTHER_HOST = "other_host"


def sentence(code: str, fields: Fields, by: str = "") -> str:
    """The reason as a sentence; "" if unknown. `by` is the person who acted, "" for the server."""
    if "message" in fields:
        words = str(fields["message"])
    else:
        words = _SENTENCES[code]({**fields, "by": by}) if code in _SENTENCES else ""
    if "on_host" in fields:
        words = f"{fields['on_host']}: {words}"
    if fields.get("not_retried"):
        words += " The trial overwrites its target, so it is not retried automatically: start a new run."
    return words


def message_fields(message: str) -> Fields:
    """The fields of a reason reported by the worker."""
    return {"message": message} if message else {}


def codes_saying(text: str) -> list[str]:
    """Codes whose sentence contains a text for any fields. For searches."""
    return [code for code, words in _PLAIN.items() if text.lower() in words.lower()]


def _skipped(fields: Fields) -> str:
    if fields.get("all"):
        return "All trials of the run were skipped."
    why = fields.get("why", "")
    return f"Skipped by {fields['by'] or 'the system'}" + (f": {why}" if why else ".")


def _lease_expired(fields: Fields) -> str:
    accepted = "The order was accepted" if fields.get("accepted") else "The order was not accepted"
    return f"{accepted}, and the worker sent no report before the lease ended."


def _stopped(fields: Fields) -> str:
    if "preparations" in fields:
        return _stopped_unprepared(fields)
    failures, host = fields["failures"], fields["host"]
    what = "1 trial" if failures == 1 else f"{failures} trials in a row"
    return f"Not started: {what} failed on {host}, the failure limit of the plan."


def _stopped_unprepared(fields: Fields) -> str:
    times, target = fields["preparations"], fields["target"]
    trials = "1 trial of the part" if times == 1 else f"{times} trials of the part"
    return f"Not started: {trials} on {target} ended before the measurement, so its steps with `once` are not repeated."


def _spread_known(fields: Fields) -> str:
    repeats, percent = fields["repeats"], fields["percent"]
    known = f"the 95 % interval of the bandwidth of every point here is within ±{percent} %"
    return f"Not needed: after {repeats} repeats, {known}."


def _decided(fields: Fields) -> str:
    repeats, percent = fields["repeats"], fields["percent"]
    decided = f"the levels that are compared at this point differ, or are equal within ±{percent} %"
    return f"Not needed: after {repeats} repeats, {decided}."


def _rounds_steady(fields: Fields) -> str:
    return f"Not needed: after {fields['rounds']} rounds, the tracked points are steady after SNIA PTS 2.0."


def _stopped_by_failures(fields: Fields) -> str:
    return f"Too many trials failed: {fields['unstarted']} of {fields['trials']} were not started."


def _settings_not_restored(fields: Fields) -> str:
    hosts = (f"{host['host']}: {sentence(host['code'], host['fields'])}" for host in fields["hosts"])
    return f"Settings were not restored. {'; '.join(hosts)}"


def _at_deadline(fields: Fields) -> str:
    end = local_time(datetime.fromisoformat(fields["deadline"]), fields["time_zone"])
    return f"Schedule “{fields['schedule']}” cancelled the run at its deadline, {end}."


_PLAIN: Mapping[str, str] = {
    "cancelled": "A person cancelled the run.",
    "run_cancelled": "The run was cancelled.",
    "run_cancelled_before": "The run was cancelled before this trial started.",
    "no_trial_done": "No trial of the run was completed. Each failed trial has its own reason.",
    "host_revoked": "The host was revoked.",
    "not_on_host": "The host took the order but no longer has it, e.g. because the server was restored from a backup.",
    "no_maximum": "Not started: no `max` trial of this point has a valid result, from which the rate would follow.",
    "rate_too_low": "Not started: this share of the maximum is less than one I/O per second.",
    OTHER_HOST: "Stopped, because the trial ended early on another host.",
    "revived": "The lost attempt reported again.",
    "no_time": "Not needed: the remaining time of the budget is for the final rounds of the search.",
}
_SENTENCES: Mapping[str, Callable[[Fields], str]] = {
    **{code: lambda _, words=words: words for code, words in _PLAIN.items()},  # type: ignore[misc]
    "paused": lambda fields: f"{fields['by'] or 'The system'} paused the run.",
    "resumed": lambda fields: f"{fields['by'] or 'The system'} resumed the run.",
    "skipped": _skipped,
    "lease_expired": _lease_expired,
    "spread_known": _spread_known,
    "decided": _decided,
    "rounds_steady": _rounds_steady,
    "stopped": _stopped,
    "stopped_by_failures": _stopped_by_failures,
    "settings_not_restored": _settings_not_restored,
    AT_DEADLINE: _at_deadline,
    WINDOW_CLOSED: lambda fields: f"The window of its schedule is closed ({fields['window']}).",
}
