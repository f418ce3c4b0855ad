"""Carry out one trial, from the guard to the results.

    purge ─► guard ─► layout ─► settings ─► prefill ─► steps ─► drop caches ─► observe ─► run (all at once) ─► done
      └────────┴──────────┴──────────┴────────────┴─────────┴──────────┴───────────┴──► failed(code, words) | cancelled

A trial on several hosts waits before the run until all of them are ready, and starts its streams at the common start.

Nothing here talks to a server: every event is an item given to `emit`, so the same code runs a trial of an
order and a trial from a file. Caches are dropped after the steps, which would fill them again. After the
steps, a trial that would read unwritten parts of files is refused. The member of an array that a stream rebuilds
is removed right before the run. Settings and the layout stay until the run is closed, or until a trial needs
another layout.
"""

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import msgspec

from worker import engines, guard, inventory, policy
from worker.contract.base import Failed
from worker.contract.items import (
    CommonStart,
    Finished,
    KernelLog,
    Observed,
    Outcome,
    Phase,
    PhaseName,
    Sample,
    SettingRecord,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import TrialOrder
from worker.contract.reports import StartReply
from worker.contract.workload import Stream, TargetRef
from worker.drives.purge import purge_target
from worker.drives.records import TrialDrives
from worker.drives.wear import Wear, WriteLimit, drives_under
from worker.engines.running import Running
from worker.engines.stopping import SharedStop
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget
from worker.layouts import taking_down
from worker.layouts.building import Built
from worker.link.client import Refused, Unreachable
from worker.orders.context import OrderContext, code_of, error_text, failed, finished
from worker.orders.layout_stage import LayoutStage, on_layout
from worker.orders.prefill import Prefill, Steps, admissible, by_target, refuse_unwritten, strictest
from worker.process.run import Limits
from worker.process.scope import Scope, open_scope
from worker.recipes.base import temporary_folder as folder_name
from worker.recipes.steps import render_prefill
from worker.settings import SETTING_NAMES, memory, session, settings_facts
from worker.telemetry.kernel_log import KernelWatch, names_at, names_in
from worker.telemetry.sources import Telemetry, every_source
from worker.temporary import temporary_folder

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


def await_common_start(ask: Callable[[], StartReply], stopped: threading.Event, *, limit_s: float) -> Start | None:
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


log = logging.getLogger(__name__)


class _Stopped(Exception):
    """`stop` of the control was called; the control has the reason."""


class Trial:
    def __init__(self, order: TrialOrder, context: OrderContext) -> None:
        host = context.host
        self._order = order
        self._context = context
        self._host = host
        self._emit = context.emit
        self._control = context.control
        self._kernel = KernelWatch(names_at(each.path for each in _targets(order)))
        self._watch = TrialDrives(host.drives)
        self._wear = Wear(host.state, order.run, context.emit)
        self._limit = WriteLimit(self._wear)
        self._streams = order.streams  # on the layout after it was built
        self._stop = None if order.streams[0].name else SharedStop(len(order.streams))
        self._built: Mapping[str, Built] = {}  # layouts by pool
        self._applied: list[SettingRecord] = []
        self._not_before = 0.0  # moment of the monotonic clock: the common start of a trial on several hosts

    def run(self) -> Finished:
        """Run until the end. Expected failures become the outcome; only faults of the worker are raised."""
        with self._kernel:
            try:
                with ExitStack() as held:
                    self._steps(held)
                return finished(Outcome.DONE)
            except _Stopped:
                return self._stopped()
            except Failed as error:
                log.warning("The trial failed: %s: %s", error.code, error)
                return self._stopped() if self._control.reason else failed(error)
            finally:
                self._watch.end(self._wear.end())
                self._tell_kernel_log()

    def _stopped(self) -> Finished:
        reason = self._control.reason
        assert reason is not None
        log.warning("The trial was stopped: %s: %s", reason.code, reason.message)
        return finished(reason.outcome, reason.code, reason.message)

    def _steps(self, held: ExitStack) -> None:
        self._enter(PhaseName.GUARD)
        self._host.journal.require_reserve()
        allowed = policy.load(self._host.policy, SETTING_NAMES)
        armed = guard.serials_in_time(self._order.arming, now=self._context.server_now(), destroys=self._destroys())
        host = self._host
        layout_stage = LayoutStage(
            self._order, armed, host.state, host.journal, self._emit, self._enter, self._wear.begin,
            stop_if_asked=self._stop_if_asked,
        )  # fmt: skip
        self._purge(layout_stage, allowed, armed)
        self._build_layout(layout_stage, allowed)
        open_targets = self._admit(allowed, armed, held)
        self._kernel.about(names_in(open_targets.values()))
        # Building a layout writes to its drives, so their state is unknown from then on.
        watched = () if self._built else self._streams
        steps = self._prepared(open_targets)
        states = {} if steps.written else self._watch.begin(watched, open_targets)
        writes = steps.written or any(stream.workload.writes or render_prefill(stream) for stream in self._streams)
        if writes:
            streams = (*self._streams, *steps.written)
            self._limit.begin(allowed, streams, open_targets, self._order.layouts, self._order.settings)
        self._enter(PhaseName.SETTINGS)
        self._apply_settings(allowed, open_targets)
        if writes:  # after the settings, because those of an earlier trial may have disabled the counters
            self._wear.begin(
                name for open_target in open_targets.values() for name in (*open_target.devices, *open_target.members)
            )
            self._limit.check()
            held.enter_context(self._limit.watching(self._control))
        prefill = Prefill(
            self._order, host.files, self._emit, self._control.stopped, enter=self._enter, open_scope=self._scope
        )
        for stream in self._streams:
            prefill.run(stream, open_targets[stream.number])
            self._stop_if_asked()
        steps.run()
        if steps.written:
            states = self._watch.begin(watched, open_targets)
        for stream in self._streams:
            refuse_unwritten(stream, open_targets[stream.number])
        if self._order.drop_caches:
            memory.drop_caches()
        self._observe(open_targets, states)
        for recheck in {open_target.recheck for open_target in open_targets.values()}:
            recheck(programs=True)
        self._await_common_start()
        self._remove_members(open_targets)
        self._enter(PhaseName.RUN)
        self._run_streams(open_targets)
        for changed in session.changed_meanwhile(self._applied):
            self._emit(changed)

    def _enter(self, name: PhaseName, **fields: Any) -> None:
        """Start a phase; `fields` are those of the contract."""
        self._stop_if_asked()
        self._emit(Phase(at=time.time(), name=name, **fields))

    def _stop_if_asked(self) -> None:
        if self._control.stopped.is_set():
            raise _Stopped

    def _build_layout(self, layout_stage: LayoutStage, allowed: policy.Policy) -> None:
        self._built = layout_stage.build(allowed)
        if self._built:
            self._streams = tuple(on_layout(stream, self._built[stream.target.id]) for stream in self._streams)

    def _prepared(self, open_targets: Mapping[int, OpenTarget]) -> Steps:
        return Steps(
            self._order, self._streams, open_targets, None if self._built else self._host.drives,
            self._emit, self._control, enter=self._enter, open_scope=self._scope,
        )  # fmt: skip

    def _destroys(self) -> bool:
        writing = guard.writes(admissible(self._order, list(self._order.streams)))
        return self._order.purge is not None or bool(self._order.layouts) or writing

    def _purge(self, layout_stage: LayoutStage, allowed: policy.Policy, armed: tuple[str, ...]) -> None:
        """Purge the targets, or all drives of the layouts after taking them down."""
        if self._order.purge is None:
            return
        drives = [drive for request in self._order.layouts for drive in request.drives]
        if drives:
            layout_stage.clear()
        targets = drives or [stream.target for stream in self._order.streams]
        for target in dict.fromkeys(targets):
            self._enter(PhaseName.PURGE, target=target.path, method=self._order.purge)
            purge_target(
                target, self._order.purge, allowed, armed,
                drives=self._host.drives, journal=self._host.journal, state=self._host.state, emit=self._emit,
                stopped=self._control.stopped,
            )  # fmt: skip

    def _admit(self, allowed: policy.Policy, armed: tuple[str, ...], held: ExitStack) -> dict[int, OpenTarget]:
        """Open the target of each stream. Streams on the same target share it: a device can be held only once."""
        open_targets: dict[int, OpenTarget] = {}
        for streams in by_target(self._streams):
            open_target = held.enter_context(self._hold(streams, allowed, armed))
            guard.refuse_quarantined(_drives(open_target), self._host.state)
            open_targets.update((stream.number, self._with_array(stream, open_target)) for stream in streams)
        return open_targets

    def _with_array(self, stream: Stream, open_target: OpenTarget) -> OpenTarget:
        if not self._built or not stream.workload.needs_array:
            return open_target
        array = taking_down.array_of(
            self._built[stream.target.id].record, state=self._host.state, journal=self._host.journal
        )
        return msgspec.structs.replace(open_target, array=array)

    def _hold(
        self, streams: list[Stream], allowed: policy.Policy, armed: tuple[str, ...]
    ) -> AbstractContextManager[OpenTarget]:
        """Hold the target of these streams, which they share."""
        stream = strictest(admissible(self._order, streams))
        beside = [each for each in streams if each.number != stream.number]
        if self._built:
            built = self._built[stream.target.id]
            return guard.admit_layout(
                stream, device=built.device, mount_point=built.mount_point, members=built.members, beside=beside
            )
        return guard.admit(stream, allowed, armed, beside)

    def _apply_settings(self, allowed: policy.Policy, open_targets: Mapping[int, OpenTarget]) -> None:
        try:
            records = session.apply_settings(
                self._order.settings, self._order.run, open_targets, allowed, self._host.journal
            )
        except session.SettingFailed as error:
            for record in error.records:
                self._emit(record)
            raise
        for record in records:
            self._emit(record)
        self._applied = records

    def _observe(self, open_targets: Mapping[int, OpenTarget], states: Mapping[str, str]) -> None:
        facts: dict[str, str] = dict(states)
        for stream in self._streams:
            facts.update(inventory.observed_facts(open_targets[stream.number], stream))
        facts.update(
            settings_facts(
                {name for open_target in open_targets.values() for name in (*open_target.devices, *open_target.members)}
            )
        )
        if self._built:
            facts["layout"] = " + ".join(dict.fromkeys(built.record.line for built in self._built.values()))
        self._emit(Observed(at=time.time(), facts=facts))

    # ---- measuring

    def _await_common_start(self) -> None:
        if self._order.start_limit_s is None:
            return
        self._enter(PhaseName.COMMON_START)
        start = await_common_start(
            lambda: self._context.ask_start(self._order.attempt),
            self._control.stopped,
            limit_s=self._order.start_limit_s,
        )
        if start is None:
            raise _Stopped
        self._not_before = start.moment
        at = time.time() + start.moment - time.monotonic()
        self._emit(CommonStart(at=at, start_at=start.start_at, uncertainty_s=start.uncertainty_s))

    def _remove_members(self, open_targets: Mapping[int, OpenTarget]) -> None:
        """Before all streams start, so that the others use a degraded array during their whole time."""
        for stream in self._streams:
            array = open_targets[stream.number].array
            if array is not None and stream.workload.replaces_member:
                self._tell_kernel_log()
                array.remove_member()
                self._tell_kernel_log(without=f"{array.name}: Disk failure on ")

    def _run_streams(self, open_targets: Mapping[int, OpenTarget]) -> None:
        """Run all streams at once: the first in this thread, which also reads the telemetry. One failure stops all."""
        first, *rest = self._streams
        with Telemetry(every_source(open_targets.values()), self._kernel) as telemetry:
            others = [
                threading.Thread(
                    target=contextvars.copy_context().run, args=(self._run_stream, stream, open_targets[stream.number])
                )
                for stream in rest
            ]
            for thread in others:
                thread.start()
            self._run_stream(first, open_targets[first.number], telemetry)
            for thread in others:
                thread.join()
        if self._control.reason:
            raise _Stopped

    def _run_stream(self, stream: Stream, open_target: OpenTarget, telemetry: Telemetry | None = None) -> None:
        """Never raises. A failure stops the whole trial and becomes its reason."""
        try:
            self._emit(self._measure(stream, open_target, telemetry))
        except Failed as error:
            self._control.fail(error.code, self._stream_words(stream, error_text(error)))
        except Exception as error:
            log.exception("Stream %d failed because of an error in the worker.", stream.number)
            code = code_of(error, self._host.journal)
            self._control.fail(code, self._stream_words(stream, error_text(error)))

    def _measure(self, stream: Stream, open_target: OpenTarget, telemetry: Telemetry | None) -> StreamResult:
        def report(item: StreamStarted | Sample) -> None:
            self._emit(item)
            if telemetry and isinstance(item, Sample):
                self._tell_kernel_log()

        with self._folder(stream, open_target), self._scope(str(stream.number), open_target, alone=False) as scope:
            scope.not_before = self._not_before
            return engines.engine_of(stream).run_stream(
                Running(
                    stream=stream,
                    target=open_target,
                    scope=scope,
                    limits=Limits(total_s=self._order.total_limit_s, silence_s=self._order.silence_limit_s),
                    cancelled=self._control.stopped,
                    report=report,
                    telemetry=telemetry,
                    stop=self._stop,
                )
            )

    def _folder(self, stream: Stream, open_target: OpenTarget) -> AbstractContextManager[None]:
        """Its processes have ended when it is removed."""
        if not stream.workload.needs_folder or open_target.directory_fd is None:
            return nullcontext()
        return temporary_folder(folder_name(stream), open_target.directory_fd, self._host.journal)

    def _tell_kernel_log(self, *, without: str = "") -> None:
        if lines := self._kernel.lines(without=without):
            self._emit(KernelLog(lines=lines))

    def _stream_words(self, stream: Stream, words: str) -> str:
        return words if len(self._streams) == 1 else f"Stream {stream.name or stream.number}: {words}"

    @contextmanager
    def _scope(self, name: str, open_target: OpenTarget, *, alone: bool = True) -> Iterator[Scope]:
        """Check again that the target is unused, also by programs if the scope is `alone`: no other one is open.

        If processes cannot be killed, the trial fails and the drives are quarantined.
        """
        open_target.recheck(programs=alone)
        scope = open_scope(self._host.state, f"{self._order.attempt}.{name}", drives=_drives(open_target))
        try:
            yield scope
            open_target.recheck(programs=False)
        finally:
            if not scope.close():
                self._control.fail("process_stuck", f"{scope.name} cannot be killed. Its drives are quarantined.")


def _targets(order: TrialOrder) -> Iterable[TargetRef]:
    """The targets of the streams, and the drives of which layouts are built."""
    yield from (stream.target for stream in order.streams)
    yield from (drive for request in order.layouts for drive in request.drives)


def _drives(open_target: OpenTarget) -> tuple[str, ...]:
    """Stable ids of the drives under the target."""
    return tuple(map(sysfs.stable_id, drives_under((*open_target.devices, *open_target.members))))


def carry_out(order: TrialOrder, context: OrderContext) -> Finished:
    return Trial(order, context).run()
