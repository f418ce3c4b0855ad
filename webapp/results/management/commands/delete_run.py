"""`manage.py delete_run NUMBER`: delete an ended run with its results and samples."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.results.retention import delete_run
from webapp.runs.models import Run


class Command(BaseCommand):
    help = "Delete a run that is over, with its trials, results and samples. It cannot be undone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("number", type=int, help="the run's number")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *_: Any, number: int, yes: bool, **__: Any) -> None:
        run = Run.objects.filter(number=number).first()
        if run is None:
            raise CommandError(f"There is no run {number}.")
        what = f"run {number} with {run.trials.count()} trials and {run.results.count()} results"
        if not yes and input(f"Delete {what}? It cannot be undone. Type the run's number: ").strip() != str(number):
            raise CommandError("Nothing was deleted.")
        try:
            delete_run(run=run, by=None)
        except Refusal as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Deleted {what}.")
