"""Several threads' wishes, done by one of them."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from webapp.results import combining
from webapp.results.combining import Combiner

LONG_S = 60.0


class Work:
    """Notes what is done together, by whom; the first time it waits until `go` is set."""

    def __init__(self) -> None:
        self.done: list[list[int]] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.at_once = 0
        self.wrong: int | None = None

    def __call__(self, wanted: Sequence[int]) -> None:
        self.at_once += 1
        assert self.at_once == 1
        self.done.append(list(wanted))
        self.begun.set()
        assert self.go.wait(LONG_S)
        self.at_once -= 1
        if self.wrong in wanted:
            raise ValueError(self.wrong)


@pytest.fixture
def work() -> Work:
    return Work()


def combiner(work: Work, most: int = 100) -> Combiner[int]:
    return Combiner(work, weight=lambda each: each, most=most)


def begun(pool: ThreadPoolExecutor, made: Combiner[int], work: Work, first: int) -> Future[None]:
    said = pool.submit(made.take, [first])
    assert work.begun.wait(LONG_S)
    return said


def waiting(pool: ThreadPoolExecutor, made: Combiner[int], *wanted: int, already: int = 0) -> list[Future[None]]:
    """One after another, each once the one before it waits."""
    said = []
    for place, each in enumerate(wanted, already + 1):
        said.append(pool.submit(made.take, [each]))
        until = time.monotonic() + LONG_S
        while len(made._waiting) < place:
            assert time.monotonic() < until
    return said


def test_one_alone_is_done_at_once(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError(f"It waits for {seconds} s.")

    monkeypatch.setattr(time, "sleep", sleep)
    work.go.set()
    made = combiner(work)
    for number in range(20):
        made.take([number])
    assert work.done == [[number] for number in range(20)]


def test_what_comes_meanwhile_is_done_together_and_in_its_order(work: Work) -> None:
    made = combiner(work)
    with ThreadPoolExecutor(4) as pool:
        said = [begun(pool, made, work, 1), *waiting(pool, made, 2, 3, 4)]
        work.go.set()
        for each in said:
            each.result(LONG_S)
    assert work.done == [[1], [2, 3, 4]]


def test_no_more_is_done_at_once_than_it_may(work: Work) -> None:
    made = combiner(work, most=10)
    with ThreadPoolExecutor(5) as pool:
        said = [begun(pool, made, work, 1), *waiting(pool, made, 6, 4, 3, 50)]
        work.go.set()
        for each in said:
            each.result(LONG_S)
    assert work.done == [[1], [6, 4], [3], [50]]


def test_what_goes_wrong_reaches_who_led_and_the_next_go_on(work: Work) -> None:
    made, work.wrong = combiner(work), 2
    with ThreadPoolExecutor(4) as pool:
        said = [begun(pool, made, work, 1), *waiting(pool, made, 2, 3)]
        work.go.set()
        said[0].result(LONG_S)
        with pytest.raises(ValueError, match="2"):
            said[1].result(LONG_S)
        said[2].result(LONG_S)
        made.take([4])
    assert work.done == [[1], [2, 3], [4]]


def test_those_that_prepare_theirs_are_waited_for_but_not_for_ever(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    work.go.set()
    made = combiner(work)
    monkeypatch.setattr(combining, "MOST_S", LONG_S)
    with ThreadPoolExecutor(2) as pool:
        with made.coming():
            said = waiting(pool, made, 1)
            time.sleep(3 * combining.QUIET_S)
            assert work.done == []
            said += waiting(pool, made, 2, already=1)
        for each in said:
            each.result(LONG_S)
        assert work.done == [[1, 2]]
        monkeypatch.setattr(combining, "MOST_S", 0.01)
        with made.coming():
            made.take([3])
    assert work.done == [[1, 2], [3]]
