import os
import sqlite3
import time
from pathlib import Path

import pytest

from worker.contract.base import MAX_REPORT_BYTES, decode
from worker.contract.items import Phase, PhaseName
from worker.contract.reports import Report
from worker.link.session import encode_item, encode_report
from worker.link.spool import KEEP_S, Spool, SpoolFull

ITEM = encode_item(Phase(at=1.0, name=PhaseName.GUARD))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool.db")


def numbers(spool: Spool) -> list[tuple[str, int]]:
    return [(batch.attempt, batch.seq) for batch in spool.waiting(limit_bytes=10**9)]


def test_it_numbers_batches_of_an_attempt_from_one(spool: Spool) -> None:
    assert [spool.append(name, [ITEM]) for name in ("a", "b", "a", "a")] == [1, 1, 2, 3]
    assert numbers(spool) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_it_numbers_on_after_everything_was_confirmed_and_after_a_restart(spool: Spool, tmp_path: Path) -> None:
    spool.append("a", [ITEM])
    spool.append("a", [ITEM])
    spool.confirm("a", 2)
    spool.close()
    again = Spool(tmp_path / "spool.db")
    assert again.append("a", [ITEM]) == 3
    assert numbers(again) == [("a", 3)]


def test_it_holds_batches_that_the_contract_reads(spool: Spool) -> None:
    spool.append("a", [ITEM, ITEM])
    report = decode(encode_report(spool.waiting(limit_bytes=10**6), ["a"]), Report, limit=MAX_REPORT_BYTES)
    assert report.active == ("a",)
    assert [(b.attempt, b.seq, len(b.items)) for b in report.batches] == [("a", 1, 2)]


def test_it_keeps_unconfirmed_batches_over_a_restart(spool: Spool, tmp_path: Path) -> None:
    for _ in range(3):
        spool.append("a", [ITEM])
    spool.confirm("a", 1)
    assert numbers(Spool(tmp_path / "spool.db")) == [("a", 2), ("a", 3)]


def test_it_gives_no_more_than_asked_but_always_one(spool: Spool) -> None:
    for _ in range(5):
        spool.append("a", [b'"' + b"x" * 1000 + b'"'])
    assert len(spool.waiting(limit_bytes=0)) == 1
    assert len(spool.waiting(limit_bytes=2500)) == 2
    assert len(spool.waiting(limit_bytes=10**6, limit_batches=3)) == 3


def test_it_sets_refused_batches_aside_and_what_comes_after_them(spool: Spool) -> None:
    spool.append("a", [ITEM])
    spool.append("b", [ITEM])
    assert spool.refuse("a", "superseded", "A newer attempt is under way.") == 1
    spool.append("a", [ITEM], last=True)
    assert numbers(spool) == [("b", 1)]
    (lot,) = spool.set_aside()
    assert (lot.attempt, lot.batches, lot.code) == ("a", 2, "superseded")
    assert spool.is_finished("a")


def test_it_forgets_what_was_set_aside_a_month_ago(spool: Spool, tmp_path: Path) -> None:
    spool.append("a", [ITEM])
    spool.append("b", [ITEM])
    spool.refuse("a", "gap", "")
    spool.close()
    with sqlite3.connect(tmp_path / "spool.db") as db:
        db.execute("update set_aside set at = ?", (time.time() - KEEP_S - 1,))
        db.execute("update attempts set changed_at = ?", (time.time() - KEEP_S - 1,))
    again = Spool(tmp_path / "spool.db")
    assert again.set_aside() == ()
    assert numbers(again) == [("b", 1)]
    assert again.append("b", [ITEM]) == 2


def test_it_knows_which_attempts_said_their_last_word(spool: Spool) -> None:
    spool.append("a", [ITEM])
    assert spool.knows("a")
    assert not spool.knows("b")
    assert not spool.is_finished("a")
    spool.append("a", [ITEM], last=True)
    spool.confirm("a", 2)
    assert spool.is_finished("a")
    assert spool.unconfirmed() == ()


def test_it_refuses_more_when_the_disk_is_nearly_full_but_takes_the_last_word(tmp_path: Path) -> None:
    free = os.statvfs(tmp_path)
    spool = Spool(tmp_path / "spool.db", reserve_bytes=free.f_bavail * free.f_frsize * 2)
    with pytest.raises(SpoolFull, match="MiB are free"):
        spool.append("a", [ITEM])
    assert spool.append("a", [ITEM], last=True) == 1


def test_it_loses_nothing_when_sqlite_itself_finds_no_room(spool: Spool) -> None:
    spool.append("a", [ITEM])
    pages = spool._db.execute("pragma page_count").fetchone()[0]
    spool._db.execute(f"pragma max_page_count = {pages + 4}")
    with pytest.raises(SpoolFull, match="full"):
        spool.append("a", [b'"' + b"x" * 100_000 + b'"'])
    assert numbers(spool) == [("a", 1)]
    spool._db.execute(f"pragma max_page_count = {pages + 100}")
    assert spool.append("a", [ITEM]) == 2


def test_it_is_not_readable_by_others(spool: Spool, tmp_path: Path) -> None:
    assert (tmp_path / "spool.db").stat().st_mode & 0o077 == 0


def test_it_gives_no_number_again_after_a_power_cut(tmp_path: Path) -> None:
    """What is not synchronised at each commit may be gone then, and the server ignores a number that it has."""
    spool = Spool(tmp_path / "spool.db")
    full = 2
    assert spool._db.execute("pragma synchronous").fetchone() == (full,)
