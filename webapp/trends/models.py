"""Baseline runs: the run of a plan at a target with which later runs are judged."""

from django.conf import settings
from django.db import models

from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.runs.models import Run


class Baseline(models.Model):
    """One for each plan and target. Runs with a higher number are judged by it."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="baselines")
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="baselines")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="baselines")
    # Metric key -> the largest change for the worse that passes, in percent: {"iops": 5.0, "latency_p99": 10.0}
    tolerances = models.JSONField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["plan", "target"]
        constraints = [models.UniqueConstraint(fields=["plan", "target"], name="baseline_once")]

    def __str__(self) -> str:
        return f"{self.plan.slug} on {self.target}"
