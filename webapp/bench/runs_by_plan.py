"""Which runs of a product are read if it has more results than Bench reads.

The newest results alone may all be of one nightly plan. Workloads of other plans would then look as if they had never
been measured.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar
from uuid import UUID

from webapp.runs.models import Run

MAX_RUNS = 2_000  # of all products together
Key = TypeVar("Key", bound=Hashable)
Trials = dict[tuple[int, UUID], float]  # by plan and run, the newest first


def runs_by_plan(targets: Mapping[Key, Collection[UUID]], wanted: int) -> dict[Key, list[UUID]]:
    """The ids of runs by product, of about `wanted` trials: first the newest run of each plan, then the runs before
    them. The plans that most products ran are first. `targets` are the ids of each product's targets. One query."""
    trials = _newest(targets)
    common = Counter(plan for own in trials.values() for plan in {plan for plan, _ in own})
    return {key: list(_enough(_ordered(own, common), own, wanted)) for key, own in trials.items()}


def _newest(targets: Mapping[Key, Collection[UUID]]) -> dict[Key, Trials]:
    found: dict[Key, Trials] = {key: {} for key in targets}
    measured = Run.targets.through.objects.filter(target__in={id_ for ids in targets.values() for id_ in ids})
    columns = ("target_id", "run_id", "run__version__plan_id", "run__trial_count", "run__target_order")
    for target, run, plan, trials, order in measured.order_by("-run__number").values_list(*columns)[:MAX_RUNS]:
        for key, ids in targets.items():
            if target in ids:
                found[key][plan, run] = found[key].get((plan, run), 0) + trials / max(len(order), 1)
    return found


def _ordered(runs: Iterable[tuple[int, UUID]], common: Mapping[int, int]) -> list[tuple[int, UUID]]:
    """By their place among the runs of their plan; sorting keeps the newest first."""
    seen: Counter[int] = Counter()
    places = {}
    for plan, run in runs:
        places[plan, run] = (seen[plan], -common[plan])
        seen[plan] += 1
    return sorted(places, key=lambda one: places[one])


def _enough(runs: Iterable[tuple[int, UUID]], trials: Trials, wanted: int) -> Iterator[UUID]:
    so_far = 0.0
    for plan, run in runs:
        if so_far >= wanted:
            return
        so_far += trials[plan, run]
        yield run
