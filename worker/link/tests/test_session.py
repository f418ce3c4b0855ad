import os
from pathlib import Path

from worker.link.session import Session, begin_session


def test_a_session_knows_those_that_the_server_may_hold(tmp_path: Path) -> None:
    """The server may have accepted a session whose worker was killed before the answer."""
    first = begin_session(tmp_path)
    second = begin_session(tmp_path)
    assert (first.earlier, second.earlier) == ((), (first.id,))
    second.accepted()
    unheard, third = begin_session(tmp_path), begin_session(tmp_path)
    assert (unheard.earlier, third.earlier) == ((second.id,), (second.id, unheard.id))
    third.accepted()
    Session().accepted()  # of a command: it is no session
    assert begin_session(tmp_path).earlier == (third.id,)


def test_it_keeps_the_accepted_session_and_the_newest_ones(tmp_path: Path) -> None:
    accepted = begin_session(tmp_path)
    accepted.accepted()
    begun = [begin_session(tmp_path).id for _ in range(40)]
    size = (tmp_path / "session").stat().st_size
    assert begin_session(tmp_path).earlier == (accepted.id, *begun[-14:])
    assert (tmp_path / "session").stat().st_size == size, "it could not grow on a full disk"


def test_it_reads_the_file_of_an_earlier_release(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"0123456789abcdef" * 2)
    assert begin_session(tmp_path).earlier == ("0123456789abcdef" * 2,)


def test_a_damaged_file_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"\xff" * 40)
    session = begin_session(tmp_path)
    assert session.earlier == ()
    session.accepted()
    assert begin_session(tmp_path).earlier == (session.id,)


def test_a_session_that_cannot_be_saved_begins_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    session = begin_session(tmp_path)
    assert session.id
    os.rmdir(tmp_path / "session")  # noqa: PTH106
    session.accepted()
    assert begin_session(tmp_path).earlier == (session.id,)


def test_an_order_is_for_its_own_session_or_an_earlier_one(tmp_path: Path) -> None:
    session = Session("c", ("a", "b"))
    assert [session.may_carry_out(each) for each in ("", "c", "b", "a", "d")] == [True, True, True, True, False]
