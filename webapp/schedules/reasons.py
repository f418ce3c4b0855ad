"""Why an occurrence waits or was missed, and why a schedule is off: stored as a code and fields, shown as a sentence.

The field `message` is a refusal of the run, shown unchanged. A person is never in the fields: the row refers to the
person, and `by` is the name that the person has now. Notices are stored as text and name no person.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from webapp.core.models import User
from webapp.core.windows import local_time
from webapp.runs.reasons import Fields

NOT_ARMED = "not_armed"
OWNER_LOST_RIGHTS = "owner_lost_rights"
ARMER_LOST_RIGHTS = "armer_lost_rights"
OFF_COLUMNS = ("off_code", "off_fields", "off_person")  # of Schedule
NOT_FOLLOWED = "run_before_not_done"


@dataclass(frozen=True)
class Reason:
    """`by` is the person who caused it; None: the server."""

    code: str
    fields: dict[str, Any] = field(default_factory=dict)
    by: User | None = None

    def __str__(self) -> str:
        """Without the person's name."""
        return sentence(self.code, self.fields)

    def as_fields(self) -> dict[str, Any]:
        """As part of another reason."""
        return {"code": self.code, "fields": self.fields}


class HasTimeZone(Protocol):
    """A schedule."""

    time_zone: str


def timed(code: str, of: HasTimeZone, **fields: Any) -> Reason:
    """A reason with times, shown in the schedule's time zone."""
    plain = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}
    return Reason(code, plain | {"time_zone": of.time_zone})


def sentence(code: str, fields: Fields, by: str = "") -> str:
    """The reason as text; "" without a reason. `by`: the person who acted, "" if nobody is named."""
    if "message" in fields:
        return str(fields["message"])
    if code not in _SENTENCES:
        return ""
    return _SENTENCES[code]({**fields, "by": by or "A person", "name": f" {by}" if by else ""})


def _time(fields: Fields, name: str) -> str:
    return local_time(datetime.fromisoformat(fields[name]), fields["time_zone"])


def _scheduler_down(fields: Fields) -> str:
    words = f"The scheduler did not run from {_time(fields, 'since')} to {_time(fields, 'until')}."
    if fields.get("followed"):
        words += " Only the latest due time can still start."
    if more := fields.get("not_listed"):
        words += f" At least {more:,} due times before this one were missed too; they are not listed."
    return words


def _earlier(fields: Fields) -> str:
    if "run" in fields:
        return f"Run {fields['run']} of this schedule"
    return f"The occurrence due {_time(fields, 'due')}"


def _late(fields: Fields) -> str:
    waited = fields.get("waited_for")
    why = f" {sentence(waited['code'], waited['fields'])}" if waited else ""
    return f"It could not start by its latest start, {_time(fields, 'latest')}.{why}"


def _followed(fields: Fields) -> str:
    ended = "failed" if fields.get("state") == "failed" else "was cancelled"
    if "schedule" not in fields:
        return f"It follows run {fields['run']}, which {ended}."
    if "run" in fields:
        return f"It follows schedule “{fields['schedule']}”, whose run {fields['run']} {ended}."
    because = sentence(fields["because"]["code"], fields["because"]["fields"])
    return f"It follows schedule “{fields['schedule']}”, which did not run: {because}"


def _armer(fields: Fields) -> str:
    how = {"removed": "was removed", "disabled": "was deactivated"}.get(fields["how"], f"is now a {fields['how']}")
    return f"It was armed by {fields['name'].strip() or 'a person'}, who {how}."


def _not_armed(fields: Fields) -> str:
    if "drives" not in fields:
        return "It overwrites drives and is not armed."
    ended = f"The arming ended {_time(fields, 'ended')}." if "ended" in fields else "The schedule is not armed."
    return f"{ended} The run would overwrite {fields['drives']}."


_SENTENCES: Mapping[str, Callable[[Fields], str]] = {
    # Missed.
    "scheduler_down": _scheduler_down,
    NOT_FOLLOWED: _followed,
    "plan_deleted": lambda fields: f"The plan “{fields['plan']}” was deleted.",
    "owner_left": lambda fields: f"The owner of the schedule{fields['name']} may no longer start runs.",
    "requester_left": lambda _: "The person who chose “Run now” may no longer start runs.",
    "deadline_passed": lambda fields: f"Its deadline, {_time(fields, 'deadline')}, passed before it could start.",
    "still_going": lambda fields: f"{_earlier(fields)} {'had not ended' if 'run' in fields else 'was still waiting'}.",
    "latest_start_passed": _late,
    "group_empty": lambda fields: f"The host group “{fields['group']}” has no hosts.",
    "left_group": lambda fields: f"{fields['host']} is no longer in the group.",
    "changed": lambda fields: f"{fields['by']} changed the plan or the targets of the schedule.",
    "switched_off": lambda fields: f"{fields['by']} switched the schedule off.",
    "deleted": lambda fields: f"{fields['by']} deleted the schedule.",
    "skipped": lambda fields: f"{fields['by']} skipped it.",
    # Missed, and why a schedule is off.
    NOT_ARMED: _not_armed,
    OWNER_LOST_RIGHTS: lambda fields: f"Its owner{fields['name']} may no longer run it.",
    ARMER_LOST_RIGHTS: _armer,
    # Waiting.
    "not_due": lambda fields: f"It is due {_time(fields, 'due')}.",
    "host_before": lambda _: "The run of another host of the group must end first.",
    "run_before": lambda fields: f"{_earlier(fields)} {'has not ended' if 'run' in fields else 'is still waiting'}.",
    "window_opens": lambda fields: f"The window opens {_time(fields, 'opens')}.",
    "window_over": lambda _: "The window does not open again.",
}
