"""Wait for the common start of a trial on several hosts.

    ready ──► ask the server until it knows the start ──► read its clock several times ──► the start by the own clock
                 └── start_timeout                                                            └── start_missed

The reading with the shortest round trip counts, because its error is the smallest. Jumps of the host's clock do not
matter: all moments are of the monotonic clock.
"""

import threading
import time
from collections.abc import Callable

import msgspec

from worker.contract.common_start import StartReply
from worker.link.client import Refused, Unreachable

POLL_S = 0.25
READINGS = 12
READING_EVERY_S = 0.02
LEAST_LEAD_S = 2.0  # in which the engine is launched and prepares its jobs


class StartFailed(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Start(msgspec.Struct, frozen=True):
    moment: float  # of the monotonic clock, s
    start_at: float  # by the server's clock
    uncertainty_s: float


class _Reading(msgspec.Struct, frozen=True):
    ahead_s: float  # the server's clock minus the monotonic clock
    uncertainty_s: float
    start_at: float | None


def await_common_start(ask: Callable[[], StartReply], stopped: threading.Event, *, limit_s: float) -> Start | None:
    """The start; None if `stopped` was set first. Raises StartFailed.

    An unreachable server is asked again. A server that refuses has ended the attempt, and says so in the answer to the
    next report, which sets `stopped`.
    """
    give_up_at = time.monotonic() + limit_s
    first = _ask(ask)
    while first is None or first.start_at is None:
        if time.monotonic() > give_up_at:
            words = f"The other hosts of the trial were not ready within {limit_s:.0f} s."
            raise StartFailed("start_timeout", words)
        if stopped.wait(POLL_S):
            return None
        first = _ask(ask)
    return _start(first, ask, stopped)


def _start(first: _Reading, ask: Callable[[], StartReply], stopped: threading.Event) -> Start | None:
    assert first.start_at is not None
    latest = first.start_at - first.ahead_s - LEAST_LEAD_S
    readings = [first]
    while len(readings) < READINGS and time.monotonic() < latest:
        if stopped.wait(READING_EVERY_S):
            return None
        if reading := _ask(ask):
            readings.append(reading)
    best = min(readings, key=lambda reading: reading.uncertainty_s)
    moment = first.start_at - best.ahead_s
    if time.monotonic() > moment - LEAST_LEAD_S / 4:
        raise StartFailed("start_missed", "The host learned of the common start too late: the server answered slowly.")
    return Start(moment, first.start_at, best.uncertainty_s)


def _ask(ask: Callable[[], StartReply]) -> _Reading | None:
    sent_at = time.monotonic()
    try:
        reply = ask()
    except (Unreachable, Refused):
        return None
    received_at = time.monotonic()
    ahead_s = (reply.received_at + reply.sent_at - sent_at - received_at) / 2
    round_trip_s = received_at - sent_at - (reply.sent_at - reply.received_at)
    return _Reading(ahead_s, max(0.0, round_trip_s) / 2, reply.start_at)
