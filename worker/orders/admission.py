"""The first stages of a trial: permission, purging, layouts, open targets, settings."""

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack

import msgspec

from worker import guard, policy
from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.items import PhaseName, SettingRecord, SettingRestored
from worker.contract.orders import LayoutRequest, TrialOrder
from worker.contract.workload import Stream, TargetKind, TargetRef, WriteStep
from worker.drives.purge import purge_target
from worker.kernel.targets import OpenTarget
from worker.layouts import building, taking_down, virtual_drives
from worker.layouts.steps import Built, LayoutFailed
from worker.orders.trial_state import TrialState, stable_ids
from worker.policy import PolicyEntry
from worker.recipes.layouts.problems import array_problem
from worker.recipes.layouts.text import write
from worker.recipes.steps import render_prefill, step_stream
from worker.settings import SETTING_NAMES, session
from worker.telemetry.kernel_log import names_in

# The layout stage of a trial: keep the existing layout of each pool, or take other layouts down and build.
#
#     order's drives ─► guard ─► exists? ─── yes ─────────────────────────────► still armed? ─► read back ─► streams
#                                   └── no ─► take others down ─► build ───────────┘
#
# Settings are restored before a layout is taken down, because the settings of an array disappear with it.

ANY_CAPACITY = 2**30  # where only the kind of access matters, before the target is open
KEY_BYTES = 3  # six digits, because labels of XFS have 12 characters


