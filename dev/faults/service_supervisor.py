"""Restarts services that died, as a service manager does."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dev.console import ToolError, print_error
from dev.stack import processes
from dev.stack.state import State

POLL_S = 0.25
RESTART_AFTER_S = 0.5


class ServiceSupervisor:
    """`services`: name -> function that starts the service and returns when it runs. A ToolError is retried."""

    def __init__(self, state: State, services: Mapping[str, Callable[[], None]]) -> None:
        self._state = state
        self._services = services
        self._paused: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(name,), daemon=True) for name in services]
        self.restarts: Counter[str] = Counter()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(90)

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Do not restart the service inside this block."""
        with self._lock:
            self._paused[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self._paused[name] -= 1

    def all_running(self) -> bool:
        return all(processes.known(self._state, name) for name in self._services)

    def _watch(self, name: str) -> None:
        while not self._ended.wait(POLL_S):
            if processes.known(self._state, name) or self._paused[name]:
                continue
            if self._ended.wait(RESTART_AFTER_S):
                return
            self._restart(name)

    def _restart(self, name: str) -> None:
        self.restarts[name] += 1
        try:
            self._services[name]()
        except ToolError:  # for example while its port or disk is not free; the next poll retries
            time.sleep(POLL_S)
        except Exception as error:  # noqa: BLE001 - supervision continues; the check of the round finds what is missing
            print_error(f"{name} could not be started: {type(error).__name__}: {error}")
