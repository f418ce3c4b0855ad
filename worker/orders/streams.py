"""Group a trial's streams by target, and find the stream with the highest demands."""

from worker import recipes
from worker.contract.workload import Stream


def by_target(streams: tuple[Stream, ...]) -> list[list[Stream]]:
    """Group streams by target: a device can be opened exclusively only once."""
    groups: dict[tuple[str, str], list[Stream]] = {}
    for stream in streams:
        groups.setdefault((stream.target.stable_id, stream.target.path), []).append(stream)
    return list(groups.values())


def strictest(streams: list[Stream]) -> Stream:
    """The stream with the highest demands: if it is allowed, the others are too."""
    return max(
        streams,
        key=lambda stream: (stream.workload.pattern.writes, (stream.workload.size_bytes or 0) * stream.workload.files),
    )


def amount(stream: Stream) -> str:
    """What a prefill writes, in words."""
    size = stream.workload.size_bytes
    what = f"{stream.workload.files} file(s)" if recipes.render(stream).files else "the device"
    return f"{what} of {size} bytes" if size else what
