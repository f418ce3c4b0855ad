"""People, their tokens and what they did. Everything else builds on this app."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


class User(AbstractUser):
    """A person. Roles are ordered: an operator may do what a viewer may, an admin what an operator may."""

    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known"),
        ]

    @property
    def is_operator(self) -> bool:
        return self.role in (Role.OPERATOR, Role.ADMIN)

    @property
    def is_administrator(self) -> bool:
        return self.role == Role.ADMIN


class ApiToken(models.Model):
    """A person's key to the API. Only the SHA-256 of the token is kept; a token is 256 random bits."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.user.username}: {self.name}"


class AuditEntry(models.Model):
    """Who did what, when. Written by services, never changed."""

    at = models.DateTimeField(auto_now_add=True)
    user = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    actor = models.CharField(max_length=200)  # readable after the person is gone; "system" for beat
    action = models.CharField(max_length=60)  # e.g. run.start
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at"]
        indexes = [models.Index(fields=["-at"], name="audit_latest_first")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.subject}"