class LayoutStage:
    """The layouts of one trial. A stop of the trial also stops a command that runs."""

    def __init__(self, state: TrialState) -> None:
        self._trial = state
        self._order = state.order
        self._armed_serials = state.armed_serials
        self._state = state.host.state
        self._journal = state.host.journal

    def clear(self) -> None:
        """Take every layout down, even a requested one, so that its drives can be purged.

        Raises LayoutFailed and GuardRefused for layouts that could not be built then.
        """
        self._refuse_array_actions()
        self._drives()
        self._clear((), ())

    def build(self) -> dict[str, Built]:
        """Provide the requested layouts, and take every other one down. Returns them by the id of their pool.

        Raises GuardRefused, LayoutFailed and TrialStopped.
        """
        self._refuse_array_actions()
        drives = self._drives()
        existing = {
            request.pool: building.existing_layout(
                request.layout, drives[request.pool], run=self._order.run, journal=self._journal
            )
            for request in self._order.layouts
        }
        began = time.monotonic()
        kept_keys = [built_layout.record.key for built_layout in existing.values() if built_layout]
        every_drive = [entry for entries in drives.values() for entry in entries]
        self._clear(kept_keys, every_drive)
        guard.recheck_drives(every_drive, self._trial.allowed, self._armed_serials)
        self._hold_once([request for request in self._order.layouts if not existing[request.pool]], drives)
        built = {}
        for request in self._order.layouts:
            built[request.pool] = self._provide(request, drives[request.pool], existing[request.pool], began)
            began = time.monotonic()
        return built

    def _drives(self) -> dict[str, tuple[PolicyEntry, ...]]:
        """The drives of each requested layout, by the id of its pool."""
        requests = self._order.layouts
        pools = dict.fromkeys(stream.target for stream in self._order.streams) if requests else {}
        wanted = [request.pool for request in requests]
        if (
            [pool.id for pool in pools] != wanted
            or len({*wanted}) < len(wanted)
            or any(len(request.drives) != request.layout.drives for request in requests)
        ):
            raise LayoutFailed("layout_refused", "The order's streams and drives do not match its layouts.")
        entries_by_pool = {
            pool.id: guard.pool_drives(pool, request.drives, self._trial.allowed)
            for pool, request in zip(pools, requests, strict=True)
        }
        used = [entry.identity for entries in entries_by_pool.values() for entry in entries]
        if len({*used}) < len(used):
            raise LayoutFailed(
                "layout_refused", f"The pools {', '.join(entries_by_pool)} use the same drive for their layouts."
            )
        return entries_by_pool

    def _hold_once(self, requests: Sequence[LayoutRequest], drives: Mapping[str, Sequence[PolicyEntry]]) -> None:
        """Refuse a drive that is in use before the first layout overwrites others. One layout holds all its drives."""
        with ExitStack() as held:
            for request in requests if len(requests) > 1 else ():
                leases = guard.lease_drives(
                    drives[request.pool],
                    self._trial.allowed,
                    self._armed_serials,
                    virtual=virtual_drives.is_made(request.layout),
                )
                guard.refuse_quarantined([lease.stable_id for lease in held.enter_context(leases)], self._state)

    def _provide(
        self, request: LayoutRequest, drives: Sequence[PolicyEntry], existing: Built | None, began: float
    ) -> Built:
        """`began`: when the removal of other layouts or this build began, on the monotonic clock."""
        built = existing or self._build_new(request, drives)
        members = guard.recheck_drives(drives, self._trial.allowed, self._armed_serials)
        self._record(request, built, took_s=None if existing else time.monotonic() - began)
        return msgspec.structs.replace(built, members=members or built.members)

    def _refuse_array_actions(self) -> None:
        requested = {request.pool: request.layout for request in self._order.layouts}
        acting = [stream for stream in self._order.streams if stream.workload.needs_array]
        if len({stream.target.id for stream in acting}) < len(acting):
            raise LayoutFailed(
                "layout_refused", "An array has one action at a time: two streams act on the same array."
            )
        for stream in acting:
            layout = requested.get(stream.target.id)
            if problem := array_problem(layout, replaces_member=stream.workload.replaces_member):
                raise LayoutFailed("layout_refused", f"The streams and the layout do not match: {problem}.")

    def _clear(self, keys: Collection[str], drives: Sequence[PolicyEntry]) -> None:
        """Take down every layout except those with these keys; fails if one of them remains on `drives`."""
        records = [each for each in building.of_runs(self._journal) if each.key not in keys]
        for run in dict.fromkeys(record.run for record in records):
            self._emit_all(session.restore_run(run, self._journal))
        self._emit_all(building.restore(records, state=self._state, journal=self._journal))
        for record in self._journal.layouts():
            if record.key not in keys and building.overlaps(record, drives):
                raise LayoutFailed(
                    "layout_held",
                    f"`{record.line}` (run {record.run}) is still on these drives: "
                    f"run “{building.removal_command(record)}” on the host to take it down or to see why it cannot be.",
                )

    def _emit_all(self, items: Iterable[SettingRestored]) -> None:
        for item in items:
            self._trial.emit(item)

    def _build_new(self, request: LayoutRequest, drives: Sequence[PolicyEntry]) -> Built:
        self._trial.wear.begin(guard.recheck_drives(drives, self._trial.allowed, self._armed_serials))
        return building.build(
            request.layout,
            drives,
            self._armed_serials,
            allowed=self._trial.allowed,
            key=secrets.token_hex(KEY_BYTES),
            run=self._order.run,
            state=self._state,
            journal=self._journal,
            go_on=lambda: self._trial.enter(PhaseName.LAYOUT, layout=write(request.layout)),
            stop_if_asked=self._trial.stop_if_asked,
        )

    def _record(self, request: LayoutRequest, built: Built, *, took_s: float | None) -> None:
        """Report the layout as requested and as observed; fails if an option was accepted but not applied."""
        line, observed = write(request.layout), building.read_back(request.layout, built)
        device = ", ".join(built.members)[:MAX_LABEL]
        self._trial.emit(
            SettingRecord(
                at=time.time(),
                name=building.NAME,
                device=device,
                before="",
                asked=line,
                observed=observed.words[:MAX_TEXT],
                took_s=took_s,
            )
        )
        if observed.wrong:
            raise LayoutFailed("layout_clamped", f"{line} was built differently: {'; '.join(observed.wrong)}.")


def on_layout(stream: Stream, built: Built) -> Stream:
    """Move the stream to the built layout: a directory if there is a file system, else a block device."""
    kind = TargetKind.DIRECTORY if built.mount_point else TargetKind.BLOCK
    target = msgspec.structs.replace(stream.target, kind=kind, path=built.mount_point or built.device)
    return msgspec.structs.replace(stream, target=target)


def allow(state: TrialState) -> None:
    """Read the policy, and which drives a person has armed."""
    order, host = state.order, state.host
    host.journal.require_reserve()
    state.allowed = policy.load(host.policy, SETTING_NAMES)
    writing = guard.writes(admissible(order, list(order.streams)))
    destroys = order.purge is not None or bool(order.layouts) or writing
    state.armed_serials = guard.serials_in_time(order.arming, now=state.context.server_now(), destroys=destroys)


