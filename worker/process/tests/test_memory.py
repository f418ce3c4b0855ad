"""A program that needs too much memory is killed, and the worker, with which it shares a limit, is not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MIB = 1024 * 1024
MEMORY = Path("/sys/fs/cgroup/memory")  # cgroup v1
# The worker is larger than its program when the limit is reached. The kernel would kill it without a difference.
WORKER = """
import sys
from worker.process.run import Limits, follow
from worker.process.scope import open_scope
with open(sys.argv[1], "w") as procs:
    procs.write("0")
kept = b"x" * (160 * 2**20)
hungry = "kept = [b'x' * 2**20 for _ in range(10_000)]"
with open_scope(None, "hungry") as scope:
    child = scope.spawn((sys.executable, "-c", hungry))
    print(follow(child, scope, Limits(total_s=30), lambda data: True, grace_s=0))
"""


@pytest.fixture
def limited() -> Iterator[Path]:
    """A memory cgroup with a limit of 256 MiB."""
    folder = MEMORY / f"sweetspot-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no memory cgroup (v1): {error}")
    (folder / "memory.limit_in_bytes").write_text(str(256 * MIB))
    yield folder
    folder.rmdir()


@pytest.mark.root
def test_a_program_that_needs_too_much_memory_is_killed_before_the_worker(limited: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(limited / "cgroup.procs")]
    found = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[3]
    )
    assert (found.returncode, found.stdout) == (0, "137\n"), found.stderr
