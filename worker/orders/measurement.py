"""The last stages of a trial: the common start of several hosts, all streams at once, and a check of the settings."""

import contextvars
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import msgspec

from worker import engines
from worker.contract.base import Failed
from worker.contract.items import CommonStart, PhaseName, Sample, StreamResult, StreamStarted
from worker.contract.reports import StartReply
from worker.contract.workload import Stream
from worker.kernel.targets import OpenTarget
from worker.link.client import Refused, Unreachable
from worker.orders.context import code_of, error_text
from worker.orders.trial_state import TrialState, TrialStopped
from worker.recipes.base import temporary_folder as folder_name
from worker.settings import session
from worker.telemetry.sources import Telemetry, every_source
from worker.temporary import temporary_folder

log = logging.getLogger(__name__)

# Wait for the common start of a trial on several hosts.
#
#     ready ──► ask the server until it knows the start ──► read its clock several times ──► the start by the own clock
#                  └── start_timeout                                                            └── start_missed
#
# The reading with the shortest round trip counts, because its error is the smallest. Jumps of the host's clock do not
# matter: all moments are of the monotonic clock.

POLL_S = 0.25
READINGS = 12
READING_EVERY_S = 0.02
LEAST_LEAD_S = 2.0  # in which the engine is launched and prepares its jobs


class Start(msgspec.Struct, frozen=True):
    moment: float  # of the monotonic clock, s
    start_at: float  # by the server's clock
    uncertainty_s: float


class _Reading(msgspec.Struct, frozen=True):
    ahead_s: float  # the server's clock minus the monotonic clock
    uncertainty_s: float
    start_at: float | None


def wait_for_start(ask: Callable[[], StartReply], stopped: threading.Event, *, limit_s: float) -> Start | None:
    """The start; None if `stopped` was set first. Raises Failed.

    An unreachable server is asked again. A server that refuses has ended the attempt, and says so in the answer to the
    next report, which sets `stopped`.
    """
    give_up_at = time.monotonic() + limit_s
    first = _ask(ask)
    while first is None or first.start_at is None:
        if time.monotonic() > give_up_at:
            words = f"The other hosts of the trial were not ready within {limit_s:.0f} s."
            raise Failed("start_timeout", words)
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
        raise Failed("start_missed", "The host learned of the common start too late: the server answered slowly.")
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


def await_common_start(state: TrialState) -> None:
    if state.order.start_limit_s is None:
        return
    state.enter(PhaseName.COMMON_START)
    start = wait_for_start(
        lambda: state.context.ask_start(state.order.attempt),
        state.control.stopped,
        limit_s=state.order.start_limit_s,
    )
    if start is None:
        raise TrialStopped
    state.not_before = start.moment
    at = time.time() + start.moment - time.monotonic()
    state.emit(CommonStart(at=at, start_at=start.start_at, uncertainty_s=start.uncertainty_s))


def remove_members(state: TrialState) -> None:
    """Remove the members that streams rebuild, before all streams start: the others use a degraded array during their
    whole time."""
    for stream in state.streams:
        array = state.targets[stream.number].array
        if array is not None and stream.workload.replaces_member:
            state.emit_kernel_log()
            array.remove_member()
            state.emit_kernel_log(without=f"{array.name}: Disk failure on ")


def run_streams(state: TrialState) -> None:
    """Run all streams at once: the first in this thread, which also reads the telemetry. One failure stops all."""
    first, *rest = state.streams
    with Telemetry(every_source(state.targets.values()), state.kernel) as telemetry:
        others = [
            threading.Thread(target=contextvars.copy_context().run, args=(_run_stream, state, stream))
            for stream in rest
        ]
        for thread in others:
            thread.start()
        _run_stream(state, first, telemetry)
        for thread in others:
            thread.join()
    if state.control.reason:
        raise TrialStopped


def _run_stream(state: TrialState, stream: Stream, telemetry: Telemetry | None = None) -> None:
    """Never raises. A failure stops the whole trial and becomes its reason."""
    try:
        state.emit(_measure(state, stream, telemetry))
        return
    except Failed as error:
        code, words = error.code, error_text(error)
    except Exception as error:
        log.exception("Stream %d failed because of an error in the worker.", stream.number)
        code, words = code_of(error, state.host.journal), error_text(error)
    alone = len(state.streams) == 1
    state.control.fail(code, words if alone else f"Stream {stream.name or stream.number}: {words}")


def _measure(state: TrialState, stream: Stream, telemetry: Telemetry | None) -> StreamResult:
    def report(item: StreamStarted | Sample) -> None:
        state.emit(item)
        if telemetry and isinstance(item, Sample):
            state.emit_kernel_log()

    target = state.targets[stream.number]
    with _folder(state, stream, target), state.scope(str(stream.number), target, alone=False) as scope:
        scope.not_before = state.not_before
        running = state.running(stream, scope, report=report, telemetry=telemetry, stop=state.stop)
        return engines.engine_of(stream).run_stream(running)


def _folder(state: TrialState, stream: Stream, target: OpenTarget) -> AbstractContextManager[None]:
    """Its processes have ended when it is removed."""
    if not stream.workload.needs_folder or target.directory_fd is None:
        return nullcontext()
    return temporary_folder(folder_name(stream), target.directory_fd, state.host.journal)


def check_settings(state: TrialState) -> None:
    """Report settings that another program has changed meanwhile."""
    for changed in session.changed_meanwhile(state.applied):
        state.emit(changed)
