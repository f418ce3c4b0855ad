"""The reference library: published tables as data files of ours, `data/<slug>/`.

Reading needs no database. Each folder has a `reference.toml` (see `about`) and its figures: output of tools as it was
published, read by the same parsers as imported files, and tables that were entered by hand (see `table`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from webapp.imports import formats
from webapp.imports.errors import ImportRefused
from webapp.imports.measurement import Measurement
from webapp.imports.references import about, table
from webapp.imports.references.about import line_of, text_of
from webapp.imports.references.errors import ReferenceDamaged
from webapp.plans.values import Value

DATA = Path(__file__).parent / "data"


class Entry(msgspec.Struct, frozen=True):
    """One figure. `path` is the caption of its table in the source, `file` is the data file."""

    path: str
    file: str
    measurement: Measurement
    labels: Mapping[str, str]


class Reference(msgspec.Struct, frozen=True):
    """One published set of results of one product or one tool. `slug` is the name of its folder."""

    slug: str
    title: str
    source: str
    date: str
    note: str
    entries: tuple[Entry, ...]


def references(folder: Path | None = None) -> tuple[Reference, ...]:
    """All references by slug. Raises ReferenceDamaged, which names the file and the line."""
    return tuple(_reference(one) for one in sorted((folder or DATA).iterdir()))


def _reference(folder: Path) -> Reference:
    stated = about.read(folder)
    entries = [entry for number, file in enumerate(stated.files) for entry in _entries(folder, stated, number, file)]
    return Reference(
        slug=folder.name,
        title=stated.title,
        source=" ".join(stated.source.split()),
        date=stated.date,
        note=" ".join(stated.note.split()),
        entries=tuple(_with_repeats(entries)),
    )


def _entries(folder: Path, stated: about.About, number: int, file: about.File) -> Iterator[Entry]:
    """The entries of a file, with the factors and labels of its reference."""
    factors = about.factor_values(stated.factors | file.factors)
    for row in _rows(folder, file, factors):
        measured = row.measurement
        for name in factors:
            if measured.factors.get(name, factors[name]) != factors[name]:
                raise _contradiction(folder, name, file, number)
        yield Entry(
            path=row.table or file.table or file.name,
            file=file.name,
            measurement=msgspec.structs.replace(
                measured, factors=factors | dict(measured.factors), notes=(*measured.notes, *file.notes)
            ),
            labels=stated.labels | file.labels | dict(row.labels),
        )


def _contradiction(folder: Path, name: str, file: about.File, number: int) -> ReferenceDamaged:
    text = text_of(folder, about.NAME)
    line = line_of(text, name, table="factors", file=number if name in file.factors else None)
    return ReferenceDamaged(f"{folder.name}/{about.NAME}", line, f"`{file.name}` states another value of {name}.")


def _rows(folder: Path, file: about.File, factors: Mapping[str, Value]) -> list[table.Row]:
    text = text_of(folder, file.name)
    try:
        if file.tool:
            return table.read(text, file.tool, factors)
        return [table.Row("", measured, {}) for measured in formats.parse(text)[1]]
    except table.RowDamaged as error:
        raise ReferenceDamaged(f"{folder.name}/{file.name}", error.line, str(error)) from error
    except ImportRefused as error:
        line = _line_of_refusal(text, str(error))
        raise ReferenceDamaged(f"{folder.name}/{file.name}", line, str(error)) from error


def _line_of_refusal(text: str, reason: str) -> int:
    """The first line with which the text is refused for this reason: parsers do not always name it."""
    lines = text.split("\n")
    for count in range(1, len(lines) + 1):
        try:
            formats.parse("\n".join(lines[:count]))
        except ImportRefused as error:
            if str(error) == reason:
                return count
    return len(lines)


def _with_repeats(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Number the entries of the same test in the order of the files, from 1."""
    seen: Counter[object] = Counter()
    for entry in entries:
        measured = entry.measurement
        test = (
            entry.path,
            measured.name,
            measured.direction,
            frozenset(measured.factors.items()),
            frozenset(measured.other.items()),
            frozenset(entry.labels.items()),
        )
        seen[test] += 1
        yield msgspec.structs.replace(entry, measurement=msgspec.structs.replace(measured, repeat=seen[test]))
