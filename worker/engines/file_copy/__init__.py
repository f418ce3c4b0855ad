"""The file copy engine: `program` copies, `stream` starts and follows it."""

from collections.abc import Iterator

from worker.checks import Check, State
from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.engines.file_copy.stream import VERSION, run_stream

__all__ = ["check", "installation", "offer", "run_stream"]


def offer() -> EngineOffer:
    """Python and Linux support all methods. Whether a file system has reflinks shows when a trial uses them."""
    return EngineOffer(version=VERSION, features=tuple(CopyMethod))


def installation() -> str:
    return VERSION


def check() -> Iterator[Check]:
    yield Check("file copy", State.OK, f"version {VERSION}")
