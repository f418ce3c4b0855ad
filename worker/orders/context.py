"""The context in which orders are carried out."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from worker.contract.common_start import StartReply
from worker.contract.items import Finished, Item
from worker.control import Control
from worker.drives.records import Drives
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal

Emit = Callable[[Item], None]


class HostContext(msgspec.Struct, frozen=True):
    """The parts of the worker that all orders share."""

    state: Path
    policy: Path
    journal: Journal
    files: CompleteFiles

    @property
    def drives(self) -> Drives:
        """Records of the drives that this worker has written."""
        return Drives(self.state / "drives")


def _no_server(*_: object) -> NoReturn:
    raise NotImplementedError


class OrderContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of one attempt. Without a server, the clock is the host's."""

    host: HostContext
    emit: Emit
    control: Control
    server_now: Callable[[], float] = time.time  # Unix time on the server's clock, which decides when arming expires
    register: Callable[[], None] = _no_server  # take the inventory and send it; raises Unreachable or Refused
    ask_start: Callable[[str], StartReply] = _no_server  # of an attempt that is ready; raises Unreachable or Refused


# (order, context) -> the attempt's final item. A handler raises only for faults of the worker.
Handler = Callable[[Any, OrderContext], Finished]
