"""Tables as files: each format turns a table into chunks of a few rows, and a response sends them."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec
from django.http import HttpResponse, StreamingHttpResponse

ROWS_PER_GROUP = 10_000  # of Parquet, in memory at a time
MAX_AT_ONCE = 4  # in each process: a long file occupies one of the sixteen threads that run Django for minutes
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Kind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SWITCH = "switch"
    TIME = "time"


@dataclass(frozen=True)
class Column:
    """`heading` names the column in every format. `unit` is that of the stored values: B, ns, 1/s, …"""

    heading: str
    kind: Kind = Kind.TEXT
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """Rows can be read once. A value has the type of its column, or is None if it is unknown."""

    columns: Sequence[Column]
    rows: Iterator[Sequence[object]]


class _Echo:
    """A file that returns the text instead of writing it."""

    def write(self, text: str) -> str:
        return text


def csv_chunks(table: Table) -> Iterator[str]:
    """A line at a time, without text that a spreadsheet would execute as a formula."""
    writer = csv.writer(_Echo())
    yield writer.writerow([_cell(column.heading) for column in table.columns])  # the name of a metric can be anything
    for row in table.rows:
        yield writer.writerow([None if value is None else _cell(value) for value in row])


def _cell(value: object) -> object:
    """Prefix text that looks like a formula with an apostrophe (OWASP, CSV injection); numbers stay numbers."""
    if isinstance(value, datetime):
        return value.isoformat()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def json_chunks(table: Table) -> Iterator[str]:
    """An array with an object for each row, named by the headings; a line at a time.

    Unknown values are left out: most of the columns of a row of results are empty.
    """
    headings, before = [column.heading for column in table.columns], "[\n"
    for row in table.rows:
        known = {heading: value for heading, value in zip(headings, row, strict=True) if value is not None}
        yield f"{before}{msgspec.json.encode(known).decode()}"
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


class _Written:
    """A file in memory. `take` returns and removes the bytes that were written."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """There is nothing to do: the file is memory."""

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def parquet_chunks(table: Table) -> Iterator[bytes]:
    """A row group at a time, then the footer. Columns have types, and units in their metadata.

    pyarrow needs about 60 MB of memory once it is imported, so only a process that writes such a file imports it.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema, written = _schema(table.columns), _Written()
    with ParquetWriter(written, schema, compression="zstd") as writer:
        while rows := list(islice(table.rows, ROWS_PER_GROUP)):
            writer.write_table(pyarrow.table(_columns(rows, schema), schema=schema))
            yield written.take()
    yield written.take()


def _schema(columns: Sequence[Column]) -> Any:
    import pyarrow

    types = {
        Kind.TEXT: pyarrow.string(), Kind.INTEGER: pyarrow.int64(), Kind.NUMBER: pyarrow.float64(),
        Kind.SWITCH: pyarrow.bool_(), Kind.TIME: pyarrow.timestamp("us", tz="UTC"),
    }  # fmt: skip
    return pyarrow.schema(
        pyarrow.field(column.heading, types[column.kind], metadata={"unit": column.unit} if column.unit else None)
        for column in columns
    )


def _columns(rows: Sequence[Sequence[object]], schema: Any) -> list[Any]:
    import pyarrow

    return [pyarrow.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]


@dataclass(frozen=True)
class Format:
    chunks: Callable[[Table], Iterator[str] | Iterator[bytes]]
    media_type: str


FORMATS = {  # by the extension of the file name
    "csv": Format(csv_chunks, "text/csv; charset=utf-8"),
    "json": Format(json_chunks, "application/json"),
    "parquet": Format(parquet_chunks, "application/vnd.apache.parquet"),
}
_begun: set[object] = set()


def file_response(table: Table, name: str, ending: str) -> HttpResponse | StreamingHttpResponse:
    """503 if too many files are being written."""
    if len(_begun) >= MAX_AT_ONCE:
        words = "The server is busy with other exports. Try again later."
        return HttpResponse(words, status=503, content_type="text/plain")
    file_format = FORMATS[ending]
    response = StreamingHttpResponse(_counted(file_format.chunks(table)), content_type=file_format.media_type)
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response


def _counted(chunks: Iterator[str] | Iterator[bytes]) -> Iterator[str | bytes]:
    begun = object()
    _begun.add(begun)
    try:
        yield from chunks
    finally:
        _begun.discard(begun)
