"""Check that the workload fits its target. Engines may silently use less of a device, or extend a file."""

import os

from worker.contract.workload import Stream, TargetKind
from worker.engines.errors import StreamFailed
from worker.open_target import OpenTarget


def check_capacity(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the requested size exceeds the device or file. The guard checks directories."""
    wanted, there = stream.workload.end_bytes, size_of(stream, open_target)
    if wanted is not None and there is not None and wanted > there:
        raise StreamFailed(
            "option_refused",
            f"The workload uses {wanted} bytes, but {stream.target.path} has {there}: use a smaller size.",
        )


def size_of(stream: Stream, open_target: OpenTarget) -> int | None:
    """Bytes of the device or file; None if unknown or unlimited."""
    try:
        if stream.target.kind is TargetKind.BLOCK:
            return open_target.size_bytes
        if stream.target.kind is TargetKind.FILE:
            return os.stat(open_target.path, dir_fd=open_target.cwd_fd).st_size
    except OSError:
        return None
    return None
