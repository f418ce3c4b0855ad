"""The context in which orders are carried out, and their final items."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from worker.contract.items import Finished, Item, Outcome
from worker.contract.reports import StartReply
from worker.drives.records import Drives
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal
from worker.kernel.files import STATE_DISK_FULL
from worker.process.control import Control

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


# The final item of an attempt.


def finished(outcome: Outcome, code: str = "", message: str = "") -> Finished:
    return Finished(at=time.time(), outcome=outcome, code=code, message=clip(message, 60_000))


def failed(error: Exception) -> Finished:
    """The final item of a failed attempt. An error without a code is a fault of the worker."""
    return finished(Outcome.FAILED, getattr(error, "code", "internal_error"), error_text(error))


def code_of(error: Exception, journal: Journal) -> str:
    """The code of an error that has none: a full disk under the state directory, or a fault of the worker."""
    return STATE_DISK_FULL if journal.reserve.explains(error) else "internal_error"


def error_text(error: Exception) -> str:
    """The error's message, and the end of the engine's standard error."""
    words = str(error) or type(error).__name__
    stderr = getattr(error, "stderr", "").strip()
    return f"{words}\n{stderr[-4000:]}" if stderr and stderr not in words else words


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
