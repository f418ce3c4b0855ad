import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from worker.journal import REMEMBER_S, Baseline, Journal, JournalError, LayoutRecord, OpenAttempt, TemporaryFolder


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.db")


KEPT = Baseline(
    run="r", stable_id="loop:/a", name="scheduler", device="loop0", boot_id="b", survives_reboot=False,
    before="none", written="bfq", pending=True, requested=True,
)  # fmt: skip


def text_of(entry: OpenAttempt | None) -> str:
    return entry.order if entry else ""


def test_it_takes_an_attempt_once_even_after_it_was_finished(journal: Journal) -> None:
    assert journal.receive("{}", "a")
    assert not journal.receive("{}", "a")
    journal.start("a")
    journal.finish("a")
    assert not journal.receive("{}", "a")
    assert journal.open_attempts() == ()


def test_it_gives_orders_in_the_order_of_arrival(journal: Journal) -> None:
    journal.receive("first", "z")
    journal.receive("second", "a")
    assert text_of(journal.next_order()) == "first"
    journal.start("z")
    assert text_of(journal.next_order()) == "second"
    journal.finish("a")
    assert journal.next_order() is None
    assert [(entry.attempt, entry.order, entry.started) for entry in journal.open_attempts()] == [("z", "first", True)]


def test_it_forgets_finished_attempts_after_thirty_days_only(tmp_path: Path, journal: Journal) -> None:
    for attempt in ("old", "young", "open"):
        journal.receive("{}", attempt)
    journal.finish("old")
    journal.finish("young")
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.execute("update attempts set finished_at = finished_at - ? where attempt = 'old'", (REMEMBER_S + 10,))
        db.execute("update attempts set received_at = 0 where attempt = 'open'")
    journal.receive("{}", "new")
    assert [journal.receive("{}", name) for name in ("old", "young", "open")] == [True, False, False]


def test_it_sets_aside_a_damaged_row_and_keeps_its_bytes(tmp_path: Path, journal: Journal) -> None:
    journal.receive("{}", "a")
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.execute("update attempts set order_text = cast(x'7bff7d' as text), attempt = cast(x'61ff' as text)")
    (entry,) = journal.open_attempts()
    assert (entry.attempt, entry.order, journal.next_order()) == ("a\ufffd", "{\ufffd}", entry)
    journal.set_aside(entry.number)
    (kept,) = journal.all_set_aside()
    assert (kept.number, kept.attempt, journal.open_attempts()) == (entry.number, "a\ufffd", ())
    with sqlite3.connect(tmp_path / "journal.db") as db:
        assert db.execute("select cast(order_text as blob) from attempts").fetchone() == (b"{\xff}",)


def test_it_reads_the_rows_beside_a_damaged_one(tmp_path: Path, journal: Journal) -> None:
    layout = LayoutRecord(key="k", run="r", line="single", drives=(), mount_point="")
    for number in range(3):
        journal.save_baselines([msgspec.structs.replace(KEPT, name=f"s{number}")])
        journal.save_layout(msgspec.structs.replace(layout, key=f"k{number}"))
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.execute("update baselines set before = cast(x'ff' as text) where name = 's0'")
        db.execute("update baselines set pending = 'perhaps' where name = 's1'")
        db.execute("update layouts set record = cast(x'ff' as text) where key = 'k0'")
        db.execute("""update layouts set record = '{"key":"k1"}' where key = 'k1'""")
    assert [kept.name for kept in journal.baselines()] == ["s2"]
    assert [record.key for record in journal.layouts()] == ["k2"]
    assert journal.unreadable() == 4


def test_it_takes_one_of_many_deliveries_at_once(journal: Journal) -> None:
    taken: list[bool] = []
    threads = [threading.Thread(target=lambda: taken.append(journal.receive("{}", "a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(taken) == [False] * 7 + [True]


def test_it_keeps_baselines_until_they_are_dropped(tmp_path: Path, journal: Journal) -> None:
    journal.save_baselines([KEPT, msgspec.structs.replace(KEPT, run="s")])
    journal.save_baselines([msgspec.structs.replace(KEPT, pending=False, written="kyber")])
    journal.close()
    again = Journal(tmp_path / "journal.db")
    assert again.baselines("r") == (msgspec.structs.replace(KEPT, pending=False, written="kyber"),)
    again.drop_baseline(KEPT)
    assert [kept.run for kept in again.baselines()] == ["s"]


CHILD = """
import sys
from pathlib import Path
from worker.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(100000):
    journal.receive("{}", f"a{number}")
    print(number, flush=True)
"""


def test_it_has_everything_it_confirmed_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(20):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    confirmed = 20 + len([line for line in child.stdout.read().splitlines() if line])
    child.wait(10)
    journal = Journal(path)
    found = [entry.attempt for entry in journal.open_attempts()]
    assert found[:confirmed] == [f"a{number}" for number in range(confirmed)]
    assert not journal.receive("{}", "a0")


def test_it_refuses_a_journal_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database" * 1000)
    with pytest.raises(JournalError) as caught:
        Journal(tmp_path / "bad.db")
    assert caught.value.code == "journal_damaged"
    with sqlite3.connect(tmp_path / "new.db") as db:
        db.execute("pragma user_version = 99")
    with pytest.raises(JournalError, match="version 99"):
        Journal(tmp_path / "new.db")


def test_an_upgrade_keeps_temporary_folders(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.db").close()
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.executescript("drop table folders; create table folders (path text primary key); pragma user_version = 6")
        db.execute("insert into folders values ('/data/temporary.0')")
    assert Journal(tmp_path / "journal.db").folders() == (TemporaryFolder("/data/temporary.0", ""),)
