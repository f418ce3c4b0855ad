"""The closing lines of `make test`, and the second try, over small suites of their own."""

import os
from pathlib import Path

import pytest

from dev.testing.outcomes import Outcomes, worth_another_try
from dev.testing.runner import Suite, close

GOOD, SKIPPED = "def test_good(): pass\n", "import pytest\n@pytest.mark.skip\ndef test_left_out(): pass\n"
BAD = "def test_bad(): assert 1 == 2, 'never'\n"
# Fails at the first call and leaves a file that lets it pass at the second.
CHANCE = """
from pathlib import Path
import os

def test_{name}():
    seen = Path(__file__).with_suffix(".seen")
    seen.exists() or (seen.write_text(str(os.getpid())), 1 / 0)
    assert seen.read_text() != str(os.getpid()), "the same process"
"""
LATE = "import pytest\n@pytest.fixture\ndef late():\n    yield\n    assert 0\ndef test_late(late): pass\n"
PARTS = (("all", ()),)


def played(folder: Path, capfd: pytest.CaptureFixture[str], **files: str) -> tuple[int, list[str], str]:
    """Exit status, what was said after pytest's own words, and the note."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    note = folder / "note.txt"
    env = {**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env.pop("PYTEST_XDIST_WORKER", None)
    status = close(Suite(folder, env, folder), PARTS, Outcomes(passed=frozenset({"of others"})), note)
    return status, capfd.readouterr().out.splitlines(), note.read_text() if note.exists() else ""


def test_it_counts_everything_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said, note = played(tmp_path, capfd, good=GOOD, skipped=SKIPPED)
    assert (status, said[-1], note) == (0, "2 passed, 0 failed, 1 skipped", "")


def test_it_names_what_passed_only_when_run_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said, note = played(tmp_path, capfd, good=GOOD, chance=CHANCE.format(name="chance"))
    assert (status, said[-1]) == (0, "3 passed, 0 failed, 0 skipped")
    assert "passed only when run again alone: test_chance.py::test_chance" in said
    assert "ZeroDivisionError" in note


def test_it_stays_red_where_a_test_fails_twice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said, note = played(tmp_path, capfd, good=GOOD, bad=BAD, late=LATE)
    assert (status, said[-1], note) == (1, "2 passed, 2 failed, 0 skipped", "")
    assert "failed: test_bad.py::test_bad" in said
    assert "failed: test_late.py::test_late" in said


def test_it_gives_no_second_try_to_more_than_three(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    four = {name: CHANCE.format(name=name) for name in "abcd"}
    status, said, _ = played(tmp_path, capfd, **four)
    assert (status, said[-1]) == (1, "1 passed, 4 failed, 0 skipped")
    assert not [line for line in said if "Once more" in line]


def test_it_is_red_where_a_file_cannot_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said, _ = played(tmp_path, capfd, good=GOOD, broken="import nothing_of_this_name\n")
    assert status == 1
    assert "test_broken.py" in said


def test_it_is_red_where_pytest_ends_before_its_tests(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, said, _ = played(tmp_path, capfd, good=GOOD, bad=BAD, end="import os\ndef test_end(): os._exit(0)\n")
    assert status == 1
    assert "pytest ended without saying how its tests went" in "".join(said)


def test_what_is_broken_gets_no_second_try() -> None:
    assert worth_another_try(Outcomes(failed={"a": ""})) == ["a"]
    assert worth_another_try(Outcomes(failed={"a": ""}, broken=("a file",))) == []
