"""Comparisons that people keep: a title, a note, and the address of what was compared."""

from django.conf import settings
from django.db import models

QUERY_VERSION = 1  # of how an address is read; a later reader can tell older ones by it


class SavedComparison(models.Model):
    """What is stored is the question, not the answer: it is asked anew whenever it is opened."""

    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)
    query = models.TextField()  # of the address, urlencoded: what is compared and how it is shown
    query_version = models.PositiveSmallIntegerField(default=QUERY_VERSION)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)  # can be brought back

    class Meta:
        ordering = ["-changed_at", "-id"]
        constraints = [models.CheckConstraint(condition=~models.Q(title=""), name="savedcomparison_has_title")]

    def __str__(self) -> str:
        return self.title
