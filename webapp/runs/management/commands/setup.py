"""`manage.py setup`: what every installation needs besides its tables. May be run any number of times."""

from typing import Any

import redis
from django.core.management.base import BaseCommand
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from webapp.hosts import broker
from webapp.hosts.keys import signing_key
from webapp.hosts.tasks import KEEP_BROKER_SECONDS
from webapp.plans.services import load_builtin_plans
from webapp.runs.tasks import TICK_SECONDS


class Command(BaseCommand):
    help = "Install the periodic tasks, the server's signing key and the built-in plans."

    def handle(self, *_: Any, **__: Any) -> None:
        install_tick()
        install_tidy()
        install_schedules()
        install_tidy_schedules()
        install_keep_broker()
        install_notices()
        self.stdout.write(f"server key: {signing_key()[0]}")
        plans = ", ".join(plan.slug for plan in load_builtin_plans())
        self.stdout.write(f"built-in plans: {plans}")
        self._broker()

    def _broker(self) -> None:
        """Hosts' users with the rules of this version, and what is open in Redis's own set-up."""
        try:
            broker.reconcile(rewrite=True)
            for problem in broker.problems():
                self.stderr.write(f"broker: {problem}")
        except (redis.RedisError, OSError) as error:
            self.stderr.write(f"broker: not reached, hosts' users are made when it is: {error}")
        if without := broker.hosts_without_user():
            self.stderr.write(f"broker: enrol these hosts again, they have no user of their own: {', '.join(without)}")


def install_tick() -> None:
    _install("tick", "webapp.runs.tasks.tick", TICK_SECONDS, "Leases, orders to be sent again, idle hosts.")


def install_keep_broker() -> None:
    words = "Hosts' users in the broker as the database has them; superseded server keys."
    _install("keep_broker", "webapp.hosts.tasks.keep_broker", KEEP_BROKER_SECONDS, words)


def install_schedules() -> None:
    """By name: schedules are above runs."""
    _install("schedules", "webapp.schedules.tasks.tick", TICK_SECONDS, "Due times, windows and deadlines of schedules.")


def install_tidy_schedules() -> None:
    _install("tidy_schedules", "webapp.schedules.tasks.tidy", 86400, "Old occurrences of schedules are deleted.")


def install_tidy() -> None:
    """By name: results are above runs."""
    _install("tidy", "webapp.results.tasks.tidy", 86400, "Old samples are thinned out.")


def install_notices() -> None:
    """By name: notices are above runs."""
    _install("notices", "webapp.notices.tasks.tick", TICK_SECONDS, "Ended runs are announced, notices are sent.")


def _install(name: str, task: str, every_s: int, description: str) -> None:
    """A beat's entry; what could not be run in time is dropped, the next one does its work."""
    every, _ = IntervalSchedule.objects.get_or_create(every=every_s, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.update_or_create(
        name=name,
        defaults={
            "task": task, "interval": every, "expire_seconds": every_s, "enabled": True, "description": description,
        },
    )  # fmt: skip
