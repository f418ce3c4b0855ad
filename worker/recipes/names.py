"""File names in targets."""

from worker.contract.workload import Stream, TargetKind


def scratch_names(stream: Stream) -> tuple[str, ...]:
    """The stream's files in a directory target. The size is part of the name: trials of one size share files. So is
    the name of the stream: streams of one trial do not share files."""
    own = f"{stream.name}." if stream.name else ""
    work = stream.workload
    return tuple(f"sweetspot.{own}{work.size_bytes}.{number}" for number in range(work.files))


def temporary_folder(stream: Stream) -> str:
    """The folder of a stream in its directory, removed with everything in it after the trial."""
    return f"temporary.{stream.number}"


def target_names(stream: Stream) -> tuple[str, ...]:
    """The paths that the engine opens: a device's path, a file's base name, or the scratch files."""
    if stream.target.kind is TargetKind.BLOCK:
        return (stream.target.path,)
    if stream.target.kind is TargetKind.FILE:
        return (stream.target.path.rpartition("/")[2],)
    return scratch_names(stream)
