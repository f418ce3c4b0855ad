"""What would happen if a plan were started on chosen targets, down to the very text fio would get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import Estimate, Experience, estimate
from webapp.plans.expand import Expansion, PlannedTrial, expand
from webapp.plans.selectors import facts_of, reference_of
from worker.contract.workload import Leg, TargetKind
from worker.recipes import Recipe, opening, render, render_prefill

# A run draws the seed of its order when it starts; a preview shows the order of this one. Job texts are the same.
PREVIEW_SEED = 1


@dataclass(frozen=True)
class Preview:
    expansion: Expansion
    estimate: Estimate
    destructive: tuple[Target, ...]  # devices and files whose content would be overwritten: to be armed


@dataclass(frozen=True)
class TrialJob:
    """One trial as fio would get it; `prefill` is None where nothing is to be written first."""

    trial: PlannedTrial
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
    written = {trial.target_id for trial in expansion.trials if trial.workload.pattern.writes or trial.purge}
    return Preview(
        expansion=expansion,
        estimate=estimate(expansion, experience),
        destructive=tuple(t for t in targets if t.kind != TargetKind.DIRECTORY and str(t.id) in written),
    )


def job_of(trial: PlannedTrial, target: Target) -> TrialJob:
    """The text the worker would give to fio: for a device behind a link, with the node that its host last reported.

    Raises worker.recipes.RecipeError for a path that fio cannot be given.
    """
    leg = opening(Leg(number=0, target=reference_of(target), workload=trial.workload), target.opens)
    return TrialJob(trial=trial, target=target, recipe=render(leg), prefill=render_prefill(leg))
