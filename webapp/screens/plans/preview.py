"""What would happen if a plan were started on chosen targets: shown before anyone starts it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webapp.hosts.models import Target
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import Estimate, estimate
from webapp.plans.expand import Expansion, PlannedTrial, TargetFacts, expand
from worker.contract.workload import Leg, TargetKind, TargetRef
from worker.recipes import Recipe, render, render_prefill

# The order of a run is drawn from a seed of its own; the preview shows the one of this seed.
PREVIEW_SEED = 1


@dataclass(frozen=True)
class Preview:
    expansion: Expansion
    estimate: Estimate
    destructive: tuple[Target, ...]  # block devices whose content would be overwritten


@dataclass(frozen=True)
class TrialJob:
    """One trial as fio would get it."""

    trial: PlannedTrial
    target: Target
    recipe: Recipe
    prefill: Recipe | None


def facts_of(target: Target) -> TargetFacts:
    return TargetFacts(
        id=str(target.id),
        kind=TargetKind(target.kind),
        path=target.path,
        stable_id=target.stable_id,
        serial=target.serial,
        size_bytes=target.size_bytes,
        settings_allowed=tuple(target.settings_allowed),
        destroy=target.destroy,
    )


def preview(document: PlanDocument, targets: Sequence[Target]) -> Preview:
    expansion = expand(document, [facts_of(target) for target in targets], seed=PREVIEW_SEED)
    written = {trial.target_id for trial in expansion.trials if trial.workload.pattern.writes}
    return Preview(
        expansion=expansion,
        estimate=estimate(expansion),
        destructive=tuple(t for t in targets if t.kind == TargetKind.BLOCK and str(t.id) in written),
    )


def job_of(trial: PlannedTrial, targets: Mapping[str, Target]) -> TrialJob:
    """The very text the worker would give to fio."""
    target = targets[trial.target_id]
    leg = Leg(number=0, target=_reference(target), workload=trial.workload)
    return TrialJob(trial=trial, target=target, recipe=render(leg), prefill=render_prefill(leg))


def _reference(target: Target) -> TargetRef:
    return TargetRef(
        id=target.slug,
        kind=TargetKind(target.kind),
        path=target.path,
        stable_id=target.stable_id,
        serial=target.arming_serial,
    )
