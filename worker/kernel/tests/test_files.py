from pathlib import Path

import pytest

from worker.kernel.files import write_whole
from worker.process import scope
from worker.process.scope import stuck_scopes


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder/record.json"
    write_whole(path, b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: Path("/nowhere").stat())
    with pytest.raises(FileNotFoundError):
        write_whole(path, b"new")
    assert [(each.name, each.read_bytes()) for each in path.parent.iterdir()] == [("record.json", b"old")]


def test_a_record_that_cannot_be_replaced_still_tells_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record in half would make the next start forget the program and its drives."""
    opened = scope.open_scope(tmp_path, "one", drives=("wwn-1",))
    monkeypatch.setattr(opened, "kill", lambda: False)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", half_a_write)
        assert not opened.close()
    (recorded,) = scope._recorded(tmp_path)
    assert recorded.drives == ("wwn-1",)
    assert not opened.close()
    assert [each.drives for each in stuck_scopes(tmp_path)] in ([("wwn-1",)], [])


def half_a_write(path: Path, data: bytes) -> int:
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
    raise OSError(28, "No space left on device")
