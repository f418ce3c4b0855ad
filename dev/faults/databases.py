"""The worker's databases, read without its code while it may write to them.

A process that closes a file releases all locks that it has on the file, also those of SQLite. So no function here opens
a database's files beside SQLite, as long as SQLite can read them.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path


def rows(database: Path, sql: str) -> list[tuple[object, ...]]:
    """Those of a query; none if the database does not exist. Raises sqlite3.Error."""
    if not database.exists():
        return []
    with _read_only(database) as connection:
        return list(connection.execute(sql))


def keep(database: Path, copy: Path) -> None:
    """Copy the database as its last transaction left it; one that cannot be read, with its other files as they are."""
    try:
        with _read_only(database) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error:
        for path in database.parent.glob(f"{database.name}*"):
            shutil.copy(path, f"{copy}{path.name.removeprefix(database.name)}")


def _read_only(database: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5))
