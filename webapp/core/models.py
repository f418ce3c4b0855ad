"""People, their API tokens and the audit log. All other apps build on this one."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.crypto import salted_hmac

SYSTEM = "system"  # shown as the actor of the server's own actions
PERSON = "person"  # key of a reference to a person in the details of an audit entry: {"person": 7}
FORMER = "former-person-"  # prefix of the names that replace those of anonymised people


class Role(models.TextChoices):
    """In ascending order: each role may do everything that the roles before it may do."""

    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    ADMIN = "admin", "Admin"


class User(AbstractUser):
    """A person. Roles are ordered: an operator may do what a viewer may, an admin what an operator may."""

    role = models.CharField(max_length=10, choices=Role.choices, default=Role.VIEWER)
    left_at = models.DateTimeField(null=True)  # removed from the list of people; the account is then disabled too
    # Part of what every session must know: raising it ends the sessions for good.
    session_version = models.PositiveIntegerField(default=0)
    # Hash of who this is for the identity provider or the proxy that logs the person in; null: a local account.
    # See core.external_login.
    external_id = models.CharField(max_length=64, null=True, unique=True)
    # An admin allows the next external log-in with exactly this name to be connected to the account.
    may_connect = models.BooleanField(default=False)
    # Not stored: the token that made the request, null for a session and for the server's own work.
    api_token: "ApiToken | None" = None

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known"),
            models.CheckConstraint(
                condition=models.Q(left_at=None) | models.Q(is_active=False), name="user_left_is_switched_off"
            ),
        ]

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Django compares it in every request with the one that the session was made with."""
        known = f"{self.session_version} {self.password}"
        return salted_hmac("webapp.core.models.User", known, secret=secret, algorithm="sha256").hexdigest()

    def has_role(self, needed: Role) -> bool:
        """Whether the person has this role or a higher one."""
        return Role.values.index(self.role) >= Role.values.index(needed)

    @property
    def may_arm(self) -> bool:
        """False for a request with an API token that may not arm."""
        return self.api_token is None or self.api_token.may_arm

    @property
    def is_nameless(self) -> bool:
        """Whether the person was removed and anonymised."""
        return self.left_at is not None and self.username.startswith(FORMER)

    @property
    def is_operator(self) -> bool:
        return self.has_role(Role.OPERATOR)

    @property
    def is_administrator(self) -> bool:
        return self.has_role(Role.ADMIN)


class ApiToken(models.Model):
    """A person's token for the API. Only its SHA-256 is stored; a token has 256 random bits."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    may_arm = models.BooleanField(default=False)  # whether a script may arm runs, schedules and purges with it

    def __str__(self) -> str:
        return f"{self.user.username}: {self.name}"


class Counter(models.Model):
    """A counter that only grows, shared by all processes of the server. See core.services.count."""

    REFUSED = "refused_report"
    FAILED = "failed_trial"  # label: the reason code
    IMPORTS = "import_number"  # the highest number of an import so far
    RUNS = "run_number"  # the highest number of a deleted run
    MARKS = "validity_marks"  # invalid marks set and removed; label: the run's number, "" for all runs

    name = models.CharField(max_length=60)
    label = models.CharField(max_length=60)
    value = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="counter_once")]

    def __str__(self) -> str:
        return f"{self.name}[{self.label}] {self.value}"


class Change(models.Model):
    """A change of rows that answers read. See core.changes."""

    scope = models.CharField(max_length=60)
    number = models.BigIntegerField()  # random

    class Meta:
        indexes = [models.Index(fields=["scope"], include=["number"], name="change_of_scope")]  # for seals


class MigrationHash(models.Model):
    """The file of an applied migration. See core.migration_hashes."""

    migration = models.CharField(max_length=300, primary_key=True)  # app and name, such as runs.0001_initial
    sha256 = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.migration


class Heartbeat(models.Model):
    """The time at which a periodic task last ran, by the database's clock. See core.health."""

    name = models.CharField(max_length=60, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at}"


class AuditEntry(models.Model):
    """Who did what to which object, when. Written by `core.services.audit`, never changed.

    The sentence is built when it is shown: see `core.audit_words` and `screens.people.audit_links`.
    """

    at = models.DateTimeField(auto_now_add=True)
    # Null: the system. Protected: the row of a person with entries is never deleted, only anonymised.
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    action = models.CharField(max_length=60)  # a key of core.audit_words.SENTENCES, e.g. run.start
    object_type = models.CharField(max_length=40)  # name of a model, e.g. run
    object_id = models.CharField(max_length=64)  # its primary key as text
    label = models.CharField(max_length=200)  # the object's name at that time; "" for a person
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["-at"], name="audit_latest_first"),
            models.Index(fields=["object_type", "object_id"], name="audit_of_object"),  # the history of a host
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.label or self.object_type + ' ' + self.object_id}"

    @property
    def actor_name(self) -> str:
        return self.actor.username if self.actor else SYSTEM


class LoginTries(models.Model):
    """The number of recent log-in tries; see core.throttle. A row older than the window has expired."""

    key = models.CharField(max_length=64, primary_key=True)  # keyed hash of address, or of account and address
    tries = models.PositiveIntegerField()
    since = models.DateTimeField(db_index=True)  # the first of them; the index is for throwing old ones away
