"""CPU seconds of the stack's processes, so that one sees where the time of a measurement went."""

import time
from pathlib import Path

from webapp.local import postgres, processes, redis_server, services
from webapp.local.bench import TICKS_PER_S
from webapp.local.state import State

NAMES = (services.WEB, services.TASKS, services.BEAT, redis_server.NAME, postgres.NAME)


def cpu_seconds(state: State) -> dict[str, float]:
    """User and system seconds of each of the stack's processes, with all that it forked, and of the poster, us."""
    found = {"poster": time.process_time()}
    for name in NAMES:
        if record := processes.known(state, name):
            found[name] = _of_tree(record.pid) / TICKS_PER_S
    return found


def spent(before: dict[str, float], after: dict[str, float], trials: int) -> str:
    """What each used between two looks, ms a trial, as text."""
    used = {name: 1000 * (after[name] - before.get(name, 0.0)) / trials for name in after}
    return ", ".join(f"{name} {ms:.1f} ms" for name, ms in used.items() if ms >= 0.05)


def _of_tree(pid: int) -> int:
    """Clock ticks of a process, of its children that ended (proc(5): utime to cstime) and of those that live."""
    own = sum(int(field) for field in _stat(pid)[11:15])
    return own + sum(_of_tree(child) for child in _children(pid))


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["0"] * 50


def _children(pid: int) -> list[int]:
    return [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
