"""Calls a step for each key; one failure does not stop the others."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

log = logging.getLogger(__name__)
K = TypeVar("K")


def for_each_logged(keys: Iterable[K], step: Callable[[K], None]) -> None:
    """Call `step` for each key. A failure is logged; the next tick tries again."""
    for key in keys:
        try:
            step(key)
        except Exception:
            log.exception("%s failed for %s; the next tick tries again.", step.__name__, key)
