"""The first stages of a trial: permission, purging, layouts, open targets, settings."""

from contextlib import AbstractContextManager

import msgspec

from worker import guard, policy
from worker.contract.items import PhaseName
from worker.contract.orders import TrialOrder
from worker.contract.workload import Stream, TargetRef
from worker.drives.purge import purge_target
from worker.kernel.targets import OpenTarget
from worker.layouts import taking_down
from worker.orders.layout_stage import LayoutStage, on_layout
from worker.orders.preparation import Steps, admissible, watch_drives
from worker.orders.trial_state import TrialState, stable_ids
from worker.recipes.steps import render_prefill
from worker.settings import SETTING_NAMES, session
from worker.telemetry.kernel_log import names_in


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
    for target in dict.fromkeys(drives or [stream.target for stream in order.streams]):
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
    written = Steps(state).written
    if not written:
        watch_drives(state)
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
    return bool(Steps(state).written) or any(
        stream.workload.writes or render_prefill(stream) for stream in state.streams
    )


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Group streams by target.

    All fields of the target must be the same, because the guard compares only one target of a group with the policy.
    """
    groups: dict[TargetRef, list[Stream]] = {}
    for stream in streams:
        groups.setdefault(stream.target, []).append(stream)
    return list(groups.values())


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
