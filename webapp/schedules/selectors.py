"""Reads about schedules."""

from webapp.hosts.models import HostGroup, Target
from webapp.schedules.models import Schedule


def all_targets(schedule: Schedule) -> list[Target]:
    """The targets of a schedule, or of all hosts of its group."""
    if schedule.group is None:
        places = {pk: place for place, pk in enumerate(schedule.target_order)}
        chosen = schedule.targets.select_related("host")
        return sorted(chosen, key=lambda target: places.get(str(target.pk), len(places)))
    return group_targets(schedule.group)


def group_targets(group: HostGroup) -> list[Target]:
    return list(Target.objects.filter(memberships__group=group).select_related("host").order_by("memberships__place"))
