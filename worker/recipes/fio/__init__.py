"""The fio engine's recipe: problems of a workload, and the exact job text."""

from worker.contract.items import Metric
from worker.contract.workload import IoEngine
from worker.recipes.fio.job import render, workload_of
from worker.recipes.fio.problems import problems

LABEL = "fio"
METRICS: tuple[Metric, ...] = ()
DEFAULT_METRIC = "iops"
INSTALLATION = "Install Debian's package fio."

__all__ = [
    "DEFAULT_METRIC",
    "INSTALLATION",
    "LABEL",
    "METRICS",
    "feature_words",
    "problems",
    "render",
    "workload_of",
]


def feature_words(feature: str) -> str:
    return f"I/O engine {feature}" if feature in tuple(IoEngine) else f"io_uring option {feature}"
