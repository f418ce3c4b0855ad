"""Statements that PostgreSQL plans once for a connection. For what is done hundreds of times a second, and no more.

Django's cursors put values into the text, and a text that is never the same is planned anew each time. These go past
them, on the same connection and in the same transaction. Rows travel as one JSON text: psycopg's type of a number
depends on how large it is, and each set of types would be a statement of its own.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import msgspec
import psycopg
from django.db import DataError, connection, models

M = TypeVar("M", bound=models.Model)
Row = tuple[Any, ...]
Sent = psycopg.Cursor[tuple[Any, ...]]
Kind = type[models.Model]
Field = Any  # django.db.models.Field, which is generic for checkers only


def execute(statement: str, parameters: Mapping[str, object] | Sequence[object]) -> list[Row]:
    """Its rows. Raises Django's database errors.

    That the connection still stands is not asked beforehand.
    """
    return send(statement, parameters).fetchall()


@contextmanager
def together() -> Iterator[None]:
    """What is sent inside travels in one exchange, and what is wrong with it is raised at the end (psycopg's pipeline).

    Nothing inside may ask for rows.
    """
    connection.ensure_connection()
    try:
        with connection.wrap_database_errors, connection.connection.pipeline():
            yield
    except DataError as error:
        raise _in_words(error) from error


def send(statement: str, parameters: Mapping[str, object] | Sequence[object]) -> Sent:
    """Its cursor, whose `rowcount` is there at the end of `together`."""
    connection.ensure_connection()
    if connection.queries_logged:
        connection.queries_log.append({"sql": statement, "time": ""})
    raw = connection.connection
    raw.prepare_threshold = 0  # Django keeps it at None: nothing is prepared then, whoever asks for it
    try:
        with connection.wrap_database_errors:
            return _cursor(raw).execute(statement, parameters, prepare=True)
    except DataError as error:
        raise _in_words(error) from error
    finally:
        raw.prepare_threshold = None


_cursor: type[Sent] = psycopg.Cursor


def _in_words(error: DataError) -> DataError:
    """Of a NUL in JSON PostgreSQL says that an escape sequence is not supported."""
    return DataError("Text that is to be kept cannot hold a NUL (0x00).") if "\\u0000" in str(error) else error


def insert(rows: Sequence[models.Model], *, ignore_conflicts: bool = False) -> None:
    """New rows of one table in one statement."""
    if rows:
        send(_insertion(type(rows[0]), ignore_conflicts), [_rows(rows)])


def insert_for_keys(rows: Sequence[models.Model]) -> None:
    """The same, and they have the primary keys that the database gives out."""
    if rows:
        kind = type(rows[0])
        made = execute(f"{_insertion(kind, False)} returning {kind._meta.pk.column}", [_rows(rows)])
        for row, (key,) in zip(rows, made, strict=True):
            row.pk = key


def update(row: models.Model, changes: Mapping[str, object], *, was: str | None = None) -> Sent:
    """New values of some columns (attribute names) of one row; with `was` only while its `state` is that."""
    columns = _columns(type(row))
    new = {"id": row.pk, **{columns[name].column: _plain(columns[name], value) for name, value in changes.items()}}
    parameters = {"row": msgspec.json.encode(new).decode(), "was": None if was is None else str(was)}
    return send(_updating(type(row), tuple(changes), was is not None), parameters)


def _rows(rows: Sequence[models.Model]) -> str:
    document = [{name: plain(row) for name, plain in _writers(type(row))} for row in rows]
    return msgspec.json.encode(document).decode()


def names(kind: Kind, *only: str, without: Collection[str] = ()) -> tuple[str, ...]:
    """Attribute names of a table's columns, all of them or some, in the order in which `loaded` wants them."""
    return tuple(name for name in _columns(kind) if (name in only or not only) and name not in without)


def loaded(kind: type[M], attributes: Sequence[str], values: Sequence[object]) -> M:
    """A row as Django makes one; what is not among its attributes is read when it is asked for."""
    columns = _columns(kind)
    found = [_read(columns[name], value) for name, value in zip(attributes, values, strict=True)]
    return kind.from_db(connection.alias, attributes, found)


# ---- columns


@cache
def _columns(kind: Kind) -> dict[str, Field]:
    return {field.attname: field for field in kind._meta.concrete_fields}


@cache
def _writers(kind: Kind) -> list[tuple[str, Callable[[models.Model], object]]]:
    given = [field for field in _columns(kind).values() if not isinstance(field, models.AutoField)]
    return [(field.column, _writer(field)) for field in given]


def _writer(field: Field) -> Callable[[models.Model], object]:
    return lambda row: _plain(field, field.pre_save(row, add=True))


def _plain(field: Field, value: object) -> object:
    """As JSON has it, and as PostgreSQL reads it out of JSON."""
    if isinstance(field, models.BinaryField) and value is not None:
        return "\\x" + bytes(value).hex()  # type: ignore[call-overload]
    return value


def _read(field: Field, value: object) -> object:
    return msgspec.json.decode(value) if isinstance(field, models.JSONField) and isinstance(value, str) else value


# ---- texts


@cache
def _insertion(kind: Kind, ignore_conflicts: bool) -> str:
    table, columns = kind._meta.db_table, ", ".join(f'"{name}"' for name, _ in _writers(kind))
    rows = f"select {columns} from json_populate_recordset(null::{table}, %s::text::json)"  # noqa: S608 - our own tables
    return f"insert into {table} ({columns}) {rows}" + (" on conflict do nothing" if ignore_conflicts else "")


@cache
def _updating(kind: Kind, attributes: tuple[str, ...], guarded: bool) -> str:
    table = kind._meta.db_table
    columns = ", ".join(f'"{column}" = new."{column}"' for column in (_columns(kind)[a].column for a in attributes))
    only = " and old.state = %(was)s::text" if guarded else ""
    new = f"json_populate_record(null::{table}, %(row)s::text::json) new"
    return f"update {table} old set {columns} from {new} where old.id = new.id{only}"  # noqa: S608
