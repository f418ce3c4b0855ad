"""The sysbench engine's recipe, and the job of all engines that run sysbench: the exact commands as JSON."""

from collections.abc import Iterator

import msgspec

from worker.contract.items import Metric
from worker.contract.sysbench import SysbenchWorkload
from worker.contract.workload import Stream, TargetKind
from worker.recipes.base import Recipe, temporary_folder

INSTALLATION = "Install sysbench: the package sysbench of most distributions."
COMMAND = ("python3", "-m", "worker.engines.sysbench.program")  # the worker starts it with its Python interpreter


class SysbenchJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The input of the program."""

    run: tuple[str, ...]
    folder: str = ""  # in which the commands run; "": the target's directory
    prepare: tuple[tuple[str, ...], ...] = ()


def recipe_of(job: SysbenchJob) -> Recipe:
    text = msgspec.json.format(msgspec.json.encode(job), indent=2).decode()
    return Recipe(text + "\n", COMMAND, ())


def seed_option(seed: int) -> str:
    """sysbench takes 31 bits, and 0 means the time of the clock."""
    return f"--rand-seed={1 + seed % (2**31 - 1)}"


LABEL = "sysbench fileio"
METRICS: tuple[Metric, ...] = ()
DEFAULT_METRIC = "iops"


def feature_words(feature: str) -> str:
    return feature


def problems(workload: SysbenchWorkload, kind: TargetKind) -> tuple[str, ...]:
    return tuple(_problems(workload, kind))


def _problems(work: SysbenchWorkload, kind: TargetKind) -> Iterator[str]:
    if kind is not TargetKind.DIRECTORY:
        yield f"sysbench needs a directory target, or a layout with a file system, not a {kind}"
    if not work.size_bytes or work.size_bytes % work.block_bytes:
        yield "the size of each file must be a multiple of the block size"
    if work.fsync and not work.measures_writes:
        yield f"fsync belongs to writes, but {work.test} only reads: switch it off"


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, SysbenchWorkload)
    files = (
        "sysbench", "fileio", f"--file-num={work.files}", f"--file-total-size={work.space_bytes}",
        f"--file-block-size={work.block_bytes}", *(("--file-extra-flags=direct",) if work.direct else ()),
    )  # fmt: skip
    run = (
        *files, f"--file-test-mode={work.test}", "--file-fsync-freq=0", "--file-fsync-end=off",
        f"--file-fsync-all={'on' if work.fsync else 'off'}", f"--threads={work.threads}", seed_option(work.seed),
        "--rand-type=uniform", "--events=0", f"--time={work.runtime_s}", "--report-interval=1", "--histogram=on", "run",
    )  # fmt: skip
    return recipe_of(SysbenchJob(run=run, folder=temporary_folder(stream), prepare=((*files, "prepare"),)))
