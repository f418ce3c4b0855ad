"""Changes of rows that answers read, counted by scope: triggers write them in the transaction of the change itself.

A scope is a set of rows that answers read together, such as `run <id>`. Each statement that changes one of its rows
adds a random number to the scope. The seal of an answer is the exclusive or of the numbers of all its scopes. So:

- A seal changes when a change is committed, never before, and not at all after a rollback.
- No earlier seal returns, also if an old backup was restored: its next changes have new numbers.
- Writers do not wait for each other, as they would for the row of a counter: they only insert.
- `merge` replaces all numbers of a scope by one, and no seal changes.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from django.apps import apps
from django.db import connection

from webapp.core.models import Change

_PREFIX = "seal_"  # of triggers and functions
_TABLE = Change._meta.db_table
_DIFFER = "FROM old_rows o JOIN new_rows n USING ({pk}) WHERE ({old}) IS DISTINCT FROM ({new})"
_ROWS = {  # of each operation: its transition tables, and the rows in them that count
    "insert": ("NEW TABLE AS new_rows", "SELECT * FROM new_rows"),
    "delete": ("OLD TABLE AS old_rows", "SELECT * FROM old_rows"),
    "update": ("OLD TABLE AS old_rows NEW TABLE AS new_rows", f"SELECT o.* {_DIFFER} UNION ALL SELECT n.* {_DIFFER}"),
}


@dataclass(frozen=True)
class Watch:
    """`scopes` are SQL expressions of a changed row `r`: text, or null for no scope. An update counts only if one of
    `columns` has another value; empty: any column."""

    scopes: tuple[str, ...]
    columns: tuple[str, ...] = ()


def install(watched: Mapping[str, Watch]) -> None:
    """Create the triggers that are missing or differ, and remove others. `watched`: by model, such as `runs.Run`."""
    wanted = dict(_trigger(model, watch, operation) for model, watch in watched.items() for operation in _ROWS)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, obj_description(oid, 'pg_proc') FROM pg_proc WHERE starts_with(proname, %s)", [_PREFIX]
        )
        known = dict(cursor.fetchall())
        for name in known:
            if known[name] != _digest(wanted.get(name, "")):
                cursor.execute(f"DROP FUNCTION {name} CASCADE")  # and its trigger
        for name, statements in wanted.items():
            if known.get(name) != _digest(statements):
                cursor.execute(f"{statements} COMMENT ON FUNCTION {name} IS '{_digest(statements)}'")


def _digest(statements: str) -> str:
    return hashlib.sha256(statements.encode()).hexdigest()


def _trigger(model: str, watch: Watch, operation: str) -> tuple[str, str]:
    """Its name, and the statements that create it and its function."""
    meta = apps.get_model(model)._meta
    columns = watch.columns or tuple(str(field.column) for field in meta.concrete_fields)
    old, new = (", ".join(f"{side}.{column}" for column in columns) for side in ("o", "n"))
    pk = ", ".join(str(field.column) for field in meta.pk_fields)
    tables, rows = _ROWS[operation]
    scopes = " UNION ".join(f"SELECT {scope} AS scope FROM changed r" for scope in watch.scopes)  # noqa: S608
    name = f"{_PREFIX}{meta.db_table}_{operation}"
    statements = f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            WITH changed AS ({rows.format(pk=pk, old=old, new=new)})
            INSERT INTO {_TABLE} (scope, number)
            SELECT scope, {_RANDOM} FROM ({scopes}) AS found WHERE scope IS NOT NULL;
            RETURN NULL;
        END $$;
        CREATE TRIGGER {name} AFTER {operation} ON {meta.db_table} REFERENCING {tables}
        FOR EACH STATEMENT EXECUTE FUNCTION {name}();
    """  # noqa: S608 - our own names
    return name, statements


# 60 of the bits are random.
_RANDOM = "('x' || left(translate(gen_random_uuid()::text, '-', ''), 16))::bit(64)::bigint"


def note(scope: str) -> None:
    """A change that no trigger sees, such as that of a partition."""
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {_TABLE} (scope, number) VALUES (%s, {_RANDOM})", [scope])  # noqa: S608


def seal(scopes: Collection[str]) -> int:
    return seals([scopes])[0]


def seals(several: Sequence[Collection[str]]) -> list[int]:
    """One for each collection of scopes, with one query. Read seals before the rows: then an answer from newer rows is
    stored under a seal that nobody asks for again."""
    known = dict.fromkeys((scope for scopes in several for scope in scopes), 0)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT scope, bit_xor(number) FROM {_TABLE} WHERE scope = ANY(%s) GROUP BY scope",  # noqa: S608
            [list(known)],
        )
        known |= dict(cursor.fetchall())
    return [reduce(xor, (known[scope] for scope in {*scopes}), 0) for scopes in several]


def merge() -> None:
    """One statement, so readers see the rows before or after it. Several processes may merge at once."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            WITH several AS (SELECT scope FROM {_TABLE} GROUP BY scope HAVING count(*) > 1),
            locked AS (
                SELECT id FROM {_TABLE} WHERE scope IN (SELECT scope FROM several)
                FOR UPDATE SKIP LOCKED
            ),
            merged AS (
                DELETE FROM {_TABLE} WHERE id IN (SELECT id FROM locked) RETURNING scope, number
            )
            INSERT INTO {_TABLE} (scope, number)
            SELECT scope, bit_xor(number) FROM merged GROUP BY scope
            """  # noqa: S608 - our own names
        )
