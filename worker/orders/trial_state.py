"""One trial while it is carried out: its order, the host, and what its stages have found so far."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from worker.contract.items import KernelLog, Phase, PhaseName, SettingRecord
from worker.contract.orders import TrialOrder
from worker.contract.workload import Stream, TargetRef, WriteStep
from worker.drives.records import TrialDrives
from worker.drives.wear import Wear, WriteLimit
from worker.engines.base import StreamFailed, size_of
from worker.engines.running import Running
from worker.engines.stopping import SharedStop
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget
from worker.layouts.steps import Built
from worker.orders.context import OrderContext
from worker.policy import Policy
from worker.process.run import Limits
from worker.process.scope import Scope, open_scope
from worker.recipes.steps import prepared, step_stream
from worker.telemetry.kernel_log import KernelWatch, names_at


class TrialStopped(Exception):
    """`stop` of the control was called; the control has the reason."""


class TrialState:
    """`held` has the open targets and the watch of the write limit, until after the last stage."""

    allowed: Policy

    def __init__(self, order: TrialOrder, context: OrderContext) -> None:
        self.order = order
        self.context = context
        self.host = context.host
        self.emit = context.emit
        self.control = context.control
        self.held = ExitStack()
        self.kernel = KernelWatch(names_at(target.path for target in _targets(order)))
        self.drives = TrialDrives(self.host.drives)
        self.wear = Wear(self.host.state, order.run, context.emit)
        self.write_limit = WriteLimit(self.wear)
        self.armed_serials: tuple[str, ...] = ()
        self.streams = order.streams  # on the layouts after they were built
        self.layouts: Mapping[str, Built] = {}  # by pool
        self.targets: dict[int, OpenTarget] = {}  # by number of the stream
        self.drive_states: Mapping[str, str] = {}  # facts of the configuration
        self.applied: list[SettingRecord] = []
        self.not_before = 0.0  # moment of the monotonic clock: the common start of a trial on several hosts
        self.stop = None if order.streams[0].name else SharedStop(len(order.streams))

    @property
    def devices(self) -> set[str]:
        """Kernel names of all devices under the targets, and of the members of layouts."""
        return {name for target in self.targets.values() for name in (*target.devices, *target.members)}

    @property
    def step_writers(self) -> list[Stream]:
        """The streams of the steps that write."""
        return [
            self.step_writer(step, number, stream)
            for number, step in enumerate(self.order.steps, start=1)
            if isinstance(step, WriteStep)
            for stream in prepared(self.streams)
        ]

    def step_writer(self, step: WriteStep, number: int, stream: Stream) -> Stream:
        """The stream of one step, by its number in the order. Raises StreamFailed."""
        capacity = size_of(stream, self.targets[stream.number]) or 0
        if not stream.workload.size_bytes and not capacity:
            raise StreamFailed("option_refused", f"The capacity of {stream.target.path} is unknown: give a size.")
        return step_stream(step, stream, capacity, number=number)

    def watch_drives(self) -> None:
        """Building a layout writes to its drives, so their state is unknown from then on."""
        self.drive_states = self.drives.begin(() if self.layouts else self.streams, self.targets)

    def enter(self, name: PhaseName, **fields: Any) -> None:
        """Start a phase; `fields` are those of the contract. Raises TrialStopped."""
        self.stop_if_asked()
        self.emit(Phase(at=time.time(), name=name, **fields))

    def stop_if_asked(self) -> None:
        if self.control.stopped.is_set():
            raise TrialStopped

    def running(self, stream: Stream, scope: Scope, **more: Any) -> Running:
        """A stream in its scope; `more` are further fields of Running."""
        return Running(
            stream=stream,
            target=self.targets[stream.number],
            scope=scope,
            limits=Limits(total_s=self.order.total_limit_s, silence_s=self.order.silence_limit_s),
            cancelled=self.control.stopped,
            **more,
        )

    @contextmanager
    def scope(self, name: str, target: OpenTarget, *, alone: bool = True) -> Iterator[Scope]:
        """Check again that the target is unused, also by programs if the scope is `alone`: no other one is open.

        If processes cannot be killed, the trial fails and the drives are quarantined.
        """
        target.recheck(programs=alone)
        scope = open_scope(self.host.state, f"{self.order.attempt}.{name}", drives=stable_ids(target))
        try:
            yield scope
            target.recheck(programs=False)
        finally:
            if not scope.close():
                self.control.fail("process_stuck", f"{scope.name} cannot be killed. Its drives are quarantined.")

    def emit_kernel_log(self, *, without: str = "") -> None:
        if lines := self.kernel.lines(without=without):
            self.emit(KernelLog(lines=lines))


def _targets(order: TrialOrder) -> Iterable[TargetRef]:
    """The targets of the streams, and the drives of which layouts are built."""
    yield from (stream.target for stream in order.streams)
    yield from (drive for request in order.layouts for drive in request.drives)


def stable_ids(target: OpenTarget) -> tuple[str, ...]:
    """Of the drives under the target."""
    return tuple(map(sysfs.stable_id, sysfs.drives_under((*target.devices, *target.members))))