def purge(state: TrialState) -> None:
    """Purge the targets, or all drives of the layouts after taking them down."""
    order, host = state.order, state.host
    if order.purge is None:
        return
    drives = [drive for request in order.layouts for drive in request.drives]
    if drives:
        LayoutStage(state).clear()
    targets = dict.fromkeys(drives or [stream.target for stream in order.streams])
    with ExitStack() as held:  # before the first one is purged
        for target in targets if len(targets) > 1 else ():
            lease = held.enter_context(guard.lease_drive(target, state.allowed, state.armed_serials, order.purge))
            guard.refuse_quarantined([lease.stable_id], host.state)
    for target in targets:
        state.enter(PhaseName.PURGE, target=target.path, method=order.purge)
        purge_target(
            target, order.purge, state.allowed, state.armed_serials,
            drives=host.drives, journal=host.journal, state=host.state, emit=state.emit, stopped=state.control.stopped,
        )  # fmt: skip


def lay_out(state: TrialState) -> None:
    """Provide the layouts of the order, and move the streams onto them."""
    state.layouts = LayoutStage(state).build()
    if state.layouts:
        state.streams = tuple(on_layout(stream, state.layouts[stream.target.id]) for stream in state.streams)


def hold_targets(state: TrialState) -> None:
    """Open the target of each stream, and begin to watch the drives. A device can be held only once: streams on the
    same target share it."""
    for streams in by_target(state.streams):
        target = state.held.enter_context(_hold(state, streams))
        guard.refuse_quarantined(stable_ids(target), state.host.state)
        state.targets.update((stream.number, _with_array(state, stream, target)) for stream in streams)
    state.kernel.about(names_in(state.targets.values()))
    written = state.step_writers
    if not written:
        state.watch_drives()
    if _writes(state):
        writers = (*state.streams, *written)
        state.write_limit.begin(state.allowed, writers, state.targets, state.order.layouts, state.order.settings)


def apply_settings(state: TrialState) -> None:
    try:
        state.applied = session.apply_settings(
            state.order.settings, state.order.run, state.targets, state.allowed, state.host.journal
        )
    except session.SettingFailed as error:
        for record in error.records:
            state.emit(record)
        raise
    for record in state.applied:
        state.emit(record)
    if _writes(state):  # after the settings, because those of an earlier trial may have disabled the counters
        state.wear.begin(state.devices)
        state.write_limit.check()
        state.held.enter_context(state.write_limit.watching(state.control))


def _writes(state: TrialState) -> bool:
    return bool(state.step_writers) or any(stream.workload.writes or render_prefill(stream) for stream in state.streams)


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Group streams by target.

    All fields of the target must be the same, because the guard compares only one target of a group with the policy.
    """
    groups: dict[TargetRef, list[Stream]] = {}
    for stream in streams:
        groups.setdefault(stream.target, []).append(stream)
    return list(groups.values())


def admissible(order: TrialOrder, streams: list[Stream]) -> list[Stream]:
    """The streams, and those of the steps that write, for the guard: their amounts do not matter."""
    steps = [step for step in order.steps if isinstance(step, WriteStep)]
    return [*streams, *(step_stream(step, stream, ANY_CAPACITY) for stream in streams for step in steps)]


def strictest(order: TrialOrder, streams: list[Stream]) -> Stream:
    """The stream with the highest demands, also of the steps: if it is allowed, the others are too."""
    return max(admissible(order, streams), key=lambda stream: (stream.workload.writes, stream.workload.space_bytes))


def _hold(state: TrialState, streams: list[Stream]) -> AbstractContextManager[OpenTarget]:
    """Hold the target of these streams, which they share."""
    stream = strictest(state.order, streams)
    beside = [each for each in streams if each.number != stream.number]
    if not state.layouts:
        return guard.admit(stream, state.allowed, state.armed_serials, beside)
    built = state.layouts[stream.target.id]
    return guard.admit_layout(
        stream, device=built.device, mount_point=built.mount_point, members=built.members, beside=beside
    )


def _with_array(state: TrialState, stream: Stream, target: OpenTarget) -> OpenTarget:
    if not state.layouts or not stream.workload.needs_array:
        return target
    record = state.layouts[stream.target.id].record
    array = taking_down.array_of(record, state=state.host.state, journal=state.host.journal)
    return msgspec.structs.replace(target, array=array)
