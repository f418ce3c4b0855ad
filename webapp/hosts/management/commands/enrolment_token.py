"""`manage.py enrolment_token`: the one-time token for a new host, alone on stdout."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from webapp.hosts.services import issue_enrolment_token


class Command(BaseCommand):
    help = "Print a token that enrols one host, once, within one hour."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--host", default="", metavar="SLUG", help="the host's name on this server; default: its hostname"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        self.stdout.write(issue_enrolment_token(by=None, slug=options["host"]))
