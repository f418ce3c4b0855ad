"""The idle engine: records the telemetry and the devices' counters, and does no I/O."""

from collections.abc import Iterator

from worker import __version__
from worker.checks import Check, State
from worker.contract.inventory import EngineOffer
from worker.engines.idle.stream import run_stream

__all__ = ["check", "installation", "offer", "run_stream"]


def offer() -> EngineOffer:
    return EngineOffer(version=__version__, features=())


def installation() -> str:
    return __version__


def check() -> Iterator[Check]:
    yield Check("idle", State.OK, f"version {__version__}")
