"""Storage servers, what they allow and what is in them."""

import uuid

from django.conf import settings
from django.db import models


class ServerKey(models.Model):
    """An Ed25519 key that signs orders. The newest one that is not retired signs; workers trust all that are not."""

    key_id = models.CharField(max_length=16, primary_key=True)
    public_key = models.BinaryField(max_length=32)
    private_key = models.BinaryField(max_length=200)  # encrypted with the secret key of the settings
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)


class HostState(models.TextChoices):
    ACTIVE = "active", "Active"
    MAINTENANCE = "maintenance", "Maintenance"  # gets no new orders
    REVOKED = "revoked", "Revoked"  # its token no longer opens anything


class Host(models.Model):
    """A storage server with an enrolled worker."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(unique=True, max_length=63)
    state = models.CharField(max_length=12, choices=HostState.choices, default=HostState.ACTIVE)
    token_hash = models.CharField(max_length=64, unique=True)  # SHA-256 of 256 random bits
    hostname = models.CharField(max_length=255)
    enrolled_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)
    boot_id = models.CharField(max_length=64, blank=True)
    worker_version = models.CharField(max_length=40, blank=True)
    contract = models.PositiveSmallIntegerField(default=1)  # the version agreed on
    capabilities = models.JSONField(default=dict)  # contract.inventory.Capabilities as last reported

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=HostState.values), name="host_state_known"),
        ]

    def __str__(self) -> str:
        return self.slug


class EnrolmentToken(models.Model):
    """The one-time token in the line that is pasted on a new host; dead after use or after its hour."""

    token_hash = models.CharField(max_length=64, primary_key=True)
    host_slug = models.SlugField(max_length=63, blank=True)  # "" lets the host's own name decide
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Target(models.Model):
    """A line of a host's policy file: what a workload may use there. The host says so, never the server.

    Another drive under the same id is another target, so that results stay with the drive they were measured on.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="targets")
    slug = models.CharField(max_length=63)  # the id in the policy file
    kind = models.CharField(max_length=10)  # contract.workload.TargetKind
    path = models.CharField(max_length=1024)
    stable_id = models.CharField(max_length=200)
    serial = models.CharField(max_length=100, blank=True)
    # Targets that share a group are never used at once: one LUN seen by two hosts, one disk under two directories.
    lock_group = models.CharField(max_length=300)
    model = models.CharField(max_length=200, blank=True)
    firmware = models.CharField(max_length=200, blank=True)
    device = models.CharField(max_length=200, blank=True)  # kernel name under it
    size_bytes = models.BigIntegerField(default=0)
    destroy = models.BooleanField(default=False)
    settings_allowed = models.JSONField(default=list)  # names, "*" for all
    present = models.BooleanField(default=False)
    problem = models.CharField(max_length=2000, blank=True)
    in_policy = models.BooleanField(default=True)  # false once the policy file no longer lists it

    class Meta:
        ordering = ["host__slug", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["host", "slug", "stable_id", "serial"], name="target_identity_once"),
            models.UniqueConstraint(
                fields=["host", "slug"], name="target_slug_once_in_policy", condition=models.Q(in_policy=True)
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["block", "directory", "file"]), name="target_kind_known"
            ),
            models.CheckConstraint(condition=models.Q(size_bytes__gte=0), name="target_size_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.host.slug}/{self.slug}"

    @property
    def arming_serial(self) -> str:
        """What a person types before a destructive run: the drive's serial, or its stable id where it has none."""
        return self.serial or self.stable_id


class Snapshot(models.Model):
    """An inventory, content-addressed: the same facts are stored once."""

    digest = models.CharField(max_length=64, primary_key=True)  # SHA-256 of the canonical JSON
    facts = models.JSONField()  # contract.inventory.Inventory


class HostSnapshot(models.Model):
    """When a host looked like a snapshot: one row for each change."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="snapshots")
    snapshot = models.ForeignKey(Snapshot, on_delete=models.PROTECT, related_name="+")
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["-taken_at"]
        indexes = [models.Index(fields=["host", "-taken_at"], name="hostsnapshot_latest_first")]
