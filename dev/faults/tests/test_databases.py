import sqlite3
from contextlib import closing
from pathlib import Path

from dev.faults import databases


def test_a_copy_has_what_is_only_in_the_log_of_a_database_in_use(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as worker:
        worker.executescript("pragma journal_mode=wal; create table t (n); insert into t values (1);")
        databases.keep(tmp_path / "journal.db", tmp_path / "copy.db")
        worker.execute("insert into t values (2)")
        assert databases.rows(tmp_path / "copy.db", "select n from t") == [(1,)]
        assert databases.rows(tmp_path / "journal.db", "select n from t") == [(1,), (2,)]


def test_a_damaged_database_is_kept_with_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"damaged" * 1000)
    (tmp_path / "journal.db-wal").write_bytes(b"log")
    databases.keep(tmp_path / "journal.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_bytes() == b"damaged" * 1000
    assert (tmp_path / "copy.db-wal").read_bytes() == b"log"


def test_a_database_that_does_not_exist_has_no_rows(tmp_path: Path) -> None:
    assert databases.rows(tmp_path / "journal.db", "select n from t") == []
