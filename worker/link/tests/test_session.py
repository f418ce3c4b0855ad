import os
from pathlib import Path

from worker.link.session import Session, begin_session


def test_a_session_knows_the_one_before_it_in_the_same_directory(tmp_path: Path) -> None:
    first = begin_session(tmp_path)
    second = begin_session(tmp_path)
    assert (first.previous, second.previous) == ("", first.id)
    assert second.id != first.id
    assert begin_session(tmp_path).previous == second.id


def test_a_damaged_file_is_no_session(tmp_path: Path) -> None:
    (tmp_path / "session").write_bytes(b"\xff" * 40)
    assert begin_session(tmp_path).previous == ""
    assert begin_session(tmp_path).previous


def test_a_session_that_cannot_be_saved_begins_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "session").mkdir()
    assert begin_session(tmp_path).id
    os.rmdir(tmp_path / "session")  # noqa: PTH106


def test_an_order_is_for_its_own_session_or_the_one_before(tmp_path: Path) -> None:
    session = Session("b", "a")
    assert [session.may_carry_out(each) for each in ("", "b", "a", "c")] == [True, True, True, False]
