"""`manage.py setup`: what every installation needs besides its tables. May be run any number of times."""

from typing import Any

from django.core.management.base import BaseCommand
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from webapp.hosts.keys import signing_key
from webapp.plans.services import load_builtin_plans
from webapp.runs.tasks import TICK_SECONDS


class Command(BaseCommand):
    help = "Install the periodic tasks, the server's signing key and the built-in plans."

    def handle(self, *_: Any, **__: Any) -> None:
        install_tick()
        self.stdout.write(f"server key: {signing_key()[0]}")
        plans = ", ".join(plan.slug for plan in load_builtin_plans())
        self.stdout.write(f"built-in plans: {plans}")


def install_tick() -> None:
    """The beat's entry; a tick that could not be run in time is dropped, the next one does its work."""
    every, _ = IntervalSchedule.objects.get_or_create(every=TICK_SECONDS, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.update_or_create(
        name="tick",
        defaults={
            "task": "webapp.runs.tasks.tick",
            "interval": every,
            "expire_seconds": TICK_SECONDS,
            "enabled": True,
            "description": "Leases, orders to be sent again, idle hosts.",
        },
    )
