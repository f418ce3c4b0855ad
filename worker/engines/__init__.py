"""Engines run the streams. There is one, fio; `run_stream` and `prefill` are its whole interface."""

from worker.engines.errors import StreamFailed
from worker.engines.fio.prefill import prefill
from worker.engines.fio.stream import run_stream
from worker.engines.probe import capabilities, missing_features

__all__ = ["StreamFailed", "capabilities", "missing_features", "prefill", "run_stream"]
