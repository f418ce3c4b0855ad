"""`manage.py import_results PATH…`: results of other tools, from files, folders and archives."""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.imports.selectors import notes_of, refused_by_reason
from webapp.imports.services import add_paths, begin_import, end_import, read_columns
from webapp.imports.storing import Stored
from webapp.results.models import Import

SHOWN_LINES = 20


class Command(BaseCommand):
    help = "Import results of fio, bm-flash, xdd, iozone and others. docs/how-to/importing.md lists the formats."

    requires_system_checks = ()  # they load all pages, which takes as long as importing hundreds of files

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file, folder or archive")
        parser.add_argument(
            "--label", default="", metavar="PATTERN",
            help="labels in paths: {host}/{controller}/{drive}/{rw}-{iodepth}-{numjobs}.json",
        )  # fmt: skip
        parser.add_argument(
            "--set", action="append", default=[], metavar="NAME=TEXT", help="a label for all files: --set drive=PM9A3"
        )
        parser.add_argument(
            "--column", action="append", default=[], metavar="NAME=FIELD",
            help="what a column of plain CSV is: --column IO/s=iops",
        )  # fmt: skip
        parser.add_argument("--title", help="title of the import; by default the name of the first path")
        parser.add_argument("--user", help="name of the person whose import it is")
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        paths: list[Path] = options["paths"]
        if missing := [str(path) for path in paths if not path.exists()]:
            raise CommandError(f"There is no {missing[0]}.")
        started = time.monotonic()
        try:
            by = _person(options["user"])
            title = options["title"] or paths[0].resolve().name
            imported = begin_import(
                title=title, pattern=options["label"], given=_labels(options["set"]),
                columns=read_columns("\n".join(options["column"])), by=by,
            )  # fmt: skip
            add_paths(imported, *paths, progress=lambda stored: self._say(stored, quiet=options["json"]))
            ended = end_import(imported, by=by)
        except Refusal as refusal:
            raise CommandError(refusal.message) from refusal
        self._report(ended, time.monotonic() - started, as_json=options["json"])

    def _say(self, stored: Stored, *, quiet: bool) -> None:
        if not quiet:
            self.stderr.write(f"  {stored.files:,} files, {stored.results:,} results", ending="\r")

    def _report(self, imported: Import, seconds: float, *, as_json: bool) -> None:
        reasons, notes = refused_by_reason(imported), notes_of(imported)
        if as_json:
            outcome = {
                "import": imported.number, "title": imported.title, "files_read": imported.files_read,
                "results_made": imported.results_made, "files_refused": imported.files_refused,
                "refused": reasons, "notes": notes, "seconds": round(seconds, 2),
            }  # fmt: skip
            self.stdout.write(json.dumps(outcome, ensure_ascii=False, indent=2))
            return
        self.stderr.write("")
        self.stdout.write(
            f"Import {imported.number}: {imported.files_read:,} files read, {imported.results_made:,} results made, "
            f"{imported.files_refused:,} files left out, {seconds:.1f} s."
        )
        self._list(reasons, "reasons")
        if notes:
            self.stdout.write("Of the files read:")
            self._list(notes, "notes")

    def _list(self, counts: dict[str, int], kind: str) -> None:
        for text, count in list(counts.items())[:SHOWN_LINES]:
            self.stdout.write(f"  {count:,} × {text}")
        if len(counts) > SHOWN_LINES:
            self.stdout.write(f"  and {len(counts) - SHOWN_LINES:,} other {kind}: see the page of the import.")


def _person(name: str | None) -> User | None:
    if name is None:
        return None
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no person called {name}.")
    return person


def _labels(texts: list[str]) -> dict[str, str]:
    labels = {}
    for text in texts:
        name, _, value = map(str.strip, text.partition("="))
        if not name or not value:
            raise CommandError(f"--set {text}: write NAME=TEXT.")
        labels[name] = value
    return labels
