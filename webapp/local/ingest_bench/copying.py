"""Binary COPY of what ingest has written: the bytes are made beforehand, so that only the database is timed."""

import time
from dataclasses import dataclass

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]
TABLES = ("results_sample", "results_result")


@dataclass(frozen=True)
class Rows:
    count: int
    tables: dict[str, bytes]


def copy_out(connection: Connection) -> Rows:
    count, tables = 0, {}
    for table in TABLES:
        with connection.cursor() as cursor:
            with cursor.copy(f"copy {table} to stdout (format binary)") as copy:
                tables[table] = b"".join(bytes(part) for part in copy)
            count += cursor.rowcount
    return Rows(count, tables)


def copy_seconds(connection: Connection, rows: Rows) -> float:
    begun = time.monotonic()
    with connection.transaction():
        for table, data in rows.tables.items():
            with connection.cursor() as cursor, cursor.copy(f"copy {table} from stdin (format binary)") as copy:
                copy.write(data)
    return time.monotonic() - begun


def forget(connection: Connection) -> None:
    """Empty the tables, dead rows and all."""
    connection.execute("truncate results_sample, results_result")
