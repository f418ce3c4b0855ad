"""Hold fio's jobs right before their first I/O, for the common start of a trial on several hosts.

From its launch to its first I/O, fio needs up to a second, and more on a busy host: it calibrates its clock, starts its
jobs and waits for them in steps of 100 ms. So fio is launched early. Each job is prepared completely, and then runs
`exec_prerun`, a shell that waits for a line in a pipe. fio starts a job's clock after that.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from worker.process import Scope
from worker.recipes import Recipe

MAX_JOBS = 4096  # one line for each; they fit into a pipe


class Gate:
    """`fds` must be inherited by fio."""

    fds: tuple[int, ...] = ()

    def __init__(self, reader: int, writer: int) -> None:
        self.fds = (reader,)
        self._writer = writer

    def held(self, recipe: Recipe) -> Recipe:
        """The recipe with jobs that wait. Without a line, exec_prerun fails and so does the job.

        fio appends a redirection to the command, into a file in the target directory. It belongs to `exit 1`, so the
        file is not created.
        """
        wait = f"read line </proc/self/fd/{self.fds[0]} || exit 1"
        return msgspec.structs.replace(recipe, job_text=f"[global]\nexec_prerun={wait}\n{recipe.job_text}")

    def open(self) -> None:
        os.write(self._writer, b"\n" * MAX_JOBS)


class NoGate(Gate):
    """For a job that starts at once."""

    def __init__(self) -> None:
        pass

    def held(self, recipe: Recipe) -> Recipe:
        return recipe

    def open(self) -> None:
        pass


@contextmanager
def gate_of(scope: Scope) -> Iterator[Gate]:
    """The gate of the scope's program; nothing is held if the program may start at once."""
    if not scope.not_before:
        yield NoGate()
        return
    reader, writer = os.pipe()
    try:
        yield Gate(reader, writer)
    finally:
        os.close(reader)
        os.close(writer)
