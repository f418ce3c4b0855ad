"""One trial, from the guard to the results.

    purge ─► guard ─► layout ─► settings ─► prefill ─► drop caches ─► observe ─► run (all streams at once) ─► done
      └────────┴──────────┴──────────┴────────────┴────────────┴─────────┴──► failed(code, words) | cancelled

Nothing here talks to a server: everything that happens is an item given to `emit`, so the
same trial runs under an order and from a file. Caches are dropped after the prefill, which
would fill them again. Settings and the layout are not put back here: they stay until the run is closed, or
another trial wants another layout.
"""

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import msgspec

from worker import engines, guard, inventory, layouts, policy, process, recipes
from worker.contract.items import Finished, Item, KernelLog, Observed, Outcome, Phase, Sample, StreamResult
from worker.contract.orders import TrialOrder
from worker.contract.workload import Stream
from worker.control import Control
from worker.drives.purge import PurgeFailed
from worker.drives.records import Drives, Watch
from worker.drives.wear import Wear
from worker.drives.write_limit import WriteLimit
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal
from worker.layouts import Built
from worker.open_target import OpenTarget
from worker.orders.layout_stage import Assembly, placed
from worker.orders.outcomes import finished
from worker.orders.purge import purge_target
from worker.orders.streams import amount, by_target, strictest
from worker.settings import SETTING_NAMES, caches, session
from worker.settings.observed import settings_facts
from worker.telemetry import KernelWatch, Telemetry, every_source, kernel_names

log = logging.getLogger(__name__)

Emit = Callable[[Item], None]
PREFILL_SAYS_EVERY_S = 1.0


class TrialFailed(Exception):
    """The trial cannot go on, for a reason with a code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Stopped(Exception):
    """Somebody called the control's `stop`; its reason says the rest."""


class Bench(msgspec.Struct, frozen=True):
    """What a trial works with on this host."""

    state: Path
    policy: Path
    journal: Journal
    files: CompleteFiles

    @property
    def drives(self) -> Drives:
        """What is known of the drives that were written here."""
        return Drives(self.state / "drives")


