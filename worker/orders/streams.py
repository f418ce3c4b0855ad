"""The streams of a trial: which share a target, and which of those asks for most."""

from worker import recipes
from worker.contract.workload import Stream


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Streams at the same target together: a device can be held only once."""
    groups: dict[tuple[str, str], list[Stream]] = {}
    for stream in streams:
        groups.setdefault((stream.target.stable_id, stream.target.path), []).append(stream)
    return list(groups.values())


def strictest(streams: list[Stream]) -> Stream:
    """The stream that asks for most: what is allowed to it is allowed to the others."""
    return max(
        streams,
        key=lambda stream: (stream.workload.pattern.writes, (stream.workload.size_bytes or 0) * stream.workload.files),
    )


def amount(stream: Stream) -> str:
    """What is written before a stream, in words."""
    size = stream.workload.size_bytes
    what = f"{stream.workload.files} file(s)" if recipes.render(stream).files else "the device"
    return f"{what} of {size} bytes" if size else what
