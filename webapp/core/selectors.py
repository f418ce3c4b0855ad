"""Selectors of people and audit entries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import CharField, Count, Q, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from webapp.core.models import SYSTEM, ApiToken, AuditEntry, User


def people_list(*, left: bool = False) -> QuerySet[User]:
    """People on the list, enabled accounts first, or removed people; with `token_count`, the number of valid tokens."""
    working = Count("api_tokens", filter=Q(api_tokens__revoked_at=None))
    people = User.objects.filter(left_at__isnull=not left).annotate(token_count=working)
    return people.order_by("-is_active", "username")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Valid tokens, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at")


@dataclass(frozen=True)
class AuditFilter:
    """A filter of audit entries; "" and None match all. `since` and `until` are whole days in the current time
    zone, both included."""

    person: str = ""
    action: str = ""
    subject: str = ""
    since: date | None = None
    until: date | None = None


def audit_entries(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Newest first. `person` is exact, `subject` any part of the object's label or of a person's name,
    `action` one action or all of an area (`run.`)."""
    entries = AuditEntry.objects.select_related("actor").order_by("-at", "-id")
    if wanted.person == SYSTEM:
        entries = entries.filter(actor=None)
    elif wanted.person:
        entries = entries.filter(actor__username=wanted.person)
    if wanted.action:
        by_area = wanted.action.endswith(".")
        entries = entries.filter(action__startswith=wanted.action) if by_area else entries.filter(action=wanted.action)
    if wanted.subject:
        people = User.objects.filter(username__icontains=wanted.subject)
        ids = people.annotate(text=Cast("pk", CharField())).values("text")
        entries = entries.filter(Q(label__icontains=wanted.subject) | Q(object_type="user", object_id__in=ids))
    if wanted.since:
        entries = entries.filter(at__gte=midnight(wanted.since))
    if wanted.until:
        entries = entries.filter(at__lt=midnight(wanted.until + timedelta(days=1)))
    return entries


def midnight(day: date) -> datetime:
    """The begin of the day in the current time zone."""
    return timezone.make_aware(datetime.combine(day, time()))


def actors() -> list[str]:
    """Everyone with an entry in the audit log, by name, and the system."""
    acted = AuditEntry.objects.exclude(actor=None).values("actor")
    return [*User.objects.filter(pk__in=acted).order_by("username").values_list("username", flat=True), SYSTEM]


def person_names(ids: Collection[int]) -> dict[int, str]:
    """Names by id, for entries about people."""
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "username")) if ids else {}
