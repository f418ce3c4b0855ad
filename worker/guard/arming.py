"""A person's word that drives may be overwritten: for these serials, and in time.

It comes signed with the order. A run that began in time may go on after the arming has expired; one that waited too
long destroys nothing.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from worker.contract.orders import Arming
from worker.contract.workload import Stream, TargetKind
from worker.guard.refusal import GuardRefused


def serials_in_time(arming: Arming | None, *, now: float, destroys: bool) -> tuple[str, ...]:
    """The armed serials at `now` (Unix time, s, the server's clock); none where nothing is armed any more.

    Raises GuardRefused where something is to be destroyed and the arming has expired.
    """
    if arming is None:
        return ()
    began = now if arming.run_began is None else min(arming.run_began, now)
    if began <= arming.until:
        return arming.serials
    if not destroys:
        return ()
    until = datetime.fromtimestamp(arming.until, UTC)
    raise GuardRefused(
        "guard_arming_expired",
        f"{arming.by} armed this until {until:%Y-%m-%d %H:%M} UTC; it had not begun by then. Arm it again: type the "
        f"serial of each drive ({', '.join(arming.serials)}).",
    )


def writes(streams: Iterable[Stream]) -> bool:
    """Whether one of them overwrites what is not the worker's own: files in a directory are."""
    return any(stream.workload.writes and stream.target.kind is not TargetKind.DIRECTORY for stream in streams)
