"""The file copy engine: `program` copies, `stream` starts and follows it."""

from worker.contract.file_copy import CopyMethod
from worker.contract.inventory import EngineOffer
from worker.engines.file_copy.stream import VERSION, run_stream

__all__ = ["offer", "run_stream"]


def offer() -> EngineOffer:
    """Python and Linux have all methods. Whether a file system has reflinks is found when a trial asks for them."""
    return EngineOffer(version=VERSION, features=tuple(CopyMethod))
