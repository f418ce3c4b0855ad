"""States of runs, trials and attempts, and other fixed choices."""

from django.db import models


class RunState(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    PAUSED = "paused", "Paused"  # no new trial is sent; the current trial continues to its end
    CLOSING = "closing", "Restoring settings"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


class Priority(models.IntegerChoices):
    """Where a new run enters the queue: before all waiting runs of a lower priority."""

    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"


OPEN_RUN_STATES = (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED, RunState.CLOSING)


class TrialState(models.TextChoices):
    PLANNED = "planned", "Planned"
    DISPATCHED = "dispatched", "Dispatched"
    ACCEPTED = "accepted", "Accepted"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"


ACTIVE_TRIAL_STATES = (TrialState.DISPATCHED, TrialState.ACCEPTED, TrialState.RUNNING)
ENDED_TRIAL_STATES = (TrialState.DONE, TrialState.FAILED, TrialState.CANCELLED)


class AttemptKind(models.TextChoices):
    TRIAL = "trial", "Trial"
    CLOSE_RUN = "close_run", "Restore settings"
    INVENTORY = "inventory", "Inventory"
    PURGE = "purge", "Purge"
    SETTING = "setting", "Setting"


class AttemptState(models.TextChoices):
    """A lost attempt is revived when its results arrive and no newer attempt exists."""

    DISPATCHED = "dispatched", "Dispatched"
    ACCEPTED = "accepted", "Accepted"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"


ACTIVE_ATTEMPT_STATES = (AttemptState.DISPATCHED, AttemptState.ACCEPTED, AttemptState.RUNNING)
