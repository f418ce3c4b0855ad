"""The job that prefills the files of a directory target. Prefill uses fio for every engine."""

import math

from worker.contract.workload import MIB, FioWorkload, IoEngine, Stream, TargetKind, Workload
from worker.recipes.base import Recipe
from worker.recipes.fio.names import size_text
from worker.recipes.fio.text import COMMAND, content, file_names, filename, flag, job_text

DEPTH = 16


def render_prefill(stream: Stream) -> Recipe | None:
    """The job that writes every file of a directory target once, completely; None if no prefill is needed.

    Devices and single files are never prefilled, because a stream that only reads must not overwrite them.
    """
    work = stream.workload
    if stream.target.kind is not TargetKind.DIRECTORY or not work.prefill:
        return None
    size_bytes = work.size_bytes or 0
    ioengine = ioengine_of(work)
    options = [
        *filename(stream),
        ("size", size_text(size_bytes * work.files)),
        ("rw", "write"),
        ("bs", size_text(math.gcd(size_bytes, MIB))),  # divides the size, so that the whole file is written
        ("ioengine", ioengine.value),
        ("iodepth", str(DEPTH if ioengine.asynchronous else 1)),
        ("direct", flag(work.direct)),
        ("end_fsync", "1"),
        *content(work),
        ("group_reporting", "1"),
    ]
    return Recipe(job_text("prefill", options), COMMAND, file_names(stream))


def ioengine_of(work: Workload) -> IoEngine:
    return work.ioengine if isinstance(work, FioWorkload) and work.ioengine.asynchronous else IoEngine.PSYNC
