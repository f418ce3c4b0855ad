"""`manage.py setup`: initial data of an installation. Safe to repeat."""

from typing import Any

import redis
from django.core.management.base import BaseCommand
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from webapp.core.tasks import TIDY_SECONDS
from webapp.hosts import credentials
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
        install_tidy_storage()
        install_keep_broker()
        install_tidy_hosts()
        install_tidy_sessions()
        install_notices()
        install_findings()
        install_trends()
        self.stdout.write(f"server key: {signing_key()[0]}")
        plans = ", ".join(plan.slug for plan in load_builtin_plans())
        self.stdout.write(f"built-in plans: {plans}")
        self._broker()

    def _broker(self) -> None:
        """Update the hosts' broker users to this version's rules, and report problems of Redis's configuration."""
        try:
            credentials.reconcile(rewrite=True)
            for problem in credentials.problems():
                self.stderr.write(f"broker: {problem}")
        except (redis.RedisError, OSError) as error:
            self.stderr.write(f"broker: not reachable; the hosts' users will be created when it is: {error}")
        if without := credentials.hosts_without_user():
            self.stderr.write(f"broker: enrol these hosts again, they have no broker user: {', '.join(without)}")


def install_tick() -> None:
    _install(
        "tick",
        "webapp.runs.tasks.tick",
        TICK_SECONDS,
        "Check leases, send unaccepted orders again, and give idle hosts orders.",
    )


def install_keep_broker() -> None:
    words = "Correct the hosts' broker users and retire old signing keys."
    _install("keep_broker", "webapp.hosts.tasks.keep_broker", KEEP_BROKER_SECONDS, words)


def install_tidy_hosts() -> None:
    _install("tidy_hosts", "webapp.hosts.tasks.tidy", 86400, "Thin out old inventories.")


def install_tidy_sessions() -> None:
    words = "Delete ended sessions and old log-in tries."
    _install("tidy_sessions", "webapp.core.tasks.tidy", TIDY_SECONDS, words)


def install_schedules() -> None:
    """By name, because schedules depend on runs."""
    _install(
        "schedules",
        "webapp.schedules.tasks.tick",
        TICK_SECONDS,
        "Process due times, windows and deadlines of schedules.",
    )


def install_tidy_schedules() -> None:
    _install("tidy_schedules", "webapp.schedules.tasks.tidy", 86400, "Delete old occurrences of schedules.")


def install_tidy_storage() -> None:
    """By name, because storage depends on runs."""
    words = "Note the sizes of the database, and delete old runs if the settings say so."
    _install("tidy_storage", "webapp.storage.tasks.tidy", 86400, words)


def install_tidy() -> None:
    """By name, because results depend on runs."""
    _install("tidy", "webapp.results.tasks.tidy", 86400, "Thin out old samples.")


def install_notices() -> None:
    """By name, because notices depend on runs."""
    _install("notices", "webapp.notices.tasks.tick", TICK_SECONDS, "Announce ended runs and send notices.")


def install_findings() -> None:
    """By name, because findings depend on runs and imports."""
    _install("findings", "webapp.analysis.tasks.tick", TICK_SECONDS, "Make the findings of ended runs.")
    _install("import findings", "webapp.screens.tasks.tick", TICK_SECONDS, "Make the findings of ended imports.")


def install_trends() -> None:
    """By name, because trends depend on runs."""
    _install("trends", "webapp.trends.tasks.tick", TICK_SECONDS, "Make the summaries of trends with a new run.")


def _install(name: str, task: str, every_s: int, description: str) -> None:
    """A periodic task of beat. A task that was not run in time expires; the next one does its work."""
    every, _ = IntervalSchedule.objects.get_or_create(every=every_s, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.update_or_create(
        name=name,
        defaults={
            "task": task, "interval": every, "expire_seconds": every_s, "enabled": True, "description": description,
        },
    )  # fmt: skip
