"""Previews a plan on chosen targets: trials, estimates, commands and the engines' job texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from webapp.hosts.inventory.store import newest_inventories
from webapp.hosts.models import Target
from webapp.hosts.selectors import drives_of
from webapp.plans.document import PlanDocument
from webapp.plans.estimate import Estimate, estimate
from webapp.plans.expand import Expansion, PlannedStream, PlannedTrial, expand
from webapp.plans.expected_time import Experience, prepared_streams
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.fitness import TargetFacts, room_of, space_warnings
from webapp.plans.grids import FieldProblem, PartGrid, grids_of
from webapp.plans.layouts import KEY, LayoutPlan, layout_plan
from webapp.plans.load import is_share
from webapp.plans.preflight import EnduranceUse, destroyed, endurance_uses, missing_parts, without_controller
from webapp.plans.selectors import facts_for, facts_of, file_systems_of, schedulers_of, stream_at
from webapp.plans.sizes import fitting_bytes
from worker.contract.workload import Stream, TargetKind, WriteStep
from worker.recipes import opening, render
from worker.recipes.base import Recipe
from worker.recipes.layouts.commands import Drive, Names, top_path
from worker.recipes.steps import render_prefill, step_stream, step_words

# A run draws its seed when it starts; a preview uses this seed. The job texts are the same.
PREVIEW_SEED = 1
# Linux, ioctl_ficlone(2) and fs/*: file systems on block devices without `remap_file_range`
WITHOUT_REFLINKS = frozenset({"ext2", "ext3", "ext4", "f2fs", "jfs", "reiserfs", "vfat", "exfat", "ntfs3", "nilfs2"})


@dataclass(frozen=True)
class WriteBound:
    """The most bytes that a plan writes to a target, if only a run time limits the writes. `times_size`: the bytes
    divided by the size of a drive or file, 0 if it is not known or the target is a directory."""

    target: str
    bytes: int
    times_size: int


@dataclass(frozen=True)
class Preview:
    expansion: Expansion
    estimate: Estimate
    destructive: tuple[Target, ...]  # devices and files that would be overwritten and must be armed
    repeats: int
    goal: str  # "": all trials run; else as many as `estimate` has, chosen from `expansion` while the run goes on
    spread_percent: int  # repeats are skipped once every point is known within ± this; 0: never
    decide_percent: int  # points are not repeated once their comparisons are decided within ± this; 0: never
    repeats_min: int
    stop_after: int  # consecutive failures after which a host gets no more trials of the run; 0: no limit
    endurance: tuple[EnduranceUse, ...] = ()
    layouts: tuple[LayoutPlan, ...] = ()  # each once, in build order
    shared: tuple[str, ...] = ()  # sentences about targets that are used at once and share a drive
    factor_warnings: tuple[FieldProblem, ...] = ()  # factors without effect, or that fail on a target
    fitting_bytes: int = 0  # largest size that fits the targets, if a size of the plan does not; else 0
    target_warnings: tuple[str, ...] = ()  # what hosts do not support; reads that may not come from a drive, …

    @property
    def may_skip_repeats(self) -> bool:
        return bool(self.spread_percent or self.decide_percent) and self.repeats > self.repeats_min

    @property
    def write_bounds(self) -> list[WriteBound]:
        most, timed = self.estimate.written_most, self.estimate.open_ended
        return [
            WriteBound(target.shown, most[target.id], _times_size(most[target.id], target))
            for target in self.expansion.targets
            if target.id in timed and most.get(target.id)
        ]

    @property
    def at_most(self) -> bool:
        """Whether the run may end before the expected time, because repeats are skipped or a stop rule ends trials."""
        return self.may_skip_repeats or bool(self.estimate.unknown_stops)


def _times_size(written: int, target: TargetFacts) -> int:
    fixed = target.kind in (TargetKind.BLOCK, TargetKind.FILE)
    return written // target.size_bytes if fixed and target.size_bytes else 0


@dataclass(frozen=True)
class StreamJob:
    """The job of one stream of a trial; `prefill` is None without a prefill."""

    name: str  # of a stream with its own workload
    target: Target
    recipe: Recipe
    prefill: Recipe | None
    steps: tuple[tuple[str, Recipe | None], ...] = ()  # each step in words, with its job if it writes


def preview(
    document: PlanDocument,
    targets: Sequence[Target],
    *,
    seed: int = PREVIEW_SEED,
    experience: Mapping[str, Experience] | None = None,
    grids: Sequence[PartGrid] | None = None,
) -> Preview:
    """Preview a plan; changes nothing. The hosts of `targets` must be fetched with them; `experience` is by host id."""
    facts = facts_for(document, targets)
    grids = grids_of(document) if grids is None else grids
    expansion = expand(document, facts, seed=seed, grids=grids)
    cost = estimate(expansion, experience)
    inventories = newest_inventories({target.host_id for target in targets})
    return Preview(
        expansion=expansion,
        estimate=cost,
        destructive=tuple(destroyed(expansion.trials, targets)),
        layouts=tuple(_layouts(expansion)),
        repeats=document.repeats,
        goal=document.goal,
        spread_percent=document.spread_percent,
        decide_percent=document.decide_percent,
        repeats_min=document.repeats_min,
        stop_after=document.stop_after,
        endurance=endurance_uses(expansion, cost, targets),
        fitting_bytes=fitting_bytes(grids, facts) if expansion.problems else 0,
        shared=tuple(_shared(expansion, targets)),
        factor_warnings=(
            *factor_warnings(document, facts, schedulers_of(targets, inventories), grids),
            *space_warnings(document, expansion.shared_spaces),
        ),
        target_warnings=(
            *(f"{target}: {words}" for target in targets for words in target.warnings),
            *_unknown_rates(expansion),
            *_no_reflinks(expansion, targets, file_systems_of(targets, inventories)),
            *without_controller(expansion.trials, targets, inventories),
            *(
                f"Not supported by the host {text}. A run cannot start."
                for text in missing_parts(expansion.trials, targets)
            ),
        ),
    )


def _unknown_rates(expansion: Expansion) -> Iterator[str]:
    if any(is_share(trial.point) for trial in expansion.trials):
        yield (
            "Jobs at a share of the load are shown without their rate, which follows from the `max` trials of the run. "
            "They then have queue depth 1 in as many jobs as are needed."
        )


def _no_reflinks(expansion: Expansion, targets: Sequence[Target], file_systems: Mapping[str, str]) -> Iterator[str]:
    """A warning, not a problem of the trials: the file system may have changed since the inventory."""
    streams = (stream for trial in expansion.trials for stream in trial.streams)
    copying = {stream.target_id for stream in streams if stream.workload.needs_reflinks}
    for target in targets:
        kind = file_systems.get(str(target.id))
        if str(target.id) in copying and kind in WITHOUT_REFLINKS:
            yield f"{target}: copies by reflink fail: its file system {kind} has no reflinks."


def _shared(expansion: Expansion, targets: Sequence[Target]) -> Iterator[str]:
    by_id = {str(target.id): target for target in targets}
    groups = dict.fromkeys(trial.target_ids for trial in expansion.trials if trial.further_ids)
    pairs = dict.fromkeys(pair for ids in groups for pair in combinations(ids, 2))
    for target, another in ((by_id[first], by_id[second]) for first, second in pairs):
        if {*target.lock_keys} & {*another.lock_keys}:
            yield f"{target} and {another} share a drive, so they share its throughput."


def _layouts(expansion: Expansion) -> Iterator[LayoutPlan]:
    pools = {target.id: target for target in expansion.targets}
    layouts = dict.fromkeys(
        (stream.target_id, stream.layout, trial.before.purge) for trial in expansion.trials for stream in trial.streams
    )
    for target_id, layout, purge in layouts:
        if layout is not None:
            yield layout_plan(layout, pools[target_id].shown, pools[target_id].drives, purge)


def _node(stream: PlannedStream, target: Target) -> str:
    """The device node that the engine would get; for an array or volume, with KEY instead of the run's key."""
    if stream.layout is None:
        return target.opens
    drives = tuple(Drive(drive.opens or drive.path, drive.size_bytes) for drive in drives_of(target))
    return top_path(stream.layout, drives, Names(KEY))


