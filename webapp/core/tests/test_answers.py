"""Answers in Redis: stored once, never read under another seal or by other code, and computed without Redis."""

import threading
import time
import zlib
from collections.abc import Callable, Sequence

import msgspec
import pytest
import redis
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from webapp.core import answers, changes
from webapp.core.answers import (
    Parts,
    Question,
    _is_being_renewed,
    all_answered,
    all_parts,
    answered,
    answered_or_earlier,
)


class Number(msgspec.Struct):
    value: float


class Counted:
    """Computes 1.0, 2.0 and so on."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> Number:
        self.times += 1
        return Number(float(self.times))


def answer(texts: Sequence[str], scopes: Sequence[str], kind: type[Number], compute: Callable[[], Number]) -> Number:
    return answered(Question(tuple(texts), tuple(scopes), kind, compute))


@pytest.fixture(autouse=True)
def _no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_silent_until_s", 0.0)
    monkeypatch.setattr(answers, "REDIS_LIMIT_S", 10.0)  # beside other tests, Redis may answer late
    answers._client.cache_clear()
    for key in answers._client().scan_iter("answer:*"):
        answers._client().delete(key)


@pytest.mark.django_db
def test_it_is_computed_once_for_each_question_until_its_scope_changes() -> None:
    compute = Counted()
    assert [answer(["a"], ["x"], Number, compute).value for _ in range(2)] == [1.0, 1.0]
    assert answer(["b"], ["x"], Number, compute).value == 2.0
    changes.note("y")
    assert answer(["a"], ["x"], Number, compute).value == 1.0
    changes.note("x")
    assert answer(["a"], ["x"], Number, compute).value == 3.0


@pytest.mark.django_db
def test_readers_in_another_time_zone_and_other_code_have_answers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = Counted()
    answer(["a"], [], Number, compute)
    with timezone.override("Asia/Tokyo"):
        assert answer(["a"], [], Number, compute).value == 2.0
    monkeypatch.setattr(answers, "_code", lambda: b"other")
    assert answer(["a"], [], Number, compute).value == 3.0


@pytest.mark.django_db
def test_an_answer_that_names_no_times_is_the_same_in_all_time_zones() -> None:
    compute = Counted()
    answered(Question(("a",), (), Number, compute, names_times=False))
    with timezone.override("Asia/Tokyo"):
        assert answered(Question(("a",), (), Number, compute, names_times=False)).value == 1.0


@pytest.mark.django_db
def test_questions_in_one_slot_replace_each_other_and_are_never_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "SLOTS", 1)
    compute = Counted()
    assert [answer([name], [], Number, compute).value for name in "aabbaa"] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


@pytest.mark.django_db
def test_an_answer_that_somebody_else_wrote_is_not_read() -> None:
    compute = Counted()
    answer(["a"], [], Number, compute)
    (slot,) = answers._client().scan_iter("answer:*")
    stored = answers._client().get(slot)
    assert isinstance(stored, bytes)
    answers._client().set(slot, stored[:48] + zlib.compress(msgspec.msgpack.encode(Number(9.0))))
    assert answer(["a"], [], Number, compute).value == 2.0


@pytest.mark.django_db
def test_a_large_answer_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_BYTES", 10)
    compute = Counted()
    assert [answer(["a"], [], Number, compute).value for _ in range(2)] == [1.0, 2.0]


@pytest.mark.django_db
def test_what_is_raised_is_not_stored_and_the_next_one_does_not_wait() -> None:
    def fails() -> Number:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        answer(["a"], [], Number, fails)
    began_s = time.monotonic()
    assert answer(["a"], [], Number, Counted()).value == 1.0
    assert time.monotonic() - began_s < answers.COMPUTING_S / 2


@pytest.mark.django_db
def test_without_redis_it_computes_and_asks_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def gone() -> redis.Redis:
        asked.append(1)
        return redis.Redis(port=1, socket_connect_timeout=0.1)

    monkeypatch.setattr(answers, "_client", gone)
    compute = Counted()
    assert [answer(["a"], [], Number, compute).value for _ in range(3)] == [1.0, 2.0, 3.0]
    assert len(asked) == 1
    monkeypatch.setattr(answers, "_silent_until_s", 0.0)
    answer(["a"], [], Number, compute)
    assert len(asked) == 2


@pytest.mark.django_db
def test_a_second_reader_waits_for_the_answer_that_is_being_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "seals", lambda several: [7] * len(several))  # threads have connections of their own
    started, go_on = threading.Event(), threading.Event()
    compute = Counted()

    def slow() -> Number:
        started.set()
        assert go_on.wait(10)
        return compute()

    values: list[float] = []
    first = threading.Thread(target=lambda: values.append(answer(["a"], [], Number, slow).value))
    first.start()
    assert started.wait(10)
    second = threading.Thread(target=lambda: values.append(answer(["a"], [], Number, compute).value))
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)
    assert values == [1.0, 1.0]
    assert compute.times == 1


@pytest.mark.django_db
def test_an_answer_that_was_stored_after_the_caller_looked_is_not_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compute = Counted()
    read, times = answers._read, 0

    def too_early(slots: Sequence[str], keys: Sequence[bytes]) -> list[bytes | None]:
        nonlocal times
        times += 1
        if times > 1:
            return read(slots, keys)
        answer(["a"], [], Number, compute)  # another reader computes and stores it now
        return [None]

    monkeypatch.setattr(answers, "_read", too_early)
    assert answer(["a"], [], Number, compute).value == 1.0
    assert compute.times == 1
    assert list(answers._client().scan_iter("answer:claimed:*")) == []


@pytest.mark.django_db
def test_several_stored_answers_are_read_with_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    compute = Counted()
    questions = [Question((name,), ("x", name), Number, compute) for name in "abc"]
    all_answered(questions)
    changes.note("b")
    with django_assert_num_queries(1):
        assert [one.value for one in all_answered(questions)] == [1.0, 4.0, 3.0]
    assert all_answered(list[Question[Number]]()) == []


@pytest.mark.django_db
def test_only_the_parts_that_have_changed_are_computed() -> None:
    computed: list[list[str]] = []

    def compute(names: Sequence[str]) -> dict[str, Number]:
        computed.append([*names])
        return {name: Number(float(len(computed))) for name in names}

    def values() -> dict[str, float]:
        parts = Parts(("a",), {"first": "x", "second": "y", "third": "z"}, Number, compute)
        return {name: part.value for name, part in all_parts(parts).items()}

    assert values() == {"first": 1.0, "second": 1.0, "third": 1.0}
    assert values() == {"first": 1.0, "second": 1.0, "third": 1.0}
    changes.note("y")
    assert values() == {"first": 1.0, "second": 2.0, "third": 1.0}
    assert computed == [["first", "second", "third"], ["second"]]


@pytest.mark.django_db
def test_a_part_that_is_too_large_is_computed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_PART_BYTES", 1)
    compute = Counted()
    parts = Parts(("a",), {"first": "x"}, Number, lambda _: {"first": compute()})
    assert [all_parts(parts)["first"].value for _ in range(2)] == [1.0, 2.0]


@pytest.mark.django_db
def test_an_earlier_answer_has_its_time_and_is_renewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_is_being_renewed", _is_being_renewed)
    compute, renewals = Counted(), list[int]()
    question = Question(("a",), ("x",), Number, compute)

    def read() -> tuple[float, bool]:
        number, as_of = answered_or_earlier(question, lambda: renewals.append(1))
        return number.value, as_of is None

    assert [read(), read()] == [(1.0, True), (1.0, True)]
    changes.note("x")
    assert [read(), read()] == [(1.0, False), (1.0, False)]
    assert len(renewals) == 1
    answered(question)
    assert read() == (2.0, True)


@pytest.mark.django_db
def test_readers_compute_an_answer_that_is_not_renewed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_is_being_renewed", _is_being_renewed)
    monkeypatch.setattr(answers, "RENEWAL_S", 0.2)
    question = Question(("a",), ("x",), Number, Counted())
    answered(question)
    changes.note("x")
    assert answered_or_earlier(question, lambda: None)[1] is not None
    time.sleep(0.25)  # Redis measures the time
    number, as_of = answered_or_earlier(question, lambda: None)
    assert (number.value, as_of) == (2.0, None)


@pytest.mark.django_db
def test_an_earlier_answer_that_somebody_else_wrote_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_is_being_renewed", _is_being_renewed)
    question = Question(("a",), ("x",), Number, Counted())
    answered(question)
    stored = answers._client().get(question.slot)
    assert isinstance(stored, bytes)
    answers._client().set(question.slot, stored[:48] + zlib.compress(msgspec.msgpack.encode(Number(9.0))))
    changes.note("x")
    assert answered_or_earlier(question, lambda: None)[0].value == 2.0
