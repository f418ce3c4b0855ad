"""`manage.py create_admin`: an administrator, with a generated password that is printed once."""

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from webapp.core.models import Role, User
from webapp.core.services import create_user, generated_password, set_password


class Command(BaseCommand):
    help = "Create an administrator and print the generated password once. For an existing user, use --reset."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("username", nargs="?", default="admin")
        parser.add_argument("--reset", action="store_true", help="give an existing user a new password")

    def handle(self, *_: Any, **options: Any) -> None:
        username, password = options["username"], generated_password()
        user = User.objects.filter(username=username).first()
        if user is None:
            create_user(username=username, password=password, role=Role.ADMIN)
        elif options["reset"]:
            set_password(user=user, password=password)
        else:
            self.stdout.write(f"There is already a user {username}. Use --reset to give this user a new password.")
            return
        self.stdout.write(f"name: {username}\npassword: {password}")
