"""The fio engine: `output` reads fio, `difference` makes samples, `watch` limits it, `stream` runs it."""

from worker.engines.fio.probe import check, installation, offer
from worker.engines.fio.stream import run_stream

__all__ = ["check", "installation", "offer", "run_stream"]
