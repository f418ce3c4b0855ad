"""`manage.py load_references`: the published tables of the reference library. Running it again changes nothing."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.imports.references.reading import load_references


class Command(BaseCommand):
    help = (
        "Load the reference library: published results that others can be compared with. "
        "docs/reference/references.md lists it."
    )

    def handle(self, *_: Any, **__: Any) -> None:
        loaded = load_references()
        for slug in loaded.stored:
            self.stdout.write(f"Loaded {slug}.")
        for slug in loaded.removed:
            self.stdout.write(f"Removed {slug}.")
        self.stdout.write(
            f"{len(loaded.stored)} loaded, {len(loaded.unchanged)} unchanged, {len(loaded.removed)} removed."
        )