def jobs_of(trial: PlannedTrial, targets: Mapping[str, Target]) -> tuple[StreamJob, ...]:
    """The job of each stream. Symbolic links are replaced by the device nodes of the last registration.
    `targets` are by id.

    Raises worker.recipes.RecipeError for a path that the engine does not accept.
    """
    return tuple(_job(trial, number, stream, targets[stream.target_id]) for number, stream in enumerate(trial.streams))


def _job(trial: PlannedTrial, number: int, planned: PlannedStream, target: Target) -> StreamJob:
    stream = opening(stream_at(target, planned.workload, planned.layout, number, planned.name), _node(planned, target))
    return StreamJob(
        name=planned.name,
        target=target,
        recipe=render(stream),
        prefill=render_prefill(stream),
        steps=tuple(_steps(trial, planned, target, stream)) if planned in prepared_streams(trial) else (),
    )


def _steps(
    trial: PlannedTrial, planned: PlannedStream, target: Target, stream: Stream
) -> Iterator[tuple[str, Recipe | None]]:
    """The steps before the trial in words; the jobs of those that write."""
    capacity = room_of(facts_of(target), planned.layout) if trial.before.steps else 0
    for number, step in enumerate(trial.before.steps, start=1):
        writer = step_stream(step, stream, capacity, number=number) if isinstance(step, WriteStep) else None
        yield step_words(step), render(writer) if writer else None
