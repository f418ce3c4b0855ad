"""`manage.py rotate_server_key`: a new key to sign orders with, without an order being refused meanwhile."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.hosts.keys import hosts_without_key, keys_in_use, retire_key, rotate_key


class Command(BaseCommand):
    help = (
        "Make a new key that signs orders. Hosts learn it with their next registration, and the old one is retired "
        "by itself once every host trusts the new one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--list", action="store_true", help="only show the keys and who does not trust them yet")
        parser.add_argument("--retire", default="", metavar="KEY", help="retire a key now, whoever still relies on it")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            if options["retire"]:
                retire_key(key_id=options["retire"])
            elif not options["list"]:
                self.stdout.write(f"new key: {rotate_key().key_id}")
        except Refusal as error:
            raise CommandError(error.message) from error
        for key in keys_in_use():
            waiting = ", ".join(hosts_without_key(key.key_id).values_list("slug", flat=True))
            self.stdout.write(
                f"{key.key_id}  made {key.created_at:%Y-%m-%d %H:%M}  not yet trusted by: {waiting or '–'}"
            )
