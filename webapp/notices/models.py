"""Subscriptions of people, and the notices that are sent to them (an outbox).

Notice:  pending ──► sent
            ├──────► failed   (no more tries, or the subscription is paused or its owner disabled)
            └◄────── failed   (a person sends it again)
"""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from webapp.plans.models import Plan

# A failed try to send a notice.


class Failure(Exception):
    """`words` are shown to the person.

    `refused`: the receiver or this server refuses this notice; only a few more tries are made.
    `unreachable`: other notices to the same receiver would now fail too.
    """

    def __init__(self, words: str, *, refused: bool = False, unreachable: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.refused = refused
        self.unreachable = unreachable


class Event(models.TextChoices):
    """Events that people can subscribe to."""

    ENDED = "ended", "Run done or cancelled"
    FAILED = "failed", "Run failed"
    WORSE = "worse", "Run worse than its baseline"
    LATE = "late", "Run is late"
    MISSED = "missed", "Scheduled run missed"
    AWAY = "away", "Host away or back"


TEST = "test"  # the event of a test notice; nobody subscribes to it


class Channel(models.TextChoices):
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"


class NoticeState(models.TextChoices):
    PENDING = "pending", "Pending"
    SENT = "sent", "Sent"
    FAILED = "failed", "Failed"


class Subscription(models.Model):
    """The events of one plan, or of all plans, that one person receives notices about, and the channel."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    url = models.CharField(max_length=1000, blank=True)  # for a webhook; an e-mail goes to the person's address
    secret = models.BinaryField(max_length=300, default=b"")  # for a webhook, encrypted: see notices.signing
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, null=True, related_name="+")  # null: every plan
    events = ArrayField(models.CharField(max_length=10, choices=Event.choices))
    created_at = models.DateTimeField(auto_now_add=True)
    paused_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(channel=Channel.EMAIL, url="") | (Q(channel=Channel.WEBHOOK) & ~Q(url="")),
                name="subscription_webhook_has_url",
            ),
            models.CheckConstraint(condition=Q(events__len__gt=0), name="subscription_has_events"),
            models.UniqueConstraint(
                fields=["user", "channel", "url", "plan"], nulls_distinct=False, name="subscription_once"
            ),
        ]

    def __str__(self) -> str:
        about = f"the plan {self.plan.slug}" if self.plan else "every plan"
        return f"{self.get_channel_display()} about {about}"


class Notice(models.Model):
    """One event for one subscription. The content never changes, the state of the delivery does."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)  # of the delivery, same on retries
    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="notices")
    event = models.CharField(max_length=10)  # an Event, or TEST
    dedupe = models.CharField(max_length=200)  # identifies the event, e.g. run:17:ended
    subject = models.CharField(max_length=200)
    text = models.TextField()
    payload = models.JSONField()  # the body for webhooks
    state = models.CharField(max_length=10, choices=NoticeState.choices, default=NoticeState.PENDING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField()
    give_up_at = models.DateTimeField()  # no try is made later
    claim = models.UUIDField(null=True)  # id of the task that is sending it
    claimed_until = models.DateTimeField(null=True)  # when the claim was made; an old claim belongs to a dead task
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=500, blank=True)  # text of the last failed try

    class Meta:
        ordering = ["-created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["subscription", "dedupe"], name="notice_once"),
            models.CheckConstraint(condition=Q(state__in=NoticeState.values), name="notice_state_known"),
        ]
        indexes = [
            # the tick reads only notices that are due, which are few
            models.Index(fields=["next_try_at"], name="notice_due", condition=Q(state="pending")),
            # the last delivery of a subscription
            models.Index(fields=["subscription", "-created_at"], name="notice_latest"),
            # old ones are deleted
            models.Index(fields=["created_at"], name="notice_by_age"),
        ]

    def __str__(self) -> str:
        return self.subject
