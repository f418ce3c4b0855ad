"""The array action engine's recipe. The worker carries out the steps itself; no program runs during the measurement."""

from worker.contract.array_action import ArrayAction, ArrayActionWorkload
from worker.contract.items import Metric, Unit
from worker.contract.workload import Stream, TargetKind
from worker.recipes.base import Recipe

LABEL = "Array action"
METRICS = (Metric(name="complete_s", label="Time until complete", unit=Unit.SECONDS, lower_is_better=True),)
DEFAULT_METRIC = "bytes_per_s"
INSTALLATION = ""
_STEPS = {
    ArrayAction.CHECK: (
        "echo 0 > /sys/block/ARRAY/md/sync_min\n"  # not from where an earlier check was stopped
        "echo check > /sys/block/ARRAY/md/sync_action\n"
    ),
    ArrayAction.REBUILD: (
        "mdadm --manage ARRAY --fail LAST_MEMBER\n"
        "mdadm --manage ARRAY --remove LAST_MEMBER\n"
        "(the worker erases the superblock of LAST_MEMBER)\n"
        "mdadm --manage ARRAY --add LAST_MEMBER\n"
    ),
}


def feature_words(feature: str) -> str:
    return f"array action {feature}"


def problems(_workload: ArrayActionWorkload, _kind: TargetKind) -> tuple[str, ...]:
    """`recipes.layouts.array_problem` checks the layout."""
    return ()


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, ArrayActionWorkload)
    return Recipe(f"{_STEPS[work.action]}(for {work.runtime_s} s at most)\n", ("none",), ())
