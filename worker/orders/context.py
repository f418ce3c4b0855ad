"""What orders work with on this host."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from worker.contract.items import Finished, Item
from worker.control import Control
from worker.drives.records import Drives
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal

Emit = Callable[[Item], None]


class HostContext(msgspec.Struct, frozen=True):
    """The same for every order."""

    state: Path
    policy: Path
    journal: Journal
    files: CompleteFiles

    @property
    def drives(self) -> Drives:
        """The records of the drives that were written here."""
        return Drives(self.state / "drives")


def _no_server() -> None:
    raise NotImplementedError


class OrderContext(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at an order. Without a server the clock is the host's own."""

    host: HostContext
    emit: Emit
    control: Control
    server_now: Callable[[], float] = time.time  # Unix time by the server's clock, by which arming expires
    register: Callable[[], None] = _no_server  # take the inventory and send it; raises Unreachable or Refused


# (order, context) -> the attempt's end. A handler does not raise for failures that are to be expected.
Handler = Callable[[Any, OrderContext], Finished]
