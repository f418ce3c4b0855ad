"""The log on its way to the server."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker import log
from worker.contract.reports import LogLevel
from worker.link.client import Client
from worker.link.reporter import Reporter
from worker.link.spool import Spool
from worker.log import Shipping, about, hide
from worker.tests.peer import TOKEN, Peer

logger = logging.getLogger("worker.test_of_the_log")


@pytest.fixture
def shipping() -> Iterator[Shipping]:
    shipping = Shipping()
    logger.addHandler(shipping)
    logger.setLevel(logging.DEBUG)
    yield shipping
    logger.removeHandler(shipping)


def texts(shipping: Shipping) -> list[str]:
    waiting = shipping.waiting()
    return [line.text.partition(": ")[2] for line in waiting.lines] if waiting else []


def test_it_carries_level_time_and_order(shipping: Shipping) -> None:
    logger.debug("not this")
    with about("a-1"):
        logger.warning("%d of %d", 1, 2)
    logger.info("plain")
    waiting = shipping.waiting()
    assert waiting
    first, second = waiting.lines
    assert (first.number, first.level, first.attempt) == (1, LogLevel.WARNING, "a-1")
    assert first.text == "worker.test_of_the_log: 1 of 2"
    assert (second.number, second.level, second.attempt) == (2, LogLevel.INFO, "")


def test_it_never_carries_a_secret(shipping: Shipping) -> None:
    hide("s3cret-token-of-this-host")
    hide("short")
    try:
        raise ValueError("with s3cret-token-of-this-host inside")
    except ValueError:
        logger.exception("a short s3cret-token-of-this-host")
    (text,) = texts(shipping)
    assert "s3cret" not in text
    assert "a short …" in text
    assert "ValueError: with … inside" in text


def test_it_keeps_the_end_of_a_long_trace_and_takes_any_text() -> None:
    """The texts themselves are no log lines here: pytest could not write down the second."""
    long = log._shippable("x" * 5000 + "the end")
    assert len(long) == log.LINE_CHARACTERS
    assert long.endswith("the end")
    assert log._shippable("half a character \ud800") == "half a character ?"


def test_it_holds_only_so_many_and_says_how_many_are_missing(
    shipping: Shipping, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "QUEUE_LINES", 10)
    for number in range(25):
        logger.info("line %d", number)
    waiting = shipping.waiting()
    assert waiting
    assert waiting.lines[0].text.startswith("Dropped because the queue was full: 15 lines")
    assert [line.number for line in waiting.lines] == list(range(15, 26))
    shipping.confirm(waiting)
    assert shipping.empty
    logger.info("later")
    assert texts(shipping) == ["later"]


def test_it_ships_with_reports_and_by_itself_each_line_once(tmp_path: Path, shipping: Shipping) -> None:
    peer = Peer()
    reporter = Reporter(Spool(tmp_path / "spool.db"), Client(peer.url, TOKEN, answer_limit_s=2), shipping=shipping)
    peer.lose_answers = 1
    reporter.start()
    for number in range(250):
        logger.info("line %d", number)
    peer.wait(lambda: len(peer.log) == 250)
    reporter.stop(limit_s=2)
    peer.down()
    assert sorted(number for _, number in peer.log) == list(range(1, 251))
    assert shipping.empty
