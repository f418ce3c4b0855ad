"""How often hosts are to report: every second, and less often while this process is busy with reports.

The load is the mean number of reports that the process works on at the same time, over a few seconds. It is near 1
while reports are taken as fast as they come, and near the number of threads that run Django (`webapp.serving.worker`)
when they pile up.

    load > HIGH_LOAD    the interval at which the reports of these hosts need SHARE of the rate that was reached
    load < LOW_LOAD     interval ÷ 1.25, down to MIN_INTERVAL_S

While reports pile up, the rate that is reached is the maximum of this process. So one period is enough to find the
right interval. The interval is changed again only after every host has had time to follow the last
change. Each process decides by itself and for the hosts that are connected to it. A report of ten seconds costs little
more than a report of one.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

MIN_INTERVAL_S, MAX_INTERVAL_S = 1.0, 10.0
HIGH_LOAD, LOW_LOAD = 12.0, 1.0  # busy threads, of sixteen
SHARE = 0.9  # of the rate that this process reaches
FASTER = 1 / 1.25
MIN_PERIOD_S = 2.0  # over which the load is measured


class ReportInterval:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.interval_s = MIN_INTERVAL_S
        self._begin(time.monotonic())

    def _begin(self, now: float) -> None:
        """Begin a period in which the load is measured."""
        self._since = now
        self._busy_s = 0.0  # sum over the reports that ended in it
        self._reports: Counter[object] = Counter()  # by host

    def add(self, host: object, *, busy_s: float, now: float) -> None:
        """Count a report of this host, which took `busy_s`."""
        with self._lock:
            self._busy_s += busy_s
            self._reports[host] += 1
            elapsed_s = now - self._since
            if elapsed_s < max(MIN_PERIOD_S, self.interval_s):
                return
            load = self._busy_s / elapsed_s
            before, self.interval_s = self.interval_s, self._next_s(load, elapsed_s)
            self._begin(now)
        if before != self.interval_s:
            log.info("Load %.1f: hosts are asked to report every %.1f s.", load, self.interval_s)

    def _next_s(self, load: float, elapsed_s: float) -> float:
        if load > HIGH_LOAD:
            # A host that does not follow the interval counts like the others.
            reports = sum(min(sent, elapsed_s / self.interval_s + 1) for sent in self._reports.values())
            wanted_s = len(self._reports) * elapsed_s / reports / SHARE
            return min(MAX_INTERVAL_S, max(self.interval_s, wanted_s))
        if elapsed_s > 2 * MAX_INTERVAL_S:  # nobody reported for a while
            return MIN_INTERVAL_S
        return self.interval_s if load > LOW_LOAD else max(MIN_INTERVAL_S, self.interval_s * FASTER)


_of_this_process = ReportInterval()


@contextmanager
def measured(host: object) -> Iterator[None]:
    """Around the work for one report of a host, without the wait for its body."""
    started_at = time.monotonic()
    try:
        yield
    finally:
        now = time.monotonic()
        _of_this_process.add(host, busy_s=now - started_at, now=now)


def current_s() -> float:
    """The interval to ask for now."""
    return _of_this_process.interval_s
