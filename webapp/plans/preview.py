"""What would happen if a plan were started on chosen targets, down to the very text fio would get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.destruction import destroyed
from webapp.plans.document import PlanDocument
from webapp.plans.endurance import EnduranceUse, endurance_uses
from webapp.plans.estimate import Estimate, Experience, estimate
from webapp.plans.expand import Expansion, PlannedTrial, expand
from webapp.plans.layouts import KEY, LayoutPlan, layout_plan
from webapp.plans.selectors import facts_of, stream_at
from worker.recipes import Recipe, opening, render, render_prefill
from worker.recipes.layouts import Drive, Names, top_path

# A run draws the seed of its order when it starts; a preview shows the order of this one. Job texts are the same.
PREVIEW_SEED = 1


@dataclass(frozen=True)
class Preview:
    expansion: Expansion
    estimate: Estimate
    destructive: tuple[Target, ...]  # devices and files whose content would be overwritten: to be armed
    stop_after: int  # trials that may fail in a row on a host before it gets no more of the run; 0: all of them
    endurance: tuple[EnduranceUse, ...] = ()
    layouts: tuple[LayoutPlan, ...] = ()  # each once, in the order in which they are first built
    shared: tuple[str, ...] = ()  # in words: targets that are used at once and lie on the same drive


@dataclass(frozen=True)
class StreamJob:
    """One stream of a trial as fio would get it; `prefill` is None where nothing is to be written first."""

    target: Target
    recipe: Recipe
    prefill: Recipe | None


def preview(
    document: PlanDocument,
    targets: Sequence[Target],
    *,
    seed: int = PREVIEW_SEED,
    experience: Mapping[str, Experience] | None = None,
) -> Preview:
    """Touches nothing. The hosts of `targets` must have been fetched with them; `experience` is by host id."""
    expansion = expand(document, [facts_of(target) for target in targets], seed=seed)
    return Preview(
        expansion=expansion,
        estimate=estimate(expansion, experience),
        destructive=tuple(destroyed(expansion.trials, targets)),
        layouts=tuple(_layouts(expansion)),
        stop_after=document.stop_after,
        endurance=endurance_uses(expansion, targets),
        shared=tuple(_shared(expansion, targets)),
    )


def _shared(expansion: Expansion, targets: Sequence[Target]) -> Iterator[str]:
    by_id = {str(target.id): target for target in targets}
    groups = dict.fromkeys(trial.target_ids for trial in expansion.trials if trial.further_ids)
    pairs = dict.fromkeys(pair for ids in groups for pair in combinations(ids, 2))
    for one, other in ((by_id[first], by_id[second]) for first, second in pairs):
        if {*one.lock_keys} & {*other.lock_keys}:
            yield f"{one} and {other} share a drive: at once they get what it has for both."


def _layouts(expansion: Expansion) -> Iterator[LayoutPlan]:
    pools = {target.id: target for target in expansion.targets}
    found = dict.fromkeys((trial.target_id, trial.layout, trial.purge) for trial in expansion.trials)
    for target_id, layout, purge in found:
        if layout is not None:
            yield layout_plan(layout, pools[target_id].shown, pools[target_id].drives, purge)


def _node(trial: PlannedTrial, target: Target) -> str:
    """The node that fio would get; of an array or volume, with KEY where the worker puts one of its own."""
    if trial.layout is None:
        return target.opens
    drives = tuple(Drive(drive.opens or drive.path, drive.size_bytes) for drive in drives_of(target))
    return top_path(trial.layout, drives, Names(KEY))


def jobs_of(trial: PlannedTrial, targets: Mapping[str, Target]) -> tuple[StreamJob, ...]:
    """The text the worker would give to fio for each stream: for a device behind a link, with the node its host last
    reported. `targets` by id.

    Raises worker.recipes.RecipeError for a path that fio cannot be given.
    """
    return tuple(_job(trial, number, targets[target_id]) for number, target_id in enumerate(trial.target_ids))


def _job(trial: PlannedTrial, number: int, target: Target) -> StreamJob:
    stream = opening(stream_at(target, trial.workload, trial.layout, number), _node(trial, target))
    return StreamJob(target=target, recipe=render(stream), prefill=render_prefill(stream))
