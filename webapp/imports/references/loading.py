"""Stores the reference library in the database."""

import hashlib
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from webapp.imports.files import FileRead, Test
from webapp.imports.references.reading import Entry, Reference, references
from webapp.imports.services import Published, remove_references, store_reference


class Loaded(msgspec.Struct, frozen=True):
    """Slugs by what happened to them."""

    stored: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]


def load_references() -> Loaded:
    """Store new and changed references, and remove those without data files. Loading twice changes nothing.

    Raises ReferenceDamaged before anything is stored.
    """
    library = references()
    stored = {one.slug for one in library if store_reference(_published(one), _files(one)) is not None}
    slugs = {one.slug for one in library}
    removed = remove_references(keep=slugs)
    return Loaded(tuple(sorted(stored)), tuple(sorted(slugs - stored)), removed)


def _published(reference: Reference) -> Published:
    return Published(
        slug=reference.slug,
        title=reference.title,
        source=reference.source,
        date=reference.date,
        note=reference.note,
        digest=hashlib.sha256(msgspec.json.encode(reference)).hexdigest(),
        measured_at=_first_day(reference.date),
    )


def _first_day(date: str) -> datetime:
    """The first day that the text names: 2010-07-01 for "2010-07 to 2010-12"."""
    year, month, day = re.findall(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?", date)[0]
    return datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)


def _files(reference: Reference) -> Iterable[FileRead]:
    for name, group in groupby(reference.entries, key=lambda entry: entry.file):
        entries = tuple(group)
        notes = dict.fromkeys(note for entry in entries for note in entry.measurement.notes)
        tool = entries[0].measurement.tool
        yield FileRead(path=name, format=tool, tests=tuple(map(_test, entries)), notes=tuple(notes))


def _test(entry: Entry) -> Test:
    return Test(measured=(entry.measurement,), labels={**entry.labels, "table": entry.path})
