"""Starts again what has died, as a service manager would: after a short while, unless somebody holds it down."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dev.console import ToolError, print_error
from dev.stack import processes
from dev.stack.state import State

LOOK_EVERY_S = 0.25
RESTART_AFTER_S = 0.5


class Watchman:
    """`services`: name -> what starts it and returns when it runs; that may raise ToolError and is tried again."""

    def __init__(self, state: State, services: Mapping[str, Callable[[], None]]) -> None:
        self._state = state
        self._services = services
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(name,), daemon=True) for name in services]
        self.restarts: Counter[str] = Counter()
        self.troubles: list[str] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(90)

    @contextmanager
    def holding(self, name: str) -> Iterator[None]:
        """It stays down if it dies in here."""
        with self._lock:
            self._held[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[name] -= 1

    def all_up(self) -> bool:
        return all(processes.known(self._state, name) for name in self._services)

    def _watch(self, name: str) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            if processes.known(self._state, name) or self._held[name]:
                continue
            if self._ended.wait(RESTART_AFTER_S):
                return
            self._start(name)

    def _start(self, name: str) -> None:
        self.restarts[name] += 1
        try:
            self._services[name]()
        except ToolError as error:  # e.g. its port or disk is not free yet
            self.troubles.append(f"{time.strftime('%H:%M:%S')} {name}: {error}")
            del self.troubles[:-20]
        except Exception as error:  # noqa: BLE001 - the watch must go on, and the round will show what is missing
            print_error(f"{name} could not be started: {type(error).__name__}: {error}")


def tree(pid: int) -> list[int]:
    """The process and all below it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found
