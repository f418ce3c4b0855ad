"""Prefill and preparation steps as text and as workloads. Both use fio, whatever the engine of the measurement."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from worker.contract.fio_options import FioOptions
from worker.contract.workload import (
    MIB,
    FioWorkload,
    IoEngine,
    Pattern,
    PauseStep,
    Step,
    Stream,
    TargetKind,
    Workload,
    WriteStep,
)
from worker.recipes.base import Recipe, size_words, target_names
from worker.recipes.fio import COMMAND, DATA_OPTIONS, content, file_names, filename, flag, job_text, size_text

# The job that prefills the files of a directory target. Prefill uses fio for every engine.

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
    """For writes of whole files and devices; through the block layer, which counts them."""
    if not isinstance(work, FioWorkload) or not work.ioengine.asynchronous:
        return IoEngine.PSYNC
    return IoEngine.IO_URING if work.ioengine is IoEngine.IO_URING_CMD else work.ioengine


OTHER_OFFSETS = 1000  # added to the seed for each step, because equal seeds draw equal offsets


def step_words(step: Step) -> str:
    """`write 2x sequential 128 KiB`. Plans accept it as a step."""
    if isinstance(step, WriteStep):
        amount = f"{step.times}x" if step.amount_bytes is None else size_words(step.amount_bytes)
        return f"write {amount} {'random' if step.random else 'sequential'} {size_words(step.block_bytes)}"
    return f"pause {step.seconds}s" if isinstance(step, PauseStep) else "flush"


def writes(steps: Iterable[Step]) -> bool:
    return any(isinstance(step, WriteStep) for step in steps)


def step_workload(
    step: WriteStep, measured: Workload, kind: TargetKind, capacity_bytes: int, *, number: int = 1
) -> FioWorkload:
    """The workload that carries out a step, the `number`-th of its trial.

    `capacity_bytes`: of the device or file, if the measured workload has no size. A device is always written with
    direct I/O, so that no data stays in the page cache.
    """
    ioengine = ioengine_of(measured)
    used_bytes = (measured.size_bytes or capacity_bytes) * measured.files
    return FioWorkload(
        pattern=Pattern.RANDWRITE if step.random else Pattern.WRITE,
        block_bytes=step.block_bytes,
        ioengine=ioengine,
        iodepth=DEPTH if ioengine.asynchronous and (measured.direct or kind is TargetKind.BLOCK) else 1,
        direct=measured.direct or kind is TargetKind.BLOCK,
        amount_bytes=step.times * used_bytes if step.amount_bytes is None else step.amount_bytes,
        size_bytes=measured.size_bytes,
        files=measured.files,
        prefill=not measured.creates_files,  # so that it has the same files
        buffers=measured.buffers,
        seed=measured.seed + number * OTHER_OFFSETS,
        options=_options(measured),
    )


def _options(measured: Workload) -> FioOptions:
    """The offset of the used part, and the content of the data."""
    wanted: dict[str, Any] = measured.options.wanted() if isinstance(measured, FioWorkload) else {}
    return FioOptions(**{name: wanted[name] for name in ("offset", *DATA_OPTIONS) if name in wanted})


def step_problems(steps: Iterable[Step], measured: Workload, capacity_bytes: int) -> Iterable[str]:
    """Reasons why the steps cannot prepare a target, as clauses; further ones are those of `step_workload`."""
    if writes(steps) and isinstance(measured, FioWorkload) and measured.options.offset_increment:
        yield "steps that write need one used part for all jobs: remove offset_increment"
    if writes(steps) and not (measured.size_bytes or capacity_bytes):
        yield "steps that write need the capacity of the target, which is unknown: give a size"


def step_stream(step: WriteStep, stream: Stream, capacity_bytes: int, *, number: int = 1) -> Stream:
    """The stream that carries out a step on the target of a measured stream."""
    work = step_workload(step, stream.workload, stream.target.kind, capacity_bytes, number=number)
    return msgspec.structs.replace(stream, workload=work)


def prepared(streams: Iterable[Stream]) -> list[Stream]:
    """One stream for each used part: several streams may measure the same one, and an array action measures none."""
    streams_of_place: dict[tuple[object, ...], Stream] = {}
    for stream in (each for each in streams if not each.workload.needs_array):
        target = stream.target
        key = (target.stable_id, target.path, target_names(stream), *used_range(stream.workload))
        streams_of_place.setdefault(key, stream)
    return list(streams_of_place.values())


def used_range(work: Workload) -> tuple[int, int | None]:
    """Offset and size of the used part of a device or of each file."""
    return (work.options.offset or 0) if isinstance(work, FioWorkload) else 0, work.size_bytes
