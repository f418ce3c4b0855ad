"""Bytes and time of the steps before a trial. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from webapp.plans.expand import PlannedStream, PlannedTrial
from webapp.plans.fitness import TargetFacts, room_of
from worker.contract.layouts import Layout
from worker.contract.steps import PauseStep, Step, WriteStep
from worker.contract.workload import TargetKind, Workload
from worker.recipes import step_workload, used_range


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
    by_id = {target.id: target for target in targets}
    total: dict[str, int] = {}
    for trial in trials:
        for stream in prepared_streams(trial):
            target = by_id[stream.target_id]
            written = step_bytes(trial.before.steps, stream.workload, trial.kind, target, trial.layout)
            total[target.id] = total.get(target.id, 0) + written
    return total


def prepared_streams(trial: PlannedTrial) -> Sequence[PlannedStream]:
    """One stream for each used part that the steps prepare, as `recipes.prepared`. In a directory, each stream has its
    own files."""
    if not trial.before.steps:
        return ()
    found: dict[tuple[object, ...], PlannedStream] = {}
    for stream in trial.streams:
        name = stream.name if trial.kind is TargetKind.DIRECTORY else ""
        found.setdefault((stream.target_id, name, *used_range(stream.workload)), stream)
    return list(found.values())
