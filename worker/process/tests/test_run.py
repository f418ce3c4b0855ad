"""Programs that hang, say too much, or ignore SIGTERM: each ends, for a reason that the caller can read."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from worker.process.run import Limits, Reason, Stopped, ask, follow
from worker.process.scope import open_scope
from worker.tests.waiting import until


def run(tmp_path: Path, script: str, cancelled: threading.Event | None = None, **limits: float) -> tuple[int, bytes]:
    said = bytearray()

    def keep(data: bytes) -> bool:
        said.extend(data)
        return True

    with open_scope(tmp_path, "a") as scope:
        child = scope.spawn(("sh", "-c", script))
        code = follow(child, scope, Limits(**{"total_s": 20.0, **limits}), keep, cancelled=cancelled, grace_s=0.5)
    return code, bytes(said)


def reason(tmp_path: Path, script: str, cancelled: threading.Event | None = None, **limits: float) -> Reason:
    with pytest.raises(Stopped) as caught:
        run(tmp_path, script, cancelled, **limits)
    return caught.value.reason


def test_it_follows_a_program_to_its_end(tmp_path: Path) -> None:
    assert run(tmp_path, "echo one; sleep 0.4; echo two; exit 3") == (3, b"one\ntwo\n")


def test_it_waits_for_a_program_that_closed_its_output(tmp_path: Path) -> None:
    assert run(tmp_path, "exec >&-; sleep 0.5; exit 4") == (4, b"")


@pytest.mark.parametrize(
    ("script", "limits", "expected"),
    [
        ("sleep 60", {"total_s": 0.3}, Reason.TIMEOUT),
        ("echo a; sleep 60", {"silence_s": 0.3}, Reason.SILENT),
        ("while :; do echo a; sleep 0.05; done", {"silence_s": 0.5, "total_s": 1.0}, Reason.TIMEOUT),
        ("exec >&-; sleep 60", {"silence_s": 0.3}, Reason.SILENT),
        ("yes", {"output_bytes": 1000}, Reason.TOO_MUCH_OUTPUT),
        ("yes >&2", {"error_bytes": 1000}, Reason.TOO_MUCH_OUTPUT),
        ("yes >&2", {}, Reason.TOO_MUCH_OUTPUT),
    ],
)
def test_it_stops_a_program_at_a_limit(tmp_path: Path, script: str, limits: dict[str, float], expected: Reason) -> None:
    assert reason(tmp_path, script, None, **limits) is expected


def test_it_stops_a_program_that_is_cancelled(tmp_path: Path) -> None:
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    assert reason(tmp_path, "sleep 60", cancelled) is Reason.CANCELLED


def test_it_sends_term_first_so_that_a_program_can_tidy_up(tmp_path: Path) -> None:
    script = f"trap 'echo tidy > {tmp_path}/told; exit' TERM; while :; do sleep 0.05; done"
    assert reason(tmp_path, script, total_s=0.5) is Reason.TIMEOUT
    assert (tmp_path / "told").read_text() == "tidy\n"


def test_it_kills_a_program_that_ignores_term(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    assert reason(tmp_path, script, total_s=0.5) is Reason.TIMEOUT
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_it_merges_standard_error_in_the_order_of_writing() -> None:
    said = ask("sh", "-c", "echo one; echo two >&2; echo three", merge_stderr=True)
    assert (said.out, said.err) == ("one\ntwo\nthree\n", "")


def test_a_tool_ends_with_the_worker_that_asked(tmp_path: Path) -> None:
    body = f"from worker.process.run import ask; ask('sh', '-c', 'echo $$ > {tmp_path}/pid; exec sleep 60', limit_s=50)"
    worker = subprocess.Popen([sys.executable, "-c", body], cwd=Path(__file__).parents[3])
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    tool = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    worker.kill()
    worker.wait(5)
    until(lambda: not tool.exists())
