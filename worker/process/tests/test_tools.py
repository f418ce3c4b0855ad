"""Programs that are missing, hang, or say too much: real ones, made for the purpose."""

from pathlib import Path

import pytest

from worker.process import run
from worker.tests.waiting import until


def program(directory: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> str:
    path = directory / "sweetspot-try"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return path.name


def test_it_gives_back_what_a_program_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run.ask(program(tmp_path, monkeypatch, 'echo "$1 $LC_ALL"; echo no >&2; exit 3'), "a b")
    assert (said.exit_code, said.out, said.err) == (3, "a b C\n", "no\n")


def test_it_says_that_a_program_is_missing() -> None:
    with pytest.raises(run.ToolError, match="not installed"):
        run.ask("sweetspot-no-such-program")


def test_it_ends_a_program_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(run.ToolError, match="did not finish within"):
        run.ask(program(tmp_path, monkeypatch, "exec sleep 60"), limit_s=0.2)


def test_it_reads_only_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("1", "2"):
        body = f"head -c {run.MAX_OUTPUT_BYTES + 1} /dev/zero >&{stream}; exec sleep 60"
        with pytest.raises(run.ToolError, match="printed more than"):
            run.ask(program(tmp_path, monkeypatch, body), limit_s=30)


def test_it_ends_what_the_program_started_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "child"
    with pytest.raises(run.ToolError, match="did not finish within"):
        run.ask(program(tmp_path, monkeypatch, f"sleep 60 & echo $! > {told}; wait"), limit_s=0.5)
    stat = Path(f"/proc/{told.read_text().strip()}/stat")
    until(lambda: not stat.exists() or stat.read_text().split()[2] == "Z")


def test_it_finds_the_first_of_several_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = program(tmp_path, monkeypatch, "exit 0")
    assert run.find(("sweetspot-no-such-program", name)) == str(tmp_path / name)
    assert run.find(("sweetspot-no-such-program",)) == ""
    assert run.ask(str(tmp_path / name)).exit_code == 0
