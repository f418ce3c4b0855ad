import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow.parquet
import pytest

from webapp.core import table_files
from webapp.core.table_files import Column, Kind, Table, csv_chunks, file_response, json_chunks, parquet_chunks

COLUMNS = [
    Column("name"), Column("ios", Kind.INTEGER), Column("p99_ns", Kind.NUMBER, "ns"), Column("direct", Kind.SWITCH),
    Column("measured_at", Kind.TIME),
]  # fmt: skip
WHEN = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
ROWS = [("=1+1", 7, 12, True, WHEN), (None, None, None, None, None)]


def a_table(rows: int = 1) -> Table:
    return Table(COLUMNS, iter(ROWS * rows))


def test_csv_defuses_formulas_and_leaves_unknown_values_empty() -> None:
    assert "".join(csv_chunks(a_table())).splitlines() == [
        "name,ios,p99_ns,direct,measured_at", "'=1+1,7,12,True,2026-11-23T12:30:00+00:00", ",,,,",
    ]  # fmt: skip


def test_csv_defuses_formulas_in_headings() -> None:
    assert list(csv_chunks(Table([Column("=1+1 mean [min]")], iter(())))) == ["'=1+1 mean [min]\r\n"]


def test_json_has_an_object_for_each_row_without_unknown_values() -> None:
    found = json.loads("".join(json_chunks(a_table())))
    first = {"name": "=1+1", "ios": 7, "p99_ns": 12, "direct": True, "measured_at": "2026-11-23T12:30:00Z"}
    assert found == [first, {}]
    assert json.loads("".join(json_chunks(a_table(0)))) == []
    assert len(list(json_chunks(a_table(5)))) == 11  # a piece for each row, and the end


def test_parquet_has_types_and_units() -> None:
    found = pyarrow.parquet.read_table(io.BytesIO(b"".join(parquet_chunks(a_table()))))
    assert found.to_pylist()[0] == {"name": "=1+1", "ios": 7, "p99_ns": 12.0, "direct": True, "measured_at": WHEN}
    assert set(found.to_pylist()[1].values()) == {None}
    assert [str(field.type) for field in found.schema] == ["string", "int64", "double", "bool", "timestamp[us, tz=UTC]"]
    assert found.schema.field("p99_ns").metadata == {b"unit": b"ns"}
    assert found.schema.field("ios").metadata is None


def test_parquet_reads_the_rows_of_one_group_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROWS_PER_GROUP", 4)
    taken = 0

    def rows() -> Iterator[tuple[object, ...]]:
        nonlocal taken
        for row in ROWS * 5:
            taken += 1
            yield row

    written = parquet_chunks(Table(COLUMNS, rows()))
    first = next(written)
    assert (taken, first[:4]) == (4, b"PAR1")
    file = pyarrow.parquet.ParquetFile(io.BytesIO(first + b"".join(written)))
    assert (file.num_row_groups, file.metadata.num_rows) == (3, 10)


def test_an_empty_table_is_a_valid_file() -> None:
    found = pyarrow.parquet.read_table(io.BytesIO(b"".join(parquet_chunks(a_table(0)))))
    assert (found.num_rows, found.column_names) == (0, [column.heading for column in COLUMNS])


def test_files_beyond_the_limit_are_refused_until_another_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the exports of one person could occupy all threads of a process."""
    monkeypatch.setattr(table_files, "MAX_AT_ONCE", 1)
    first, second = (file_response(a_table(), "x", "csv") for _ in range(2))
    next(iter(first))
    assert (second.status_code, file_response(a_table(), "x", "csv").status_code) == (200, 503)
    list(first)
    assert file_response(a_table(), "x", "csv").status_code == 200
