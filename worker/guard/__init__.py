"""Decide which targets may be used on this host, and hold them open. An error here can destroy data.

    order's target ─► policy entry with the same id, path, kind, stable id and serial
        block      ─► same drive? unused? destroyable, each signature on it named, and armed? ─► held with O_EXCL
        directory  ─► no links in the path, writable only by its owner ─► its subdirectory .sweetspot, held open
        slot       ─► controller's answer: same serial? unconfigured and good? destroyable and armed?
        file       ─► no links in the path, no hard links, destroyable and armed ─► its directory, held open

The guard refuses everything that it cannot verify. A write to a device or file requires
`destroy = true` in the policy and a valid arming: the serial that a person typed for this run. `destroy = true` alone
covers an empty device; every signature on it must be named (`guard.content`). In a directory the worker writes only
its own files.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from worker.contract.inventory import Controller, PurgeMethod
from worker.contract.orders import Arming
from worker.contract.workload import Stream, TargetKind, TargetRef
from worker.guard import slots
from worker.guard.blocks import hold as hold_block
from worker.guard.blocks import hold_whole, identify, refuse_unless_destroyable, resolve
from worker.guard.blocks import survey as survey_block
from worker.guard.directories import hold_directory, hold_file, survey_directory, survey_file
from worker.guard.lease import Lease, refuse_used_by_loop
from worker.guard.protection import refuse_protected
from worker.guard.refusal import GuardRefused, Survey
from worker.guard.slots import controllers_now
from worker.kernel import sysfs
from worker.kernel.signatures import identity
from worker.kernel.targets import OpenTarget
from worker.policy import ANY_SIGNATURE, Policy, PolicyEntry
from worker.process.scope import stuck_scopes

# Quarantined drives: a program on them could not be killed, so it may still write. Nothing else runs on them.
#
# The quarantine ends when the processes are gone, or when a person says so: `sweetspot-worker forget NAME`.


def quarantined(state: Path) -> dict[str, str]:
    """Stable ids of the drives, with the reason."""
    return {
        drive: f"a program of the worker on {drive} cannot be killed ({scope.name}). Restart the host, or replace the "
        f"drive. If the program is gone: sweetspot-worker forget {scope.name}"
        for scope in stuck_scopes(state)
        for drive in scope.drives
    }


def refuse_quarantined(drives: Collection[str], state: Path) -> None:
    """`drives`: stable ids."""
    known = quarantined(state)
    if drive_in_quarantine := next((drive for drive in drives if drive in known), ""):
        raise GuardRefused("guard_quarantined", f"The drive is quarantined: {known[drive_in_quarantine]}.")


# Arming: a person's permission to overwrite named drives, until a given time.
#
# It is signed together with the order. A run that started in time may continue after the arming has expired. A run
# that started too late must not overwrite anything.


def serials_in_time(arming: Arming | None, *, now: float, destroys: bool) -> tuple[str, ...]:
    """The armed serials at `now` (Unix time, s, the server's clock); () if the arming has expired.

    Raises GuardRefused if the arming has expired and the order would overwrite a drive.
    """
    if arming is None:
        return ()
    started_at = now if arming.run_began is None else min(arming.run_began, now)
    if started_at <= arming.until:
        return arming.serials
    if not destroys:
        return ()
    until = datetime.fromtimestamp(arming.until, UTC)
    raise GuardRefused(
        "guard_arming_expired",
        f"{arming.by} armed this until {until:%Y-%m-%d %H:%M} UTC; it had not started by then. Arm it again: type the "
        f"serial of each drive ({', '.join(arming.serials)}).",
    )


def writes(streams: Iterable[Stream]) -> bool:
    """True if a stream overwrites data that does not belong to the worker. Its files in a directory do."""
    return any(stream.workload.writes and stream.target.kind is not TargetKind.DIRECTORY for stream in streams)


OWN_LAYOUT = Policy(Path("the journal"), ())  # instead of the file's entries, which protect nothing on a layout


@contextmanager
def admit(
    stream: Stream, policy: Policy, armed_serials: tuple[str, ...], beside: Sequence[Stream] = ()
) -> Iterator[OpenTarget]:
    """Open the stream's target and hold it inside the context. Raises GuardRefused.

    `beside` are the other streams on this target, whose demands are not higher; in a directory all need space.
    """
    with _held(_entry(stream.target, policy), policy, stream, armed_serials, beside) as open_target:
        yield open_target


@contextmanager
def _held(
    entry: PolicyEntry, policy: Policy, stream: Stream, armed_serials: tuple[str, ...], beside: Sequence[Stream]
) -> Iterator[OpenTarget]:
    with ExitStack() as stack:
        with _refusing_errors(entry):
            open_target = stack.enter_context(_hold(entry, policy, stream, armed_serials, beside))

        def recheck(*, programs: bool) -> None:
            with _refusing_errors(entry):
                open_target.recheck(programs=programs)

        yield msgspec.structs.replace(open_target, recheck=recheck)


@contextmanager
def _refusing_errors(entry: PolicyEntry) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise GuardRefused("guard_path", f"{entry.path} could not be checked: {error}.") from error


@contextmanager
def lease_drive(
    target: TargetRef, policy: Policy, armed_serials: tuple[str, ...], method: PurgeMethod
) -> Iterator[Lease]:
    """Hold a whole drive to purge it. Raises GuardRefused."""
    entry = _entry(target, policy)
    if entry.kind is not TargetKind.BLOCK:
        raise GuardRefused("guard_path", f"{entry.id} is a {entry.kind}; only block devices can be purged.")
    if problem := entry.purge_problem(method):
        raise GuardRefused("guard_purge_not_permitted", problem)
    with hold_whole((entry,), policy, armed_serials, purpose="Purging needs") as (drive,):
        yield drive


@contextmanager
def lease_drives(
    entries: Sequence[PolicyEntry], policy: Policy, armed_serials: tuple[str, ...], *, virtual: bool = False
) -> Iterator[tuple[Lease, ...]]:
    """Hold all drives of a layout, in this order. `virtual`: the drives are slots of a controller.

    Raises GuardRefused, before the caller has changed the first drive.
    """
    kind = TargetKind.SLOT if virtual else TargetKind.BLOCK
    for entry in entries:
        if entry.kind is not kind:
            needs = "virtual drives need slots" if virtual else "layouts need block devices"
            raise GuardRefused("guard_path", f"{entry.id} is a {entry.kind}; {needs}.")
    if len({entry.identity for entry in entries}) != len(entries):
        raise GuardRefused("guard_path", f"A drive is listed twice: {', '.join(entry.path for entry in entries)}.")
    if virtual:
        known = controllers_now()
        yield tuple(slots.lease(entry, known, armed_serials) for entry in entries)
        return
    with hold_whole(entries, policy, armed_serials, purpose="Layouts need") as drives:
        yield drives


def listed(target: TargetRef, policy: Policy) -> OpenTarget:
    """Find the target of a setting that is changed outside a run: it must be in the policy and present.

    The target is not opened. Raises GuardRefused.
    """
    entry = _entry(target, policy)
    surveyed = survey(entry)
    if surveyed.problem:
        raise GuardRefused("guard_path", surveyed.problem)
    return OpenTarget(path=surveyed.opens or entry.path, device=surveyed.device, target=entry.id)


def pool_drives(pool: TargetRef, drives: tuple[TargetRef, ...], policy: Policy) -> tuple[PolicyEntry, ...]:
    """The policy entries of a layout's drives: the first drives of the pool, in its order.

    Raises GuardRefused.
    """
    drives_of_pool = policy.drives(pool.id)
    if not drives_of_pool or pool.stable_id != policy.identity(pool.id):
        listed = ", ".join(each.id for each in policy.pools) or "none"
        raise GuardRefused(
            "guard_not_in_policy",
            f"{policy.path} lists no pool {pool.id!r} with these drives; it lists {listed}. If the pool was changed "
            "since the run was planned, start a new run.",
        )
    entries = tuple(_entry(drive, policy) for drive in drives)
    if entries != drives_of_pool[: len(entries)]:
        raise GuardRefused("guard_not_in_policy", f"The order's drives are not the first drives of pool {pool.id!r}.")
    return entries


@contextmanager
def admit_layout(
    stream: Stream, *, device: str, mount_point: str, members: tuple[str, ...], beside: Sequence[Stream] = ()
) -> Iterator[OpenTarget]:
    """Open a layout that the worker has built, and hold it inside the context.

    The stream uses the directory `mount_point`, or the device node `device` if `mount_point` is "".
    """
    entry = _layout_entry(stream.target.id, device, mount_point)
    with _held(entry, OWN_LAYOUT, stream, (entry.arming_serial,), beside) as open_target:

        def recheck(*, programs: bool) -> None:
            open_target.recheck(programs=programs)
            for member in members:
                refuse_used_by_loop(member)

        yield msgspec.structs.replace(open_target, members=members, recheck=recheck)


def _layout_entry(target: str, device: str, mount_point: str) -> PolicyEntry:
    if mount_point:
        return PolicyEntry(id=target, kind=TargetKind.DIRECTORY, path=mount_point)
    name = sysfs.name_in(device)
    return PolicyEntry(
        id=target,
        kind=TargetKind.BLOCK,
        path=device,
        stable_id=identity(name),
        serial=sysfs.serial(name),
        destroy=True,
        destroy_signatures=(ANY_SIGNATURE,),  # of earlier trials of the run, or left of earlier uses of its drives
    )


def recheck_drives(entries: Sequence[PolicyEntry], policy: Policy, armed_serials: tuple[str, ...]) -> tuple[str, ...]:
    """Check that the drives under an existing layout are unchanged, destroyable, and armed for this order.

    Returns their kernel names; slots have none. Raises GuardRefused.
    """
    names = []
    known = controllers_now() if any(entry.kind is TargetKind.SLOT for entry in entries) else ()
    for entry in entries:
        if entry.kind is TargetKind.SLOT:
            slots.recheck(entry, known, armed_serials)
            continue
        name, _path = resolve(entry)
        identify(entry, name)
        refuse_unless_destroyable(entry, name, armed_serials)
        refuse_protected(entry, name, policy)
        names.append(name)
    return tuple(names)


def survey(entry: PolicyEntry, *, own_layout: bool = False, controllers: Collection[Controller] = ()) -> Survey:
    """Check whether the entry's target is present and usable, without changing or holding it.

    `own_layout`: a layout of this worker is on the drive, so it may be in use. `controllers`: known controllers.
    """
    surveys: dict[TargetKind, Callable[[PolicyEntry], Survey]] = {
        TargetKind.BLOCK: partial(survey_block, own_layout=own_layout),
        TargetKind.DIRECTORY: survey_directory,
        TargetKind.FILE: survey_file,
        TargetKind.SLOT: partial(slots.survey, known=controllers, own_layout=own_layout),
    }
    try:
        return surveys[entry.kind](entry)
    except OSError as error:
        return Survey(problem=f"{entry.path}: {error.strerror or error}.")


def _hold(
    entry: PolicyEntry, policy: Policy, stream: Stream, armed_serials: tuple[str, ...], beside: Sequence[Stream]
) -> AbstractContextManager[OpenTarget]:
    if entry.kind is TargetKind.BLOCK:
        return hold_block(entry, policy, stream, armed_serials)
    if entry.kind is TargetKind.DIRECTORY:
        return hold_directory(entry, (stream, *beside))
    if entry.kind is TargetKind.SLOT:
        raise GuardRefused("guard_path", f"{entry.id} is a slot: only the controller can access its drive.")
    return hold_file(entry, policy, stream, armed_serials)


def _entry(target: TargetRef, policy: Policy) -> PolicyEntry:
    """The policy entry of an order's target. The caller uses only the entry, not the order's values."""
    entry = policy.entry(target.id)
    if entry is None:
        listed = ", ".join(each.id for each in policy.targets) or "nothing"
        raise GuardRefused("guard_not_in_policy", f"{policy.path} does not list {target.id!r}; it lists {listed}.")
    serials = (entry.serial,) if entry.serial else ("", entry.identity)
    comparisons = (
        ("kind", target.kind == entry.kind),
        ("path", target.path == entry.path),
        ("stable id", target.stable_id == entry.identity),
        ("serial", target.serial in serials),
    )
    differences = [what for what, same in comparisons if not same]
    if differences:
        raise GuardRefused(
            "guard_not_in_policy",
            f"The order's target {target.id!r} differs from {policy.path} in {', '.join(differences)}. "
            "The policy has changed since the run was planned: start a new run.",
        )
    return entry
