"""Notices about schedules: a due time was missed, a run is late, a schedule was switched off."""

from datetime import datetime
from zoneinfo import ZoneInfo

from webapp.notices.models import Event
from webapp.notices.services import announce
from webapp.schedules.models import Occurrence, Schedule


def local_time(schedule: Schedule, at: datetime) -> str:
    """“2026-03-29 03:00 (Europe/Berlin)”: in the schedule's time zone."""
    return f"{at.astimezone(ZoneInfo(schedule.time_zone)):%Y-%m-%d %H:%M} ({schedule.time_zone})"


def notify_missed(schedule: Schedule, due_at: datetime, *, key: str, count: int, reason: str) -> None:
    """Tell subscribers that one or several due times were missed, the latest at `due_at`. The same `key` once."""
    due = local_time(schedule, due_at)
    text = f"Schedule “{schedule}” did not start its run due {due}. {reason}"
    if count > 1:
        text += f" {count:,} due times were missed."
    announce(
        event=Event.MISSED,
        plan=schedule.version.plan,
        key=f"missed:{key}",
        subject=f"Missed: {schedule}, due {due}",
        text=text,
        path=f"/schedules/{schedule.pk}/",
        detail={"schedule": schedule.name, "due_at": due_at.isoformat(), "missed": count, "reason": reason},
    )


def notify_late(occurrence: Occurrence, deadline: datetime) -> None:
    """Tell subscribers that a run has passed its deadline."""
    schedule, run = occurrence.schedule, occurrence.run
    assert run is not None
    end = local_time(schedule, deadline)
    announce(
        event=Event.LATE,
        plan=schedule.version.plan,
        key=f"late:{occurrence.pk}",
        subject=f"Late: run {run.number} of schedule {schedule}",
        text=f"Run {run.number} of schedule “{schedule}” has not ended by its deadline, {end}.",
        path=f"/runs/{run.number}/",
        detail={"schedule": schedule.name, "run": run.number, "deadline": deadline.isoformat()},
    )


def notify_switched_off(schedule: Schedule, reason: str, *, now: datetime) -> None:
    """Notify subscribers of missed starts that the schedule has no more due times although nobody switched it off."""
    announce(
        event=Event.MISSED,
        plan=schedule.version.plan,
        key=f"switched_off:{schedule.pk}:{now.isoformat()}",
        subject=f"Switched off: {schedule}",
        text=f"Sweetspot switched off schedule “{schedule}”. {reason} Switch it on again on its page.",
        path=f"/schedules/{schedule.pk}/",
        detail={"schedule": schedule.name, "reason": reason},
    )
