"""The idle engine's recipe. Nothing is started."""

from worker.contract.idle import IdleWorkload
from worker.contract.items import Metric
from worker.contract.workload import Stream, TargetKind
from worker.recipes.base import Recipe

LABEL = "Idle"
METRICS: tuple[Metric, ...] = ()
DEFAULT_METRIC = "iops"  # of which it has none: it is compared by power and temperature
INSTALLATION = ""


def feature_words(feature: str) -> str:
    return feature


def problems(_workload: IdleWorkload, _kind: TargetKind) -> tuple[str, ...]:
    return ()


def render(stream: Stream) -> Recipe:
    work = stream.workload
    assert isinstance(work, IdleWorkload)
    return Recipe(f"No I/O for {work.runtime_s} s.\n", ("none",), ())
