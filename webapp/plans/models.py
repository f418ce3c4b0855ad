"""Plans and their versions. The content of a version is a `document.PlanDocument`; versions never change."""

import uuid

from django.conf import settings
from django.db import models


class Plan(models.Model):
    """A named plan. Its content is in its versions."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(unique=True, max_length=80)
    title = models.CharField(max_length=200)
    # Name of the source file of a built-in plan. People can copy a built-in plan but not change it.
    builtin = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True)  # deleted plans can be restored; their runs stay

    class Meta:
        ordering = ["title"]
        constraints = [
            models.UniqueConstraint(fields=["builtin"], name="plan_builtin_once", condition=~models.Q(builtin="")),
        ]

    def __str__(self) -> str:
        return self.title


class PlanVersion(models.Model):
    """The content of a plan at one time. Runs refer to it permanently."""

    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()  # document.PlanDocument
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["plan", "number"], name="planversion_number_once"),
            models.CheckConstraint(condition=models.Q(number__gte=1), name="planversion_number_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.plan.slug} v{self.number}"
