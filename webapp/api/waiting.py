"""Waits for the end of a run inside a request.

A waiting request occupies one of the few threads that run Django (`webapp.serving.worker`), so few may wait at a time.
"""

from threading import BoundedSemaphore
from time import monotonic, sleep

from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES

MAX_WAIT_S = 30.0
MAX_WAITING = 2  # in each process
INTERVAL_S = 1.0
_places = BoundedSemaphore(MAX_WAITING)


def wait_for_end(number: int, seconds: float) -> None:
    """Return when the run has ended, after `seconds`, or at once if too many requests wait already."""
    if not _places.acquire(blocking=False):
        return
    try:
        end = monotonic() + seconds
        while _is_open(number) and (left := end - monotonic()) > 0:
            sleep(min(INTERVAL_S, left))
    finally:
        _places.release()


def _is_open(number: int) -> bool:
    return Run.objects.filter(number=number).exclude(state__in=ENDED_RUN_STATES).exists()
