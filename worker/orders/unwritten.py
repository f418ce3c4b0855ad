"""Refuse to measure reads of files that were never written, because such reads do not reach the drive."""

import os

from worker.contract.workload import Stream, TargetKind
from worker.engines.errors import StreamFailed, errno_words
from worker.guard.directories import PRIVATE
from worker.inventory.unwritten import unwritten_bytes, unwritten_words
from worker.open_target import OpenTarget
from worker.recipes.names import target_names

MAX_SHARE = 0.01  # of a file that may be unwritten, but at most:
MAX_BYTES = 2**20  # so few are read in milliseconds, wherever they are
_AFTER_PREFILL = (
    "It was written completely, so another program emptied it, or its file system does not store zeroes. Remove it."
)


def refuse_unwritten(stream: Stream, open_target: OpenTarget) -> None:
    """Raises StreamFailed if the stream reads a file with holes or unwritten extents, or whose extents are unknown.

    Call it after the prefill. Files that do not exist yet are written by the engine before it reads them.
    """
    if open_target.cwd_fd is None or not stream.workload.reads:
        return
    for name in target_names(stream):
        try:
            _refuse_file(name, stream, open_target.cwd_fd)
        except OSError as error:  # such as errno 5: the file's dirty pages are written first
            words = f"The extents of {_shown(name, stream)} cannot be read: {errno_words(error.errno or 0)}."
            raise StreamFailed("extents_unreadable", words) from error


def _refuse_file(name: str, stream: Stream, directory_fd: int) -> None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory_fd)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(fd).st_size
        length = min(size, stream.workload.end_bytes or size)
        unwritten = unwritten_bytes(fd, length)
    finally:
        os.close(fd)
    if unwritten > min(MAX_SHARE * length, MAX_BYTES):
        raise StreamFailed("reads_unwritten", _words(name, stream, unwritten, length))


def _shown(name: str, stream: Stream) -> str:
    target = stream.target
    return f"{target.path}/{PRIVATE}/{name}" if target.kind is TargetKind.DIRECTORY else target.path


def _words(name: str, stream: Stream, unwritten: int, length: int) -> str:
    words = unwritten_words(_shown(name, stream), unwritten, length)
    if stream.target.kind is TargetKind.DIRECTORY:
        return f"{words} {_AFTER_PREFILL if stream.workload.prefill else 'Set `prefill` to on.'}"
    return f"{words} Write it first, from start to end, or use a directory target, whose files are written first."
