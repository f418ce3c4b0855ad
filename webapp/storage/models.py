"""The size of each kind of data on each day, from which its growth is known."""

from django.db import models


class DailySize(models.Model):
    """Written and read by `storage.sizes`."""

    day = models.DateField()  # UTC
    kind = models.CharField(max_length=20)  # a key of storage.sizes.KINDS
    bytes = models.BigIntegerField()  # with indexes and TOAST tables

    class Meta:
        constraints = [models.UniqueConstraint(fields=["day", "kind"], name="dailysize_once")]

    def __str__(self) -> str:
        return f"{self.kind} on {self.day}"
