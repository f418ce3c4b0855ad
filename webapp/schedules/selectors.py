"""Reads about schedules."""

from django.db.models import QuerySet

from webapp.hosts.models import HostGroup, Target
from webapp.schedules.models import Schedule


def schedules_list(*, deleted: bool = False) -> QuerySet[Schedule]:
    """By name, with what lists show of them; deleted ones only if asked for."""
    found = Schedule.objects.select_related(
        "owner", "version__plan", "group", "after_schedule", "after_run", "armed_by"
    ).prefetch_related("targets__host")
    return found if deleted else found.filter(deleted_at=None)


def all_targets(schedule: Schedule) -> list[Target]:
    """The targets of a schedule, or of all hosts of its group."""
    if schedule.group is None:
        places = {pk: place for place, pk in enumerate(schedule.target_order)}
        return sorted(schedule.targets.all(), key=lambda target: places.get(str(target.pk), len(places)))
    return group_targets(schedule.group)


def group_targets(group: HostGroup) -> list[Target]:
    return list(Target.objects.filter(memberships__group=group).select_related("host").order_by("memberships__place"))
