"""Storage servers, their targets, policies and inventories."""

import uuid

from django.conf import settings
from django.db import models

from worker.contract.base import CONTRACT_VERSION


class ServerKey(models.Model):
    """An Ed25519 key that signs orders. A host's orders use its newest trusted key that is not retired."""

    key_id = models.CharField(max_length=16, primary_key=True)
    public_key = models.BinaryField(max_length=32)
    private_key = models.BinaryField(max_length=200)  # encrypted with the secret key of the settings
    created_at = models.DateTimeField(auto_now_add=True)
    retired_at = models.DateTimeField(null=True)
    endorsement = models.JSONField(null=True)  # contract.signing.Endorsement by the key before; null for the first key


class HostState(models.TextChoices):
    ACTIVE = "active", "Active"
    MAINTENANCE = "maintenance", "Maintenance"  # gets no new orders
    REVOKED = "revoked", "Revoked"  # its token is invalid


def newest_contract() -> int:
    return CONTRACT_VERSION


class Host(models.Model):
    """A storage server with an enrolled worker."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.SlugField(unique=True, max_length=63)
    state = models.CharField(max_length=12, choices=HostState.choices, default=HostState.ACTIVE)
    token_hash = models.CharField(max_length=64, unique=True)  # SHA-256 of 256 random bits
    hostname = models.CharField(max_length=255)
    enrolled_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True)
    away_since = models.DateTimeField(null=True)  # last_seen_at, once people were told that the host is away
    boot_id = models.CharField(max_length=64, blank=True)
    worker_version = models.CharField(max_length=40, blank=True)
    contract = models.PositiveSmallIntegerField(default=newest_contract)  # the version agreed on
    capabilities = models.JSONField(default=dict)  # contract.inventory.Capabilities as last reported
    health = models.JSONField(default=list)  # contract.inventory.DriveHealth of each drive, as last reported
    settings_allowed = models.JSONField(default=list)  # names of kernel-wide settings that its policy allows to change
    spool_bytes = models.BigIntegerField(default=0)  # unconfirmed bytes on its disk at the last report
    broker_hash = models.CharField(max_length=64, blank=True)  # SHA-256 of its password in the broker; "": no user
    next_broker_hash = models.CharField(max_length=64, blank=True)  # SHA-256 of the password sent with the next token
    trusted_keys = models.JSONField(default=list)  # ids of the server keys that it trusts, as last reported
    state_disk_full = models.BooleanField(default=False)  # the disk of its worker's state directory is full
    # Which worker process may work for it, those before it, and since when: see `sessions`.
    session = models.CharField(max_length=64, blank=True)
    former_sessions = models.CharField(max_length=4000, blank=True)
    session_since = models.DateTimeField(null=True)
    # When a second worker with the host's identity was last refused, and on which machine it runs.
    second_worker_at = models.DateTimeField(null=True)
    second_worker_hostname = models.CharField(max_length=255, blank=True)
    policy_problem = models.CharField(max_length=2000, blank=True)  # why its policy file is invalid, in words
    clock_ahead_s = models.FloatField(
        null=True
    )  # its clock minus the server's at the last registration, including the transfer time
    maintenance_note = models.CharField(max_length=500, blank=True)
    archived_at = models.DateTimeField(null=True)  # hidden; its results stay
    # When a new token was requested. The old one stays valid until the first use of the new one.
    rotation_requested_at = models.DateTimeField(null=True)
    next_token_hash = models.CharField(max_length=64, null=True, unique=True)  # sent to the host, not used yet

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=HostState.values), name="host_state_known"),
            models.CheckConstraint(
                condition=models.Q(archived_at=None) | models.Q(state=HostState.REVOKED),
                name="host_archived_is_revoked",
            ),
            models.CheckConstraint(
                condition=models.Q(maintenance_note="") | models.Q(state=HostState.MAINTENANCE),
                name="host_note_in_maintenance_only",
            ),
            models.CheckConstraint(
                condition=models.Q(next_token_hash=None) | models.Q(rotation_requested_at__isnull=False),
                name="host_next_token_was_asked_for",
            ),
            models.CheckConstraint(
                condition=models.Q(rotation_requested_at=None) | ~models.Q(state=HostState.REVOKED),
                name="host_revoked_gets_no_token",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class FormerName(models.Model):
    """A former name of a host: addresses with it still lead to the host, and no other host may take it."""

    slug = models.SlugField(primary_key=True, max_length=63)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="former_names")
    given_up_at = models.DateTimeField(auto_now_add=True)


class EnrolmentToken(models.Model):
    """The one-time token in the enrolment command; invalid after use or after one hour."""

    token_hash = models.CharField(max_length=64, primary_key=True)
    # Before use: the known host that it enrols again. After use: the enrolled host.
    host = models.ForeignKey(Host, on_delete=models.CASCADE, null=True, related_name="enrolments")
    host_slug = models.SlugField(max_length=63, blank=True)  # "": the hostname decides
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    @property
    def reference(self) -> str:
        """Its name in addresses: 64 bits of its hash, which give no access."""
        return self.token_hash[:16]


class Target(models.Model):
    """A target in a host's policy file. Only the host's policy defines targets, never the server.

    Another drive under the same id becomes another target, so results stay with the drive they were measured on.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="targets")
    slug = models.CharField(max_length=63)  # the id in the policy file
    kind = models.CharField(max_length=10)  # contract.workload.TargetKind
    path = models.CharField(max_length=1024)
    stable_id = models.CharField(max_length=200)
    serial = models.CharField(max_length=100, blank=True)
    # Keys of every drive under it. Only one trial at a time uses targets with a common key: see `lock_groups`.
    lock_keys = models.JSONField(default=list)
    model = models.CharField(max_length=200, blank=True)
    firmware = models.CharField(max_length=200, blank=True)
    device = models.CharField(max_length=200, blank=True)  # kernel name under it
    drives = models.JSONField(default=list)  # pool: slugs of its drives, targets of the same host, in order
    # Block: the device node of `path` at the last registration, which the engine opens; may change at a reboot.
    # Slot: its name in the controller's tool.
    opens = models.CharField(max_length=1024, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    file_system = models.CharField(max_length=200, blank=True)  # of a directory: common to those on one file system
    test_file_bytes = models.BigIntegerField(default=0)  # of a directory: the part of its size that test files take
    logical_block_bytes = models.PositiveIntegerField(default=0)  # of the device; 0: unknown
    destroy = models.BooleanField(default=False)  # block: it may be overwritten if it is empty
    destroy_signatures = models.JSONField(default=list)  # types of signatures (blkid) that may be overwritten too
    max_write_bytes = models.BigIntegerField(
        null=True
    )  # bytes that the policy allows one run to write to each drive under it
    purges = models.JSONField(default=list)  # contract.purge.PurgeOffer of each method for drives of its kind
    settings_allowed = models.JSONField(default=list)  # names, "*" for all
    present = models.BooleanField(default=False)
    problem = models.CharField(max_length=2000, blank=True)
    warnings = models.JSONField(default=list)  # sentences: reasons why reads may not come from a drive
    in_policy = models.BooleanField(default=True)  # false once the policy file no longer lists it

    class Meta:
        ordering = ["host__slug", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["host", "slug", "stable_id", "serial"], name="target_identity_once"),
            models.UniqueConstraint(
                fields=["host", "slug"], name="target_slug_once_in_policy", condition=models.Q(in_policy=True)
            ),
            models.CheckConstraint(
                condition=models.Q(kind__in=["block", "directory", "file", "pool", "slot"]), name="target_kind_known"
            ),
            models.CheckConstraint(condition=models.Q(size_bytes__gte=0), name="target_size_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.host.slug}/{self.slug}"

    @property
    def place(self) -> str:
        """Its location in words: its path, or a pool's drives."""
        return ", ".join(self.drives) or self.path

    @property
    def arming_serial(self) -> str:
        """What a person types before a destructive run: the drive's serial number, or else its stable id."""
        return self.serial or self.stable_id


class HostGroup(models.Model):
    """Hosts on which the same plan is run, each with its targets and a label that comparisons show."""

    slug = models.SlugField(unique=True, max_length=63)
    title = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.title


class GroupMember(models.Model):
    """A host of a group, with the targets that are used there."""

    group = models.ForeignKey(HostGroup, on_delete=models.CASCADE, related_name="members")
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="memberships")
    targets = models.ManyToManyField(Target, related_name="memberships")
    label = models.CharField(max_length=63)
    place = models.PositiveSmallIntegerField()  # in the order of the group, from 0

    class Meta:
        ordering = ["group", "place"]
        constraints = [
            models.UniqueConstraint(fields=["group", "host"], name="group_has_host_once"),
            models.UniqueConstraint(fields=["group", "label"], name="group_has_label_once"),
            models.UniqueConstraint(
                fields=["group", "place"], name="group_place_once", deferrable=models.Deferrable.DEFERRED
            ),
        ]

    def __str__(self) -> str:
        return self.label


class MaintenanceWindow(models.Model):
    """A time without trials on a host, weekly or once. A trial that runs when the window opens continues to its end."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="maintenance_windows")
    days = models.JSONField(default=list)  # 0 is Monday; empty: open once, from `starts_at` to `ends_at`
    opens = models.TimeField(null=True)
    closes = models.TimeField(null=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(opens__isnull=False, closes__isnull=False, starts_at=None, ends_at=None)
                & ~models.Q(days=[])
                | models.Q(opens=None, closes=None, days=[], ends_at__gt=models.F("starts_at")),
                name="maintenance_window_weekly_or_once",
            ),
        ]


class EnduranceRating(models.Model):
    """The rated write endurance of the drive under a target, as entered by a person."""

    target = models.OneToOneField(Target, on_delete=models.CASCADE, primary_key=True, related_name="endurance_rating")
    rated_bytes = models.BigIntegerField()
    basis = models.CharField(max_length=200)  # its basis in words, e.g. DWPD × capacity × years
    source = models.CharField(max_length=500)  # its source, e.g. a datasheet
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(rated_bytes__gt=0), name="endurance_above_nothing")]


class InventoryContent(models.Model):
    """The facts of an inventory, content-addressed: equal inventories are stored once."""

    digest = models.CharField(max_length=64, primary_key=True)  # SHA-256 of the canonical JSON
    facts = models.JSONField()  # contract.inventory.Inventory


class HostInventory(models.Model):
    """An inventory of a host. A new row is added when its content changes."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="inventories")
    content = models.ForeignKey(InventoryContent, on_delete=models.PROTECT, related_name="+")
    taken_at = models.DateTimeField()
    # What differs from the inventory before, in sentences; null for the first, and after one of an unknown format.
    # Written once, so that no page has to read and compare many inventories.
    changes = models.JSONField(null=True)

    class Meta:
        ordering = ["-taken_at"]
        indexes = [models.Index(fields=["host", "-taken_at"], name="hostinventory_latest_first")]


class WorkerLogLine(models.Model):
    """A line of a worker's own log. The last LINES_KEPT of each host are kept (see `worker_log`)."""

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="log_lines")
    session = models.CharField(max_length=64)  # one process of the worker
    number = models.BigIntegerField()  # within the session: a line that arrives twice is stored once
    at = models.DateTimeField()  # by the host's clock
    level = models.CharField(max_length=8)  # contract.reports.LogLevel
    attempt = models.UUIDField(null=True)  # the order it is about
    text = models.CharField(max_length=2000)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["host", "session", "number"], name="worker_log_line_once"),
            models.CheckConstraint(
                condition=models.Q(level__in=["info", "warning", "error", "critical"]), name="worker_log_level_known"
            ),
        ]
        indexes = [models.Index(fields=["host", "-id"], name="worker_log_latest_first")]
