"""The array action engine: the kernel checks or rebuilds the md array of a layout, beside other streams."""

from collections.abc import Iterator

from worker import __version__
from worker.checks import Check, State
from worker.contract.array_action import ArrayAction
from worker.contract.inventory import EngineOffer
from worker.engines.array_action.stream import run_stream

__all__ = ["check", "installation", "offer", "run_stream"]


def offer() -> EngineOffer:
    """On every host: the layouts that it offers decide whether it has md."""
    return EngineOffer(version=__version__, features=tuple(ArrayAction))


def installation() -> str:
    return __version__


def check() -> Iterator[Check]:
    yield Check("array actions", State.OK, f"version {__version__}")
