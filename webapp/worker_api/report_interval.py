"""How often hosts are to report: every second, and less often while this process is busy with reports.

The load is the mean number of reports that the process works on at the same time, over a second or more. It is near 1
while reports are taken as fast as they come, and near the number of threads that run Django (`webapp.serving.worker`)
when they pile up. The capacity is the number of reports per second that the process can take:

    load > HIGH_LOAD    the rate of this period, because reports pile up
    load < LOW_LOAD     1.25 times as much as before

    interval = hosts ÷ (SHARE × capacity), from MIN_INTERVAL_S to MAX_INTERVAL_S

The hosts are those that reported in the last HOST_TIMEOUT_S, and those that will report for the first time in the next
EXPECTED_S if new ones go on to come as in this period: when 2,000 hosts begin at once, the first reports of many wait
for several seconds. The interval is changed only after every host has had time to follow the last change. Each process
decides by itself and for the hosts that are connected to it. A report of ten seconds costs little more than a report of
one.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

MIN_INTERVAL_S, MAX_INTERVAL_S = 1.0, 10.0
HIGH_LOAD, LOW_LOAD = 10.0, 2.0  # busy threads, of sixteen
SHARE = 0.9  # of the capacity that is used
GROWTH = 1.25
MIN_PERIOD_S = 1.0  # over which the load is measured
HOST_TIMEOUT_S = 2 * MAX_INTERVAL_S
EXPECTED_S = 2.0


class ReportInterval:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._capacity = math.inf  # reports per second
        self._reported_at: dict[object, float] = {}  # by host, its last report
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
            before, self.interval_s = self.interval_s, self._next_s(load, elapsed_s, now)
            self._begin(now)
        if before != self.interval_s:
            log.info("Load %.1f: hosts are asked to report every %.1f s.", load, self.interval_s)

    def _next_s(self, load: float, elapsed_s: float, now: float) -> float:
        hosts = self._hosts(elapsed_s, now)
        if load > HIGH_LOAD:
            # A host that does not follow the interval counts like the others.
            reports = sum(min(sent, elapsed_s / self.interval_s + 1) for sent in self._reports.values())
            self._capacity = reports / elapsed_s
        elif elapsed_s > HOST_TIMEOUT_S:  # nobody reported for a while
            self._capacity = math.inf
        elif load < LOW_LOAD:
            self._capacity *= GROWTH
        self._capacity = max(self._capacity, hosts / SHARE / MAX_INTERVAL_S)  # less would not change the interval
        return max(MIN_INTERVAL_S, hosts / SHARE / self._capacity)

    def _hosts(self, elapsed_s: float, now: float) -> float:
        """How many report now and soon."""
        new = self._reports.keys() - self._reported_at.keys()
        self._reported_at |= dict.fromkeys(self._reports, now)
        self._reported_at = {host: at for host, at in self._reported_at.items() if at > now - HOST_TIMEOUT_S}
        return len(self._reported_at) + EXPECTED_S * len(new) / elapsed_s


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
