"""Engines run the legs. There is one, fio; `run_leg` and `prefill` are its whole interface."""

from worker.engines.errors import LegFailed
from worker.engines.fio.leg import run_leg
from worker.engines.fio.prefill import prefill
from worker.engines.probe import capabilities, missing_features

__all__ = ["LegFailed", "capabilities", "missing_features", "prefill", "run_leg"]
