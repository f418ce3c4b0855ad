"""Stores the reference library in the database."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import msgspec

from webapp.imports import formats
from webapp.imports.files import FileRead, Test
from webapp.imports.formats.plain_csv import direction, figures, is_field
from webapp.imports.measurement import Latency, Measurement
from webapp.imports.references import about
from webapp.imports.references.about import RESERVED, ReferenceDamaged, label_problem, line_of, text_of
from webapp.imports.services import Published, remove_references, store_reference
from webapp.imports.values import ImportRefused, fields, lines, number
from webapp.plans.values import Value

# The reference library: published tables as data files of ours, `data/<slug>/`.
#
# Reading needs no database. Each folder has a `reference.toml` (see `about`) and its figures: output of tools as it
# was published, read by the same parsers as imported files, and tables that were entered by hand (see `table`).

# Tables of figures that were entered by hand: CSV with a row for each figure.
#
# Columns are the fields of `formats.plain_csv` (factors, direction, name, results with their unit), `table` (its
# caption in the source), `note` (a sentence), `metric NAME_UNIT` for figures that are no I/O, such as `metric
# power_watt`, and labels: every other column. An empty field means that the source does not state the value.

_METRIC = "metric "
_TEXTS = (*RESERVED, "name", "direction")


class Row(msgspec.Struct, frozen=True):
    table: str
    measurement: Measurement
    labels: Mapping[str, str]


class RowDamaged(Exception):
    """A row that cannot be read, with its line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read(text: str, tool: str, factors: Mapping[str, Value]) -> list[Row]:
    """`factors` are those of all rows, unless a row states another value. Raises RowDamaged."""
    rows = []
    columns: list[str] = []
    for line, content in enumerate(lines(text), start=1):
        if not content.strip():
            continue
        try:
            cells = fields(content)
            if columns:
                rows.append(_row(_named(columns, cells), tool, factors))
            else:
                columns = _checked(cells)
        except ImportRefused as error:
            raise RowDamaged(line, str(error)) from error
    return rows


def _checked(columns: list[str]) -> list[str]:
    if len(set(columns)) != len(columns):
        raise ImportRefused("Two columns have the same name.")
    for name in columns:
        if not _is_known(name) and (reason := label_problem(name, "any")):
            raise ImportRefused(f"{reason} Columns are fields, `metric NAME_UNIT`, table, note and labels.")
    return columns


def _is_known(name: str) -> bool:
    return name in _TEXTS or name.startswith(_METRIC) or is_field(name)


def _named(columns: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise ImportRefused(f"The row has {len(cells)} fields and its head {len(columns)}.")
    return dict(zip(columns, cells, strict=True))


def _row(row: Mapping[str, str], tool: str, common: Mapping[str, Value]) -> Row:
    row_figures = figures(row, {name: name for name in row if is_field(name) and name not in _TEXTS})
    metrics = _metrics(row)
    is_io = bool(row_figures.rates) or row_figures.latency != Latency()
    if not is_io and not metrics:
        raise ImportRefused("The row has no figure.")
    factors = {**common, **row_figures.factors}
    note = row.get("note", "")
    measurement = Measurement(
        tool=tool,
        name=row.get("name", ""),
        direction=direction(row.get("direction", "") if is_io else "mixed", factors),
        factors=factors,
        **row_figures.rates,  # type: ignore[arg-type]
        latency=row_figures.latency,
        metrics=metrics,
        notes=(note,) if note else (),
    )
    return Row(row.get("table", ""), measurement, _labels(row))


def _metrics(row: Mapping[str, str]) -> dict[str, float]:
    stated = {name: text for name, text in row.items() if name.startswith(_METRIC) and text}
    return {name.removeprefix(_METRIC): number(text, name) for name, text in stated.items()}


def _labels(row: Mapping[str, str]) -> dict[str, str]:
    labels = {name: text for name, text in row.items() if text and not _is_known(name)}
    for name, text in labels.items():
        if reason := label_problem(name, text):
            raise ImportRefused(reason)
    return labels


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
    return tuple(_reference(reference_folder) for reference_folder in sorted((folder or DATA).iterdir()))


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


def _rows(folder: Path, file: about.File, factors: Mapping[str, Value]) -> list[Row]:
    text = text_of(folder, file.name)
    try:
        if file.tool:
            return read(text, file.tool, factors)
        return [Row("", measured, {}) for measured in formats.parse(text)[1]]
    except RowDamaged as error:
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
    stored = {
        reference.slug for reference in library if store_reference(_published(reference), _files(reference)) is not None
    }
    slugs = {reference.slug for reference in library}
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
