"""The file copy engine's recipe. Its program reads the job as JSON on standard input."""

from collections.abc import Iterator

import msgspec

from worker.contract.items import Metric, Unit
from worker.contract.workload import CopyWorkload, Stream, TargetKind
from worker.recipes.base import Recipe, scratch_names

LABEL = "File copy"
METRICS = (
    Metric(name="copy_s", label="Copy time", unit=Unit.SECONDS, lower_is_better=True),
    Metric(name="copy_bytes_per_s", label="Copy rate", unit=Unit.BYTES_PER_S),
    Metric(name="fsync_s", label="fsync time", unit=Unit.SECONDS, lower_is_better=True),  # part of the copy time
    # Copies in the kernel: blocks of the copies that are those of the sources (a reflink), so that no data was moved.
    Metric(name="shared_percent", label="Shared with the source", unit=Unit.PERCENT),
)
DEFAULT_METRIC = "copy_s"
INSTALLATION = ""
COMMAND = ("python3", "-m", "worker.engines.file_copy.program")  # the worker starts it with its Python interpreter


class CopyJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The input of the program."""

    sources: tuple[str, ...]
    copies: tuple[str, ...]  # removed before and after all copies
    method: str
    block_bytes: int
    size_bytes: int  # of each file
    fsync: bool


def feature_words(feature: str) -> str:
    return f"copy method {feature}"


def problems(workload: CopyWorkload, kind: TargetKind) -> tuple[str, ...]:
    return tuple(_problems(workload, kind))


def _problems(work: CopyWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.DIRECTORY:
        yield f"file copy needs a directory target, not a {kind}"
    if work.size_bytes is None:
        yield "file copy needs the size of its files"
    elif work.direct and work.size_bytes % 4096:
        yield f"direct copies need a size that is a multiple of 4 KiB, not {work.size_bytes} bytes"
    if not work.prefill:
        yield "file copy needs its source files: do not disable prefill"


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, CopyWorkload)
    assert work.size_bytes is not None
    sources = scratch_names(stream)
    job = CopyJob(
        sources=sources,
        copies=tuple(f"{name}.copy" for name in sources),
        method=work.method,
        block_bytes=work.block_bytes,
        size_bytes=work.size_bytes,
        fsync=work.fsync,
    )
    text = msgspec.json.format(msgspec.json.encode(job), indent=2).decode()
    return Recipe(text + "\n", COMMAND, sources)
