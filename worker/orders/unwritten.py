"""Refuse to measure reads of files that were never written, because such reads do not reach the drive."""

import os

from worker.contract.workload import Stream, TargetKind
from worker.engines.errors import StreamFailed
from worker.guard.directories import PRIVATE
from worker.inventory.unwritten import unwritten_bytes, unwritten_words
from worker.open_target import OpenTarget
from worker.recipes.names import target_names

MAX_SHARE = 0.01  # of a file; the effect of fewer unwritten bytes is smaller than the difference between repeats


def refuse_unwritten(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the stream reads a file with holes or unwritten extents. Call it after the prefill.

    Files that do not exist yet are written by the engine before it reads them.
    """
    if open_target.cwd_fd is None or stream.workload.write_share == 1:
        return
    for name in target_names(stream):
        _refuse_file(name, stream, open_target.cwd_fd)


def _refuse_file(name: str, stream: Stream, directory_fd: int) -> None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory_fd)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        length = min(size, stream.workload.size_bytes or size)
        unwritten = unwritten_bytes(fd, length)
    finally:
        os.close(fd)
    if unwritten > MAX_SHARE * length:
        raise StreamFailed("reads_unwritten", _words(name, stream, unwritten, length))


def _words(name: str, stream: Stream, unwritten: int, length: int) -> str:
    target = stream.target
    if target.kind is TargetKind.DIRECTORY:
        words = unwritten_words(f"{target.path}/{PRIVATE}/{name}", unwritten, length)
        return f"{words} Set `prefill` to on."
    words = unwritten_words(target.path, unwritten, length)
    return f"{words} Write it first, from start to end, or use a directory target, whose files are written first."
