import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from worker.contract.items import Accepted, Finished, Outcome, Phase, PhaseName, Sample
from worker.contract.tests.examples import SAMPLE
from worker.kernel.clock import Clock
from worker.link.client import Client
from worker.link.reporter import EXCHANGE_EVERY_S, Reporter
from worker.link.spool import Spool, SpoolFull
from worker.process.control import Control
from worker.tests.peer import TOKEN, Peer
from worker.tests.waiting import until

ACCEPTED = Accepted(at=1.0, worker_version="0")
DONE = Finished(at=2.0, outcome=Outcome.DONE)
CLOCK = Clock(speed=10)  # a second between two reports becomes 0.1 s
PERIOD_S = EXCHANGE_EVERY_S / 10


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.down()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool.db")


@pytest.fixture
def reporter(peer: Peer, spool: Spool) -> Iterator[Reporter]:
    reporter = Reporter(spool, Client(peer.url, TOKEN, answer_limit_s=2), clock=CLOCK)
    reporter.start()
    yield reporter
    reporter.stop(limit_s=0)


def sample(second: int) -> Sample:
    return msgspec.structs.replace(SAMPLE, offset_ms=1000 * (second + 1))


def seconds(peer: Peer, attempt: str) -> list[int]:
    return [item.offset_ms // 1000 - 1 for item in peer.items(attempt) if isinstance(item, Sample)]


def await_drained(spool: Spool) -> None:
    until(lambda: not spool.backlog()[0], words=lambda: f"still {spool.backlog()} in the spool")


def test_it_tells_a_story_in_order_and_keeps_nothing(reporter: Reporter, peer: Peer, spool: Spool) -> None:
    reporter.follow(Control("a"))
    reporter.emit("a", ACCEPTED)
    for second in range(5):
        reporter.emit("a", sample(second))
    reporter.finish("a", DONE)
    assert peer.wait_end("a") == DONE
    assert peer.items("a") == [ACCEPTED, *map(sample, range(5)), DONE]
    await_drained(spool)
    assert peer.duplicates == 0


def test_it_sends_the_first_and_the_last_word_at_once(
    reporter: Reporter, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.link.reporter.EXCHANGE_EVERY_S", 300.0)
    peer.report_every_s = 30.0
    reporter.follow(Control("a"))
    reporter.emit("a", ACCEPTED)
    peer.wait(lambda: peer.items("a") == [ACCEPTED])
    reporter.finish("a", DONE)
    peer.wait_end("a")
    assert peer.posts <= 4


def test_it_renews_the_lease_in_every_period_while_there_is_nothing_to_say(reporter: Reporter, peer: Peer) -> None:
    reporter.follow(Control("a"))
    peer.wait(lambda: peer.actives.count(("a",)) >= 3)
    reporter.finish("a", DONE)
    peer.wait_end("a")
    posts = peer.posts
    assert peer.actives[-1] == ()
    time.sleep(3 * PERIOD_S)  # the subject is that no report comes
    assert peer.posts - posts <= 1


def test_it_reports_as_often_as_the_server_asks_but_urgent_words_at_once(reporter: Reporter, peer: Peer) -> None:
    peer.report_every_s = 30.0
    reporter.follow(Control("a"))
    peer.wait(lambda: peer.posts == 1)
    reporter.emit("a", sample(0))
    time.sleep(3 * PERIOD_S)  # the subject is that no report comes
    assert peer.posts == 1
    peer.report_every_s = 1.0
    reporter.emit("b", ACCEPTED)
    peer.wait(lambda: peer.items("b") == [ACCEPTED] and seconds(peer, "a") == [0])
    peer.wait(lambda: peer.posts >= 4)  # in every period again
    peer.report_every_s = 30.0
    reporter.finish("a", DONE)
    peer.wait_end("a")


def test_it_waits_as_asked_although_there_are_new_items_when_a_late_reply_arrives(
    reporter: Reporter, peer: Peer, spool: Spool
) -> None:
    """Otherwise the hosts of a busy server report all the time, whatever it asks for."""
    peer.report_every_s, peer.reply_late_s = 8.0, 5 * PERIOD_S
    reporter.follow(Control("a"))
    peer.wait(lambda: peer.posts == 1)
    arrived_at = time.monotonic()
    reporter.emit("a", sample(0))
    time.sleep(1.1 * PERIOD_S)  # then the open batch is due, before the reply arrives
    reporter.emit("a", sample(1))
    assert spool.backlog()[0] == 1  # on disk
    peer.wait(lambda: seconds(peer, "a") == [0, 1])
    assert time.monotonic() - arrived_at > 10 * PERIOD_S  # 5 until the reply, then 7: a period less than the interval


def test_it_sends_the_rest_of_a_backlog_at_once(
    reporter: Reporter, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.link.reporter.REPORT_BYTES", 1)  # a batch in each report
    peer.report_every_s = 30.0
    for attempt in "abcd":
        reporter.finish(attempt, DONE)
    for attempt in "abcd":
        peer.wait_end(attempt, limit_s=5)


def test_it_passes_on_a_cancellation(reporter: Reporter, peer: Peer) -> None:
    control = Control("a")
    reporter.follow(control)
    peer.cancel.add("a")
    assert control.stopped.wait(15)
    assert control.reason is not None
    assert control.reason.outcome is Outcome.CANCELLED


def test_it_stops_a_refused_attempt_and_sets_its_batches_aside(reporter: Reporter, peer: Peer, spool: Spool) -> None:
    control = Control("a")
    peer.refuse["a"] = "superseded"
    reporter.follow(control)
    reporter.emit("a", ACCEPTED)
    assert control.stopped.wait(15)
    assert control.reason is not None
    assert control.reason.code == "superseded"
    reporter.finish("a", DONE)
    (lot,) = spool.set_aside()
    assert (lot.attempt, lot.batches) == ("a", 2)
    reporter.emit("b", ACCEPTED)
    peer.wait(lambda: bool(peer.items("b")))


def test_it_sends_again_after_a_lost_answer_and_nothing_is_doubled(
    reporter: Reporter, peer: Peer, spool: Spool
) -> None:
    peer.lose_answers = 2
    reporter.follow(Control("a"))
    reporter.emit("a", ACCEPTED)
    for second in range(3):
        reporter.emit("a", sample(second))
    reporter.finish("a", DONE)
    await_drained(spool)
    assert peer.items("a") == [ACCEPTED, *map(sample, range(3)), DONE]
    assert peer.duplicates >= 1


def test_it_loses_and_doubles_nothing_over_an_outage(reporter: Reporter, peer: Peer, spool: Spool) -> None:
    reporter.follow(Control("a"))
    reporter.emit("a", ACCEPTED)
    peer.wait(lambda: peer.items("a") == [ACCEPTED])
    peer.down()
    for second in range(2000):
        reporter.emit("a", sample(second))
    until(lambda: spool.backlog()[1] > 200_000)  # on disk, not in memory
    peer.up()
    reporter.finish("a", DONE)
    peer.wait_end("a")
    assert seconds(peer, "a") == list(range(2000))
    await_drained(spool)


def test_it_sends_what_an_earlier_process_left(peer: Peer, spool: Spool, tmp_path: Path) -> None:
    earlier = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    for second in range(3):
        earlier.emit("a", sample(second))
    earlier.finish("a", DONE)
    spool.close()
    later = Reporter(Spool(tmp_path / "spool.db"), Client(peer.url, TOKEN), clock=CLOCK)
    later.start()
    peer.wait_end("a")
    later.stop(limit_s=20)
    assert seconds(peer, "a") == [0, 1, 2]


def test_it_flushes_when_it_stops(peer: Peer, spool: Spool) -> None:
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    reporter.start()
    reporter.follow(Control("a"))
    reporter.emit("a", sample(0))
    reporter.stop(limit_s=50)
    assert seconds(peer, "a") == [0]


def test_it_keeps_what_it_cannot_flush(peer: Peer, spool: Spool) -> None:
    peer.down()
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    reporter.start()
    reporter.emit("a", sample(0))
    reporter.stop(limit_s=0.5)
    assert spool.backlog()[0] == 1
    peer.up()


def test_it_finds_the_one_batch_for_which_a_report_is_refused(peer: Peer, spool: Spool) -> None:
    for attempt in ("a", "b", "c"):
        spool.append(attempt, [b'{"type":"phase","at":1.0,"name":"guard","target":"of-%b"}' % attempt.encode()])
    peer.bad_words = (b"of-b",)
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    reporter.start()
    await_drained(spool)
    reporter.stop(limit_s=0)
    assert [type(item) for name in ("a", "b", "c") for item in peer.items(name)] == [Phase, Phase]
    assert [(lot.attempt, lot.code) for lot in spool.set_aside()] == [("b", "bad_message")]


def test_it_keeps_everything_while_its_token_is_refused(reporter: Reporter, peer: Peer, spool: Spool) -> None:
    peer.token = "another"
    reporter.emit("a", ACCEPTED)
    peer.wait(lambda: peer.bad_tokens > 1)
    assert spool.backlog()[0] == 1
    peer.token = TOKEN
    peer.wait(lambda: peer.items("a") == [ACCEPTED])
    assert spool.set_aside() == ()


def test_it_sets_aside_what_a_server_restored_from_a_backup_cannot_take(
    reporter: Reporter, peer: Peer, spool: Spool
) -> None:
    reporter.follow(Control("a"))
    reporter.emit("a", ACCEPTED)
    await_drained(spool)
    peer.batches.clear()
    reporter.finish("a", DONE)
    await_drained(spool)
    assert [(lot.attempt, lot.code) for lot in spool.set_aside()] == [("a", "gap")]


def test_it_stops_the_attempt_when_the_disk_is_full(peer: Peer, tmp_path: Path) -> None:
    spool = Spool(tmp_path / "full.db", reserve_bytes=2**60)
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    control = Control("a")
    reporter.follow(control)
    reporter.emit("a", ACCEPTED)
    assert not control.stopped.is_set()  # the disk may have space before something is measured
    reporter.emit("a", sample(0))
    reporter._seal_all()
    assert control.stopped.is_set()
    assert control.reason is not None
    assert control.reason.code == "spool_full"
    reporter.finish("a", Finished(at=1.0, outcome=Outcome.FAILED, code="spool_full", message="full"))
    reporter.start()
    assert peer.wait_end("a").code == "spool_full"
    reporter.stop(limit_s=0)


def test_it_calls_nothing_done_of_which_a_part_found_no_room(peer: Peer, tmp_path: Path) -> None:
    """The disk fills up at the very end, when there is nothing left to be stopped."""
    reporter = Reporter(Spool(tmp_path / "full.db", reserve_bytes=2**60), Client(peer.url, TOKEN), clock=CLOCK)
    reporter.emit("a", sample(0))
    reporter._seal_all()
    reporter.finish("a", DONE)
    reporter.start()
    end = peer.wait_end("a")
    assert (end.outcome, end.code) == (Outcome.FAILED, "spool_full")
    reporter.stop(limit_s=0)


def test_after_a_part_found_no_room_only_the_end_is_reported(peer: Peer, tmp_path: Path) -> None:
    """There is space again at once. A later item could belong to a stream whose start is lost."""
    spool = Spool(tmp_path / "full.db", reserve_bytes=2**60)
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    reporter.emit("a", sample(0))
    reporter._seal_all()
    spool._reserve_bytes = 0
    reporter.emit("a", sample(1))
    reporter.finish("a", DONE)
    reporter.start()
    assert peer.wait_end("a").code == "spool_full"
    assert seconds(peer, "a") == []
    reporter.stop(limit_s=0)


def test_an_attempt_whose_end_finds_no_room_keeps_its_lease_no_longer(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.link.reporter.SPACE_WAIT_S", 0.0)
    spool = Spool(tmp_path / "full.db")
    reporter = Reporter(spool, Client(peer.url, TOKEN), clock=CLOCK)
    reporter.follow(Control("a"))
    with monkeypatch.context() as full:
        full.setattr(spool, "_append", lambda *_args, **_named: (_ for _ in ()).throw(sqlite3.OperationalError("full")))
        with pytest.raises(SpoolFull):
            reporter.finish("a", DONE)
    reporter.start()
    time.sleep(3 * PERIOD_S)  # the subject is that no report comes
    assert peer.actives == []
    reporter.finish("a", DONE)  # there is space again
    assert peer.wait_end("a").outcome is Outcome.DONE
    reporter.stop(limit_s=0)


def test_it_lets_an_attempt_be_done_whose_acceptance_alone_found_no_room(peer: Peer, tmp_path: Path) -> None:
    """As when settings are put back while the disk is full."""
    reporter = Reporter(Spool(tmp_path / "full.db", reserve_bytes=2**60), Client(peer.url, TOKEN), clock=CLOCK)
    reporter.emit("a", ACCEPTED)
    reporter.finish("a", DONE)
    reporter.start()
    assert peer.wait_end("a").outcome is Outcome.DONE
    reporter.stop(limit_s=0)


def test_it_keeps_what_is_said_last_even_from_the_reserve(peer: Peer, tmp_path: Path) -> None:
    reporter = Reporter(Spool(tmp_path / "full.db", reserve_bytes=2**60), Client(peer.url, TOKEN), clock=CLOCK)
    reporter.emit("a", sample(0))
    reporter.finish("a", DONE)
    reporter.start()
    assert peer.wait_end("a").outcome is Outcome.DONE
    assert seconds(peer, "a") == [0]
    reporter.stop(limit_s=0)


def test_it_refuses_an_item_that_breaks_the_contract_where_it_is_made(reporter: Reporter) -> None:
    with pytest.raises(msgspec.ValidationError):
        reporter.emit("a", Phase(at=1.0, name=PhaseName.RUN, percent=101.0))
