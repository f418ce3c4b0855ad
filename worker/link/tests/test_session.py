import os
from pathlib import Path

from worker.link.session import Session, begin_session


def test_a_session_knows_the_last_one_that_the_server_accepted(tmp_path: Path) -> None:
    first = begin_session(tmp_path)
    first.accepted()
    unheard = begin_session(tmp_path)  # it never reached the server
    third = begin_session(tmp_path)
    assert (first.previous, unheard.previous, third.previous) == ("", first.id, first.id)
    third.accepted()
    assert begin_session(tmp_path).previous == third.id
    Session().accepted()  # of a command: it is no session
    assert begin_session(tmp_path).previous == third.id


def test_a_damaged_file_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"\xff" * 40)
    session = begin_session(tmp_path)
    assert session.previous == ""
    session.accepted()
    assert begin_session(tmp_path).previous == session.id


def test_a_session_that_cannot_be_saved_begins_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    session = begin_session(tmp_path)
    session.accepted()
    assert session.id
    os.rmdir(tmp_path / "session")  # noqa: PTH106


def test_an_order_is_for_its_own_session_or_the_one_before(tmp_path: Path) -> None:
    session = Session("b", "a")
    assert [session.may_carry_out(each) for each in ("", "b", "a", "c")] == [True, True, True, False]
