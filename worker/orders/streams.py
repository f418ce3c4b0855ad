"""Group a trial's streams by target, and find the stream with the highest demands."""

from typing import Any

from worker import recipes
from worker.contract.workload import Stream, TargetRef


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Group streams by target: a device can be opened exclusively only once.

    All fields of the target must be the same, because the guard compares only one target of a group with the policy.
    """
    groups: dict[TargetRef, list[Stream]] = {}
    for stream in streams:
        groups.setdefault(stream.target, []).append(stream)
    return list(groups.values())


def strictest(streams: list[Stream]) -> Stream:
    """The stream with the highest demands: if it is allowed, the others are too."""
    return max(
        streams,
        key=lambda stream: (stream.workload.writes, stream.workload.space_bytes),
    )


def prefill_fields(stream: Stream) -> dict[str, Any]:
    """Fields of contract.items.Phase that describe a prefill."""
    files = stream.workload.files if recipes.render(stream).files else 0
    return {"stream": stream.number, "files": files, "file_bytes": stream.workload.size_bytes}
