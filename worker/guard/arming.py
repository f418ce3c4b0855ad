"""Arming: a person's permission to overwrite named drives, until a given time.

It is signed together with the order. A run that started in time may continue after the arming has expired. A run that
started too late must not overwrite anything.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from worker.contract.orders import Arming
from worker.contract.workload import Stream, TargetKind
from worker.guard.refusal import GuardRefused


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
