"""CPU time of previews of long plans, without the database: `python -m dev.bench.previews`.

Each plan has 10,000 trials on one target, the most that a run may have. The time contains everything from the form to
the estimate; queries and the page's text come in addition and do not grow with the plan.
"""

import gc
import time

from webapp.core.garbage_collector import YOUNG_OBJECTS
from webapp.plans.document import Part, PlanDocument
from webapp.plans.estimate import estimate
from webapp.plans.expand import expand
from webapp.plans.factor_warnings import factor_warnings
from webapp.plans.fitness import TargetFacts
from webapp.plans.grids import MAX_TRIALS
from webapp.plans.varying import varying
from webapp.screens.plans.draft import checked, draft_of
from worker.contract.workload import TargetKind

TARGET = TargetFacts(
    id="a", kind=TargetKind.DIRECTORY, path="/srv/a", stable_id="dir:/srv/a", serial="", size_bytes=2**40,
    settings_allowed=("*",), destroy=False,
)  # fmt: skip
TEN = {"block_size": "4k..40k +4k", "iodepth": "1..10 +1", "numjobs": "1..10 +1"}
MIXED = {"pattern": "randrw", "read_percent": "10..100 +10"}
COMMON = {"size": "64M", "runtime": "3s", "read_ahead_kb": "0"}


def plan(repeats: int, factors: dict[str, str], *rules: str) -> PlanDocument:
    return PlanDocument(
        title="Long", common=COMMON, repeats=repeats, parts=(Part(name="Main", factors=factors, rules=rules),)
    )


PLANS = {
    "1,000 points, 10 repeats": plan(10, {"pattern": "randread"} | TEN),
    "10,000 points": plan(1, MIXED | TEN),
    "1,000 points by rules from 100,000 combinations, 10 repeats": plan(
        10, MIXED | TEN | {"ramp": "0..9 +1"}, "only when ramp=0; numjobs=1"
    ),
}


def preview(document: PlanDocument) -> float:
    """CPU seconds."""
    start = time.process_time()
    draft = checked(draft_of(document))
    expansion = expand(document, [TARGET], seed=1, grids=draft.grids)
    estimate(expansion)
    factor_warnings(document, [TARGET], grids=draft.grids)
    varying([trial.point for trial, _ in expansion.distinct])
    assert len(expansion.trials) == MAX_TRIALS, expansion.problems
    return time.process_time() - start


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    for name, document in PLANS.items():
        print(f"{name}: {min(preview(document) for _ in range(5)) * 1000:.0f} ms")
