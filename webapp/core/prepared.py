"""Statements that PostgreSQL plans once for a connection. For what is done hundreds of times a second, and no more.

Several changes are one statement where they are made `together`: an exchange with the database costs both sides more
than most of what is exchanged.

Django's cursors put values into the text, and a text that is never the same is planned anew each time. These go past
them, on the same connection and in the same transaction. Rows travel as one JSON text: psycopg's type of a number
depends on how large it is, and each set of types would be a statement of its own.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
import psycopg
from django.db import DataError, connection, models
from django.db.transaction import TransactionManagementError

M = TypeVar("M", bound=models.Model)
Row = tuple[Any, ...]
Kind = type[models.Model]
Otherwise = Callable[[], Exception] | None  # what is raised where a change met other rows than expected
Field = Any  # django.db.models.Field, which is generic for checkers only


def execute(statement: str, parameters: Mapping[str, object] | Sequence[object]) -> list[Row]:
    """Its rows. Raises Django's database errors.

    That the connection still stands is not asked beforehand.
    """
    return _send(statement, parameters).fetchall()


@contextmanager
def together() -> Iterator[None]:
    """What is changed inside is one statement at its end, each change a `with` clause of its own.

    All see the rows that were there before any of them, so no row may be changed twice.
    """
    if _gathered.changes is not None:
        yield
        return
    changes = _gathered.changes = []
    try:
        yield
    finally:
        _gathered.changes = None
    if changes:
        _run(changes)


def change(statement: str, parameters: Mapping[str, object], *, expected: int = 0, otherwise: Otherwise = None) -> None:
    """A statement that returns nothing, now or at the end of `together`.

    With `otherwise` that is raised where it changes another number of rows than expected: only inside a transaction,
    which must end with it.
    """
    if otherwise and not connection.in_atomic_block:
        raise TransactionManagementError("A change that may turn out not to be wanted is made inside a transaction.")
    made = _Change(statement, parameters, expected, otherwise)
    if _gathered.changes is None:
        _run([made])
    else:
        _gathered.changes.append(made)


@dataclass
class _Change:
    statement: str
    parameters: Mapping[str, object]
    expected: int
    otherwise: Otherwise

    def named(self, name: str) -> str:
        """As a `with` clause, its parameters told apart from the others'."""
        return f"{name} as ({self.statement.replace('%(', f'%({name}_')} returning 1)"


class _Gathered(threading.local):
    changes: list[_Change] | None = None


_gathered = _Gathered()


def _run(changes: Sequence[_Change]) -> None:
    names = [f"c{place}" for place in range(len(changes))]
    clauses = ", ".join(change.named(name) for name, change in zip(names, changes, strict=True))
    counts = ", ".join(f"(select count(*) from {name})" for name in names)  # noqa: S608 - our own names
    parameters = {
        f"{name}_{key}": value
        for name, change in zip(names, changes, strict=True)
        for key, value in change.parameters.items()
    }
    (counted,) = execute(f"with {clauses} select {counts}", parameters)
    for change, number in zip(changes, counted, strict=True):
        if change.otherwise and number != change.expected:
            raise change.otherwise()


def _send(statement: str, parameters: Mapping[str, object] | Sequence[object]) -> psycopg.Cursor[Row]:
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


_cursor: type[psycopg.Cursor[Row]] = psycopg.Cursor


def _in_words(error: DataError) -> DataError:
    """Of a NUL in JSON PostgreSQL says that an escape sequence is not supported."""
    return DataError("Text that is to be kept cannot hold a NUL (0x00).") if "\\u0000" in str(error) else error


def insert(rows: Sequence[models.Model], *, ignore_conflicts: bool = False) -> None:
    """New rows of one table in one statement."""
    if rows:
        change(_insertion(type(rows[0]), ignore_conflicts), {"rows": _rows(rows)})


def insert_for_keys(rows: Sequence[models.Model]) -> None:
    """The same at once, and they have the primary keys that the database gives out."""
    if rows:
        kind = type(rows[0])
        made = execute(f"{_insertion(kind, False)} returning {kind._meta.pk.column}", {"rows": _rows(rows)})
        for row, (key,) in zip(rows, made, strict=True):
            row.pk = key


def update(
    rows: Sequence[models.Model],
    attributes: Collection[str],
    *,
    was: str | None = None,
    otherwise: Otherwise = None,
) -> None:
    """What rows of one table have in some columns (attribute names); with `was` only where their `state` is that.

    With `otherwise` that is raised where it was not so of all of them.
    """
    kind = type(rows[0])
    columns = [(field.column, name, field) for name, field in _columns(kind).items() if name in attributes]
    new = [
        {"id": row.pk, **{column: _plain(field, getattr(row, name)) for column, name, field in columns}} for row in rows
    ]
    parameters = {"rows": msgspec.json.encode(new).decode()} | ({} if was is None else {"was": str(was)})
    statement = _updating(kind, tuple(column for column, _, _ in columns), was is not None)
    change(statement, parameters, expected=len(rows), otherwise=otherwise)


def _rows(rows: Sequence[models.Model]) -> str:
    writers = _writers(type(rows[0]))
    document = [{name: plain(row) for name, plain in writers} for row in rows]
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
    filled_here = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    if filled_here or isinstance(field, models.BinaryField):
        return lambda row: _plain(field, field.pre_save(row, add=True))
    return attrgetter(field.attname)


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
    rows = f"select {columns} from json_populate_recordset(null::{table}, %(rows)s::text::json)"  # noqa: S608 - our own tables
    return f"insert into {table} ({columns}) {rows}" + (" on conflict do nothing" if ignore_conflicts else "")


@cache
def _updating(kind: Kind, columns: tuple[str, ...], guarded: bool) -> str:
    table = kind._meta.db_table
    changes = ", ".join(f'"{column}" = new."{column}"' for column in columns)
    # no `=`, for which all rows in that state would be looked through by an index
    only = " and old.state is not distinct from %(was)s::text" if guarded else ""
    new = f"json_populate_recordset(null::{table}, %(rows)s::text::json) new"
    return f"update {table} old set {changes} from {new} where old.id = new.id{only}"  # noqa: S608
