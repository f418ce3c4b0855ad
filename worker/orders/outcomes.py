"""The final item of an attempt."""

import time

from worker.contract.items import Finished, Outcome
from worker.journal import Journal
from worker.reserve import STATE_DISK_FULL


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
