"""`manage.py delete_old_runs --days 365`: what retention by age would delete; with `--yes`, delete it now."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from webapp.core.formatting import bytes_decimal
from webapp.storage.run_retention import Ages, delete_old_runs, proposals


class Command(BaseCommand):
    help = "List the runs that ended more than DAYS ago and that nothing refers to; with --yes, delete them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, required=True, help="age of the runs in days, from their end")
        parser.add_argument("--plan", help="only runs of this plan")
        parser.add_argument("--yes", action="store_true", help="delete them; it cannot be undone")

    def handle(self, *_: Any, days: int, plan: str | None, yes: bool, **__: Any) -> None:
        if days < 1:
            raise CommandError("--days must be at least 1.")
        ages, now = (Ages(0, {plan: days}) if plan else Ages(days, {})), timezone.now()
        found = proposals(ages, now=now)
        if not found:
            self.stdout.write(f"No runs ended more than {days} days ago.")
        for proposal in found:
            self.stdout.write(
                f"{proposal.plan}: {len(proposal.runs)} runs, about {bytes_decimal(proposal.bytes)}; "
                f"{len(proposal.kept)} old runs are kept"
            )
        if yes:
            self.stdout.write(f"Deleted {len(delete_old_runs(ages, now=now))} runs.")
