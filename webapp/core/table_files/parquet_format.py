"""Apache Parquet: typed columns, units in their metadata.

pyarrow needs about 60 MB of memory once it is imported, so only a process that writes such a file imports it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from webapp.core.table_files import Column, Kind, Table

MEDIA_TYPE = "application/vnd.apache.parquet"
ROWS_PER_GROUP = 10_000  # in memory at a time


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


def chunks(table: Table) -> Iterator[bytes]:
    """A row group at a time, then the footer."""
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
