"""How often hosts are to report: every second, and less often while this process is busy with reports.

The load is the mean number of reports that the process works on at the same time, over a few seconds. It is near 1
while reports are taken as fast as they come, and near the number of threads that run Django (`webapp.serving.worker`)
when they pile up.

    load > HIGH_LOAD    interval × 1.2, up to MAX_INTERVAL_S
    load < LOW_LOAD     interval ÷ 1.25, down to MIN_INTERVAL_S

The steps are small, because each host has only one report under way and so waits by itself: with steps of 1.5, the
interval of 500 hosts on two cores went from 1 to 3.4 s and back. The interval is changed again only after every host
has had time to follow the last change. Each process decides by itself and for the hosts that are connected to it. A
report of ten seconds costs little more than a report of one.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

MIN_INTERVAL_S, MAX_INTERVAL_S = 1.0, 10.0
HIGH_LOAD, LOW_LOAD = 8.0, 2.0
SLOWER, FASTER = 1.2, 1 / 1.25
MIN_PERIOD_S = 2.0  # over which the load is measured


class ReportInterval:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy_s = 0.0  # sum over the reports that ended in this period
        self._since = time.monotonic()
        self.interval_s = MIN_INTERVAL_S

    def add(self, *, busy_s: float, now: float) -> None:
        """A report was taken, which took so long."""
        with self._lock:
            self._busy_s += busy_s
            elapsed_s = now - self._since
            if elapsed_s < max(MIN_PERIOD_S, self.interval_s):
                return
            load = self._busy_s / elapsed_s
            self._busy_s, self._since = 0.0, now
            before, self.interval_s = self.interval_s, self._next_s(load, elapsed_s)
        if before != self.interval_s:
            log.info("Load %.1f: hosts are asked to report every %.1f s.", load, self.interval_s)

    def _next_s(self, load: float, elapsed_s: float) -> float:
        if load > HIGH_LOAD:
            return min(MAX_INTERVAL_S, self.interval_s * SLOWER)
        if elapsed_s > 2 * MAX_INTERVAL_S:  # nobody reported for a while
            return MIN_INTERVAL_S
        return self.interval_s if load > LOW_LOAD else max(MIN_INTERVAL_S, self.interval_s * FASTER)


_of_this_process = ReportInterval()


@contextmanager
def measured() -> Iterator[None]:
    """Around the work for one report, without the wait for its body."""
    started_at = time.monotonic()
    try:
        yield
    finally:
        now = time.monotonic()
        _of_this_process.add(busy_s=now - started_at, now=now)


def current_s() -> float:
    """The interval to ask for now."""
    return _of_this_process.interval_s
