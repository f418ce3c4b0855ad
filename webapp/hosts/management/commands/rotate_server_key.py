"""`manage.py rotate_server_key`: replaces the key that signs orders; no order is refused during the change."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.hosts.keys import hosts_without_key, keys_in_use, retire_key, rotate_key


class Command(BaseCommand):
    help = (
        "Create a new key to sign orders. Hosts receive it with their next registration. The old key is retired "
        "automatically when every host trusts the new one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--list", action="store_true", help="only list the keys and the hosts that do not trust them yet"
        )
        parser.add_argument(
            "--retire", default="", metavar="KEY", help="retire a key now, even if hosts still rely on it"
        )

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
                f"{key.key_id}  created {key.created_at:%Y-%m-%d %H:%M}  not yet trusted by: {waiting or '–'}"
            )
