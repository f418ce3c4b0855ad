"""The file copy engine: `program` copies, `stream` starts and follows it."""

import sys

from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.engines.file_copy.stream import run_stream

__all__ = ["offer", "run_stream"]


def offer() -> EngineOffer:
    """Python and Linux have all methods. Whether a file system has reflinks is found when a trial asks for them."""
    return EngineOffer(version=f"Python {sys.version.split()[0]}", features=tuple(CopyMethod))
