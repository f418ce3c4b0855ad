"""The history of a run: changes of state, and notes."""

from django.conf import settings
from django.db import models

from webapp.runs.models.attempt import Attempt
from webapp.runs.models.run import Run
from webapp.runs.models.trial import Trial
from webapp.runs.reasons import sentence


class Transition(models.Model):
    """A change of state of a run or trial: the history."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="transitions")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="transitions", null=True)
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="transitions", null=True)
    at = models.DateTimeField(auto_now_add=True)
    before = models.CharField(max_length=10)
    after = models.CharField(max_length=10)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    code = models.CharField(max_length=60, blank=True)  # see runs.reasons
    fields = models.JSONField(default=dict)

    class Meta:
        ordering = ["at", "id"]

    @property
    def reason(self) -> str:
        """Why, as a sentence."""
        return sentence(self.code, self.fields, self.by.username if self.by else "")


class _NotDeleted(models.Manager["Note"]):
    def get_queryset(self) -> models.QuerySet["Note"]:
        return super().get_queryset().filter(deleted_at=None)


class Note(models.Model):
    """A person's note about a run or one of its trials. Plain text."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notes")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="notes", null=True)
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)  # can be restored

    objects = _NotDeleted()
    with_deleted = models.Manager["Note"]()

    class Meta:
        ordering = ["at", "id"]
        # deletions that follow foreign keys must find deleted notes too
        base_manager_name = "with_deleted"
