"""Schedules for tests."""

from typing import Any

from webapp.core.models import User
from webapp.hosts.models import GroupMember, HostGroup, Target
from webapp.schedules.models import Schedule, Trigger
from webapp.schedules.services import ScheduleSpec, create_schedule
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version


def a_spec(**changes: Any) -> ScheduleSpec:
    """Every night at 22:00 in Berlin, on a directory."""
    fields: dict[str, Any] = {"name": "nightly", "trigger": Trigger.CRON, "cron": "0 22 * * *"}
    fields |= {"time_zone": "Europe/Berlin"} | changes
    fields.setdefault("version", None)
    if fields["version"] is None:
        fields["version"] = a_version()
    if not fields.get("targets") and fields.get("group") is None:
        fields["targets"] = [a_target()]
    return ScheduleSpec(**fields)


def a_schedule(by: User | None = None, **changes: Any) -> Schedule:
    return create_schedule(spec=a_spec(**changes), by=by or a_user())


def a_group(*targets: Target, slug: str = "lab") -> HostGroup:
    """A group with the hosts of these targets, labelled A, B, …"""
    group = HostGroup.objects.create(slug=slug, title=f"Group {slug}")
    for place, target in enumerate(targets):
        member = GroupMember.objects.create(group=group, host=target.host, label=chr(ord("A") + place), place=place)
        member.targets.set([target])
    return group
