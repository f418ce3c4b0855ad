"""One failure must not keep the other schedules from being served."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

log = logging.getLogger(__name__)
K = TypeVar("K")


def each(keys: Iterable[K], step: Callable[[K], None]) -> None:
    """Call `step` for each key; what fails is logged, and tried again by the next tick."""
    for key in keys:
        try:
            step(key)
        except Exception:
            log.exception("%s failed for %s; the next tick tries again.", step.__name__, key)
