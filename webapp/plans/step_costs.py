"""Bytes and time of the steps before a trial. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from webapp.plans.expand import PlannedStream, PlannedTrial
from webapp.plans.fitness import TargetFacts, room_of
from webapp.plans.points import steps_of
from worker.contract.layouts import Layout
from worker.contract.steps import PauseStep, Step, WriteStep
from worker.contract.workload import TargetKind, Workload
from worker.recipes import step_workload, used_range

MOST_PREPARATIONS = 2


def step_bytes(
    steps: Iterable[Step], measured: Workload, kind: TargetKind, target: TargetFacts, layout: Layout | None
) -> int:
    """Bytes that the steps write to one target."""
    capacity = room_of(target, layout)
    writing = (step_workload(step, measured, kind, capacity) for step in steps if isinstance(step, WriteStep))
    return sum(work.moved_bytes or 0 for work in writing)


def pauses_s(steps: Iterable[Step]) -> int:
    return sum(step.seconds for step in steps if isinstance(step, PauseStep))


def written_by_steps(trials: Sequence[PlannedTrial], targets: Sequence[TargetFacts]) -> Mapping[str, int]:
    """Bytes by target id."""
    return _written([(trial, trial.before.steps, 1) for trial in trials], targets)


def most_preparations(stop_after: int) -> int:
    """How often trials of a part may do its steps that are done once on their targets, if all of them end before they
    measure. The server sends no more (runs.dispatch.failure_limit)."""
    return min(MOST_PREPARATIONS, stop_after or MOST_PREPARATIONS)


def written_again(trials: Sequence[PlannedTrial], targets: Sequence[TargetFacts], stop_after: int) -> Mapping[str, int]:
    """Most bytes by target id of steps that are done once, if trials end before they measure: the next trial of the
    part does them again."""
    prepared = [(trial, steps) for trial in trials if (steps := steps_of(trial.point).once.steps)]
    count = Counter((trial.part, trial.target_ids) for trial, _ in prepared)
    first = {(trial.part, trial.target_ids): (trial, steps) for trial, steps in reversed(prepared)}
    again = [(*one, min(count[key], most_preparations(stop_after)) - 1) for key, one in first.items()]
    return _written(again, targets)


def _written(
    done: Iterable[tuple[PlannedTrial, Sequence[Step], int]], targets: Sequence[TargetFacts]
) -> Mapping[str, int]:
    """Bytes by target id of steps before a trial, which are done so many times."""
    by_id = {target.id: target for target in targets}
    total: dict[str, int] = {}
    for trial, steps, times in done:
        for stream in prepared_streams(trial) if steps else ():
            target = by_id[stream.target_id]
            written = times * step_bytes(steps, stream.workload, trial.kind, target, trial.layout)
            total[target.id] = total.get(target.id, 0) + written
    return total


def prepared_streams(trial: PlannedTrial) -> Sequence[PlannedStream]:
    """One stream for each used part that the steps prepare, as `recipes.prepared`. In a directory, each stream has its
    own files."""
    found: dict[tuple[object, ...], PlannedStream] = {}
    for stream in (each for each in trial.streams if not each.workload.needs_array):
        name = stream.name if trial.kind is TargetKind.DIRECTORY else ""
        found.setdefault((stream.target_id, name, *used_range(stream.workload)), stream)
    return list(found.values())
