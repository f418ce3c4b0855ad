"""Baselines, with which the runs of a plan at a target are judged, and the stored summary of each trend."""

from django.conf import settings
from django.db import models

from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.results.models import Import
from webapp.runs.models import Run


class Baseline(models.Model):
    """One for each plan and target: a run of the plan, by which runs with a higher number are judged, or an import, by
    which all runs are judged. A reference is an import."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="baselines")
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="baselines")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="baselines")
    imported = models.ForeignKey(Import, on_delete=models.PROTECT, null=True, related_name="baselines")
    # As in an acceptance test: the chosen level of each `target`, `factor.<name>` and `label.<name>` of the import, the
    # factors that do not count, and whether values without repeats are judged by the tolerance alone.
    levels = models.JSONField(default=dict)
    ignored = models.JSONField(default=list)
    single_values = models.BooleanField(default=False)
    # Metric key -> the largest change for the worse that passes, in percent: {"iops": 5.0, "latency_p99": 10.0}
    tolerances = models.JSONField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["plan", "target"]
        constraints = [
            models.UniqueConstraint(fields=["plan", "target"], name="baseline_once"),
            models.CheckConstraint(
                condition=models.Q(run=None, imported__isnull=False) | models.Q(run__isnull=False, imported=None),
                name="baseline_run_or_import",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan.slug} on {self.target}"

    @property
    def name(self) -> str:
        """run 17, or the title of the import."""
        if self.run is not None:
            return f"run {self.run.number}"
        return self.imported.title if self.imported is not None else ""


class TrendSummary(models.Model):
    """What lists and the overview show of a trend. `trends.summaries` is the only writer."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="+")
    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="+")
    newest_run = models.PositiveIntegerField()  # number of the newest ended run that it knows
    version = models.PositiveSmallIntegerField()  # of the rules: trends.summaries.VERSION
    marks = models.PositiveIntegerField()  # how often any results had been marked
    content = models.JSONField(default=dict)  # trends.summaries.Summary; empty: no values
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "target"], name="trendsummary_once")]

    def __str__(self) -> str:
        return f"{self.plan.slug} on {self.target}"
