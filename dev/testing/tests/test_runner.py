"""The totals of `make test` and the second try, with small suites in separate pytest processes."""

import os
from pathlib import Path

import pytest

from dev.stack.temporary import temporary
from dev.testing.runner import QUICK, environment, pytest_part, run_parts

GOOD, SKIPPED = "def test_good(): pass\n", "import pytest\n@pytest.mark.skip\ndef test_left_out(): pass\n"
BAD = "import pytest\n@pytest.mark.pipeline\ndef test_bad(): assert 1 == 2, 'never'\n"
# Fails the first time and passes the second time. Only tests of whole systems get a second try.
CHANCE = """
import pytest
from pathlib import Path

@pytest.mark.{mark}
def test_{name}():
    seen = Path(__file__).with_suffix(".seen")
    seen.exists() or (seen.touch(), 1 / 0)
"""
LATE = "import pytest\n@pytest.fixture\ndef late():\n    yield\n    assert 0\ndef test_late(late): pass\n"


def run(folder: Path, capfd: pytest.CaptureFixture[str], *options: str, **files: str) -> tuple[int, list[str], str]:
    """Exit status, output, and the file of second tries."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\nmarkers =\n  pipeline\n  unit\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    second_tries = folder / "second-tries.txt"
    env = {**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env.pop("PYTEST_XDIST_WORKER", None)
    part = pytest_part("all", folder / "report.xml", "-p", "pytest_rerunfailures", *options, folder=folder)
    status = run_parts([part], env, second_tries)
    return status, capfd.readouterr().out.splitlines(), second_tries.read_text() if second_tries.exists() else ""


def test_the_folder_of_real_results_reaches_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETSPOT_FIO_RESULTS", "/srv/results")
    monkeypatch.setenv("SWEETSPOT_OTHER", "1")
    with temporary("test") as state:
        env = environment(state)
    assert env["SWEETSPOT_FIO_RESULTS"] == "/srv/results"
    assert not env.keys() & {"SWEETSPOT_OTHER", "SWEETSPOT_PUBLIC_URL"}


def test_it_counts_everything_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, second_tries = run(tmp_path, capfd, good=GOOD, skipped=SKIPPED)
    assert (status, output[-1], second_tries) == (0, "1 passed, 0 failed, 1 skipped", "")


def test_it_leaves_out_slow_tests(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(tmp_path, capfd, *QUICK, good=GOOD, bad=BAD)
    assert (status, output[-1]) == (0, "1 passed, 0 failed, 0 skipped")


def test_it_writes_wall_and_cpu_time_of_each_test(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    work = "from time import process_time as t\ndef test_work():\n    end = t() + 0.3\n    while t() < end: pass\n"
    rest = "import time\ndef test_rest(): time.sleep(0.3)\n"
    file = tmp_path / "waiting.tsv"
    run(tmp_path, capfd, f"--waiting={file}", work=work, rest=rest)
    seconds = {name: (float(wall), float(cpu)) for wall, cpu, name in map(str.split, file.read_text().splitlines())}
    assert seconds["test_work.py::test_work"][1] >= 0.3
    wall_s, cpu_s = seconds["test_rest.py::test_rest"]
    assert wall_s >= 0.3 > cpu_s


def test_it_names_what_passed_only_at_the_second_try(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, second_tries = run(tmp_path, capfd, good=GOOD, chance=CHANCE.format(name="chance", mark="pipeline"))
    assert (status, output[-1]) == (0, "2 passed, 0 failed, 0 skipped")
    assert "second try: test_chance.py::test_chance" in output
    assert "ZeroDivisionError" in second_tries


def test_it_gives_other_tests_no_second_try(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(tmp_path, capfd, chance=CHANCE.format(name="chance", mark="unit"))
    assert (status, output[-1]) == (1, "0 passed, 1 failed, 0 skipped")


def test_it_fails_if_a_test_fails_twice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(tmp_path, capfd, good=GOOD, bad=BAD, late=LATE)
    assert (status, output[-1]) == (1, "1 passed, 2 failed, 0 skipped")
    assert "failed: test_bad::test_bad" in output
    assert "failed: test_late::test_late" in output


def test_it_fails_if_more_than_three_tests_need_a_second_try(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    four = {name: CHANCE.format(name=name, mark="pipeline") for name in "abcd"}
    status, output, _ = run(tmp_path, capfd, **four)
    assert status == 1
    assert "4 second tries; at most 3 are allowed" in output


def test_it_fails_if_a_file_cannot_be_imported(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(tmp_path, capfd, good=GOOD, broken="import nothing_of_this_name\n")
    assert status == 1
    assert [line for line in output if line.startswith("failed: ") and "test_broken" in line]


def test_it_fails_if_pytest_ends_before_its_tests(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(tmp_path, capfd, good=GOOD, bad=BAD, end="import os\ndef test_end(): os._exit(0)\n")
    assert status == 1
    assert "no report of its tests" in "".join(output)