class Trial:
    def __init__(
        self, order: TrialOrder, bench: Bench, emit: Emit, control: Control, *, now: Callable[[], float] = time.time
    ) -> None:
        """`now` is Unix time by the server's clock, by which arming expires."""
        self._order = order
        self._bench = bench
        self._emit = emit
        self._control = control
        self._kernel = KernelWatch()
        self._now = now
        self._watch = Watch(bench.drives)
        self._wear = Wear(bench.state, order.run, emit)
        self._limit = WriteLimit(self._wear)
        self._streams = order.streams  # at what was built, once there is a layout
        self._built: Built | None = None

    def run(self) -> Finished:
        """Run it to its end, whatever that is; never raises for what can be expected to go wrong."""
        with self._kernel:
            try:
                with ExitStack() as held:
                    self._steps(held)
                return finished(Outcome.DONE)
            except _Stopped:
                return self._stopped()
            except EXPECTED as error:
                log.warning("The trial failed: %s: %s", error.code, error)
                return (
                    self._stopped() if self._control.reason else finished(Outcome.FAILED, error.code, in_words(error))
                )
            finally:
                self._watch.end(self._wear.end())
                self._tell_kernel_log()

    def _stopped(self) -> Finished:
        reason = self._control.reason
        assert reason is not None
        log.warning("The trial was stopped: %s: %s", reason.code, reason.message)
        return finished(reason.outcome, reason.code, reason.message)

    def _steps(self, held: ExitStack) -> None:
        self._enter("guard")
        allowed = policy.load(self._bench.policy, SETTING_NAMES)
        armed = guard.serials_in_time(self._order.arming, now=self._now(), destroys=self._destroys())
        bench = self._bench
        assembly = Assembly(self._order, armed, bench.state, bench.journal, self._emit, self._enter, self._wear.begin)
        self._purge(assembly, allowed, armed)
        self._put_together(assembly, allowed)
        open_targets = self._admit(allowed, armed, held)
        self._kernel.about(kernel_names(open_targets.values()))
        # What building writes is seen by the drives' counters: what they hold is unknown from then on.
        states = self._watch.begin(self._streams, open_targets) if self._built is None else {}
        writes = any(stream.workload.pattern.writes or recipes.render_prefill(stream) for stream in self._streams)
        if writes:
            self._limit.begin(allowed, self._streams, open_targets, self._order.layout, self._order.settings)
        self._enter("settings")
        self._settle(allowed, open_targets)
        if writes:  # settings of an earlier trial that are back now may have kept the kernel from counting
            self._wear.begin(
                name for open_target in open_targets.values() for name in (*open_target.devices, *open_target.members)
            )
            self._limit.check()
            held.enter_context(self._limit.watching(self._control))
        for stream in self._streams:
            self._prefill(stream, open_targets[stream.number])
        if self._order.drop_caches:
            caches.drop_caches()
        self._observe(open_targets, states)
        self._enter("run")
        self._run_streams(open_targets)

    def _enter(self, phase: str, detail: str = "") -> None:
        if self._control.stopped.is_set():
            raise _Stopped
        self._emit(Phase(at=time.time(), name=phase, detail=detail))

    def _put_together(self, assembly: Assembly, allowed: policy.Policy) -> None:
        self._built = assembly.put_together(allowed)
        if self._built is not None:
            self._streams = tuple(placed(stream, self._built) for stream in self._streams)

    def _destroys(self) -> bool:
        return self._order.purge is not None or self._order.layout is not None or guard.writes(self._order.streams)

    def _purge(self, assembly: Assembly, allowed: policy.Policy, armed: tuple[str, ...]) -> None:
        """Of the targets; under a layout of all its drives, from which it is taken down first."""
        if self._order.purge is None:
            return
        wish = self._order.layout
        if wish is not None:
            assembly.clear()
        targets = wish.drives if wish else [stream.target for stream in self._order.streams]
        for target in dict.fromkeys(targets):
            self._enter("purge", f"{self._order.purge} of {target.path}")
            purge_target(
                target, self._order.purge, allowed, armed,
                drives=self._bench.drives, emit=self._emit, control=self._control,
            )  # fmt: skip

    def _admit(self, allowed: policy.Policy, armed: tuple[str, ...], held: ExitStack) -> dict[int, OpenTarget]:
        """Every stream's open_target. Streams at the same target share one: a device can be held only once."""
        open_targets: dict[int, OpenTarget] = {}
        for streams in by_target(self._streams):
            open_target = held.enter_context(self._hold(strictest(streams), allowed, armed))
            open_targets.update((stream.number, open_target) for stream in streams)
        return open_targets

    def _hold(
        self, stream: Stream, allowed: policy.Policy, armed: tuple[str, ...]
    ) -> AbstractContextManager[OpenTarget]:
        if self._built is not None:
            built = self._built
            return guard.admit_layout(stream, device=built.device, mount_point=built.mount_point, members=built.members)
        return guard.admit(stream, allowed, armed)

    def _settle(self, allowed: policy.Policy, open_targets: Mapping[int, OpenTarget]) -> None:
        try:
            records = session.settle(self._order.settings, self._order.run, open_targets, allowed, self._bench.journal)
        except session.SettingFailed as error:
            for record in error.records:
                self._emit(record)
            raise
        for record in records:
            self._emit(record)

    def _observe(self, open_targets: Mapping[int, OpenTarget], states: Mapping[str, str]) -> None:
        facts: dict[str, str] = dict(states)
        for stream in self._streams:
            facts.update(inventory.observed_facts(open_targets[stream.number], stream))
        facts.update(
            settings_facts(
                {name for open_target in open_targets.values() for name in (*open_target.devices, *open_target.members)}
            )
        )
        if self._built is not None:
            facts["layout"] = self._built.record.line
        self._emit(Observed(at=time.time(), facts=facts))

    # ---- prefill

    def _prefill(self, stream: Stream, open_target: OpenTarget) -> None:
        work = stream.workload
        names = recipes.render(stream).files
        if open_target.cwd_fd is not None and work.pattern.writes:
            for name in names:
                self._bench.files.forget_other_content(open_target.cwd_fd, name, work.buffers)
        if recipes.render_prefill(stream) is None or self._is_filled(stream, open_target, names):
            return
        self._enter("prefill", f"stream {stream.number}: writing {amount(stream)}")
        with self._remembering(stream, open_target, names), self._scope(f"{stream.number}.prefill") as scope:
            engines.prefill(
                stream,
                open_target,
                scope=scope,
                cancelled=self._control.stopped,
                silence_limit_s=self._order.silence_limit_s,
                total_limit_s=self._order.total_limit_s,
                on_progress=self._prefill_progress(stream),
            )

    def _is_filled(self, stream: Stream, open_target: OpenTarget, names: tuple[str, ...]) -> bool:
        fd, size = open_target.cwd_fd, stream.workload.size_bytes
        if fd is None or size is None or not names:
            return False
        return all(self._bench.files.holds(fd, name, size=size, content=stream.workload.buffers) for name in names)

    @contextmanager
    def _remembering(self, stream: Stream, open_target: OpenTarget, names: tuple[str, ...]) -> Iterator[None]:
        """Complete files are remembered as such only if what is inside ends well."""
        fd, size = open_target.cwd_fd, stream.workload.size_bytes
        if fd is None or size is None:
            yield
            return
        for name in names:
            self._bench.files.forget(fd, name)
        yield
        for name in names:
            self._bench.files.add(fd, name, size=size, content=stream.workload.buffers)

    def _prefill_progress(self, stream: Stream) -> Callable[[float], None]:
        said_at = time.monotonic()

        def say(percent: float) -> None:
            nonlocal said_at
            if time.monotonic() - said_at >= PREFILL_SAYS_EVERY_S:
                said_at = time.monotonic()
                words = f"stream {stream.number}: writing {amount(stream)}"
                self._emit(Phase(at=time.time(), name="prefill", detail=words, percent=min(100.0, percent)))

        return say

    # ---- the measured part

    def _run_streams(self, open_targets: Mapping[int, OpenTarget]) -> None:
        """Run all streams at once: the first in this thread, which also reads the sensors. One failure stops all."""
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
        """Never raises: what goes wrong becomes the reason why the whole trial stops."""
        try:
            self._emit(self._measure(stream, open_target, telemetry))
        except EXPECTED as error:
            self._control.fail(error.code, self._stream_words(stream, in_words(error)))
        except Exception as error:
            log.exception("Stream %d met a fault of the worker.", stream.number)
            self._control.fail("internal_error", self._stream_words(stream, in_words(error)))

    def _measure(self, stream: Stream, open_target: OpenTarget, telemetry: Telemetry | None) -> StreamResult:
        def on_sample(sample: Sample) -> None:
            self._emit(sample)
            if telemetry:
                self._tell_kernel_log()

        with self._scope(str(stream.number)) as scope:
            return engines.run_stream(
                stream,
                open_target,
                scope=scope,
                cancelled=self._control.stopped,
                silence_limit_s=self._order.silence_limit_s,
                total_limit_s=self._order.total_limit_s,
                on_started=self._emit,
                on_sample=on_sample,
                telemetry=telemetry,
            )

    def _tell_kernel_log(self) -> None:
        if lines := self._kernel.lines():
            self._emit(KernelLog(lines=lines))

    def _stream_words(self, stream: Stream, words: str) -> str:
        return words if len(self._streams) == 1 else f"Stream {stream.number}: {words}"

    @contextmanager
    def _scope(self, name: str) -> Iterator[process.Scope]:
        scope = process.open_scope(self._bench.state, f"{self._order.attempt}.{name}")
        try:
            yield scope
        finally:
            scope.close()


EXPECTED = (
    TrialFailed,
    recipes.RecipeError,
    engines.StreamFailed,
    guard.GuardRefused,
    session.SettingFailed,
    layouts.LayoutFailed,
    policy.PolicyError,
    PurgeFailed,
)


def in_words(error: Exception) -> str:
    """The error's message, and what fio said last."""
    words = str(error) or type(error).__name__
    stderr = getattr(error, "stderr", "").strip()
    return f"{words}\n{stderr[-4000:]}" if stderr and stderr not in words else words
