"""Runs of one plan at one target, one each night."""

from dataclasses import dataclass
from datetime import timedelta
from random import Random

from webapp.hosts.models import Target
from webapp.plans.models import PlanVersion
from webapp.results.metrics import IOPS, Metric
from webapp.runs.models import Run
from webapp.tests.factories.results import FACTS, START, Lab
from webapp.trends.run_values import History, ended_runs, read_history
from webapp.trends.trend import Trend, trend

REPEATS = 3


@dataclass
class Nights:
    """`run` measures the given IOPS, each three times with a spread of about 1 %."""

    version: PlanVersion
    target: Target
    count: int = 0

    def lab(self) -> Lab:
        self.count += 1
        made = Lab(self.target, version=self.version, number=self.count)
        at = START + timedelta(days=self.count)
        Run.objects.filter(pk=made.run.pk).update(started_at=at, ended_at=at + timedelta(hours=1))
        return made

    def run(self, *levels: float, facts: dict[str, str] | None = None, spread: float = 0.01) -> Run:
        """One point for each level: queue depths 1, 2, 4, …"""
        made, random = self.lab(), Random(self.count)
        for place, level in enumerate(levels):
            values = [level * (1 + random.gauss(0, spread)) for _ in range(REPEATS)]
            made.measure(*values, iodepth=2**place, facts=facts or FACTS)
        return made.run

    @property
    def history(self) -> History:
        return read_history(ended_runs(self.version.plan, self.target), self.target, IOPS)

    def trend(self, metric: Metric = IOPS, direction: str = "", without: str = "") -> Trend:
        """Of all points, or of those whose key is not `without`."""
        history = self.history
        return trend(history, metric, set(history.points) - {without}, direction)
