"""Convert an order to the exact job of its engine. Pure functions that import only the contract.

The server's preview and the worker call the same `render`, so the preview shows exactly the job that runs.
"""

from collections.abc import Mapping

import msgspec

from worker.contract.inventory import EngineOffer
from worker.contract.workload import (
    ArrayActionWorkload,
    CopyWorkload,
    FioWorkload,
    IdleWorkload,
    MemoryWorkload,
    OltpWorkload,
    PgbenchWorkload,
    Stream,
    SysbenchWorkload,
    TargetKind,
    Workload,
)
from worker.recipes import array_action, file_copy, fio, idle, memory_bandwidth, pgbench, sysbench, sysbench_oltp
from worker.recipes.base import EngineRecipe, Recipe, RecipeError
from worker.recipes.fio import path_problem as path_problem

# The registry of engines.
ENGINES: Mapping[type[Workload], EngineRecipe] = {
    FioWorkload: fio,
    CopyWorkload: file_copy,
    PgbenchWorkload: pgbench,
    SysbenchWorkload: sysbench,
    OltpWorkload: sysbench_oltp,
    IdleWorkload: idle,
    MemoryWorkload: memory_bandwidth,
    ArrayActionWorkload: array_action,
}
DEFAULT_ENGINE = FioWorkload.engine_name()  # of plans and trial files that name none


def workload_problems(workload: Workload, kind: TargetKind) -> tuple[str, ...]:
    """All reasons why the workload cannot run on a target of this kind; () if it can."""
    return ENGINES[type(workload)].problems(workload, kind)


def missing_features(workload: Workload, offers: Mapping[str, EngineOffer]) -> list[str]:
    """Descriptions of all features that the workload needs and the host does not offer."""
    recipe, offer = ENGINES[type(workload)], offers.get(workload.engine)
    if offer is None:
        return [f"engine {recipe.LABEL}"]
    return [recipe.feature_words(feature) for feature in workload.features if feature not in offer.features]


def installation_words(workload: Workload) -> str:
    """What to install on a host without the workload's engine, as a sentence."""
    return ENGINES[type(workload)].INSTALLATION


def render(stream: Stream) -> Recipe:
    """The measured job. Raises RecipeError with everything that is wrong with the stream."""
    if problems := workload_problems(stream.workload, stream.target.kind):
        raise RecipeError(f"This workload cannot run: {'; '.join(problems)}.")
    return ENGINES[type(stream.workload)].render(stream)


def opening(stream: Stream, node: str) -> Stream:
    """Replace the path of a block target by its device node, because engines get the node and not a link to it.

    Directory and file targets are relative to their directory and do not change.
    """
    if stream.target.kind is not TargetKind.BLOCK or not node:
        return stream
    return msgspec.structs.replace(stream, target=msgspec.structs.replace(stream.target, path=node))
