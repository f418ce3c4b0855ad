"""Temporary state directories: one belongs to one process, and the next call removes those whose process was killed."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from dev.console import step
from dev.stack import lifecycle, processes
from dev.stack.processes import Record
from dev.stack.state import State, default_state

OWNER = "owner.json"
SHARED_VARIABLE = "SWEETSPOT_SHARED_STATE"


@contextmanager
def temporary(purpose: str, remove: Callable[[State], None] = lifecycle.remove) -> Iterator[State]:
    """A prepared state directory; at the end `remove` stops its processes and deletes it. Raises ToolError."""
    _remove_orphans(purpose, remove)
    state = default_state(f"{purpose}-{os.getpid()}")
    state.prepare()
    state.write_facts(OWNER, asdict(processes.current()))
    try:
        yield state
    finally:
        remove(state)


@contextmanager
def installation(purpose: str) -> Iterator[State]:
    """The state directory of a private installation of a tool; at the end everything in it is stopped and removed.

    With SHARED_VARIABLE, it is the directory that this names, which belongs to the caller: several tools that run one
    after another need not each start the services again.
    """
    if shared := os.environ.get(SHARED_VARIABLE):
        yield State(Path(shared))
        return
    state = default_state(purpose)
    try:
        yield state
    finally:
        with step("removing the services and their data"):
            lifecycle.remove(state)


def _remove_orphans(purpose: str, remove: Callable[[State], None]) -> None:
    prefix = default_state(f"{purpose}-").root
    for root in prefix.parent.glob(f"{prefix.name}*"):
        state = State(root)
        owner = state.read_facts(OWNER)
        if root.stat().st_uid == os.getuid() and not (owner and processes.alive(Record(**owner))):
            remove(state)
