"""Reads about people and what they did."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Count, Q, QuerySet

from webapp.core.models import ApiToken, AuditEntry, User


def people_list(*, left: bool = False) -> QuerySet[User]:
    """Who is here, those who may log in first, or who left; with `token_count`, the tokens that work."""
    working = Count("api_tokens", filter=Q(api_tokens__revoked_at=None))
    found = User.objects.filter(left_at__isnull=not left).annotate(token_count=working)
    return found.order_by("-is_active", "username")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Those that work, newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None).order_by("-created_at")


@dataclass(frozen=True)
class AuditFilter:
    """What is looked for; "" and None: everything. `since` and `until` are whole days in UTC, both included."""

    person: str = ""
    action: str = ""
    subject: str = ""
    since: date | None = None
    until: date | None = None


def audit_entries(wanted: AuditFilter) -> QuerySet[AuditEntry]:
    """Newest first. `person` is exact, `subject` any part of it, `action` one action or all of an area (`run.`)."""
    found = AuditEntry.objects.order_by("-at", "-id")
    if wanted.person:
        found = found.filter(actor=wanted.person)
    if wanted.action:
        by_area = wanted.action.endswith(".")
        found = found.filter(action__startswith=wanted.action) if by_area else found.filter(action=wanted.action)
    if wanted.subject:
        found = found.filter(subject__icontains=wanted.subject)
    if wanted.since:
        found = found.filter(at__gte=_midnight(wanted.since))
    if wanted.until:
        found = found.filter(at__lt=_midnight(wanted.until) + timedelta(days=1))
    return found


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def actors() -> list[str]:
    """Everybody with an entry in the record, by name, and the system."""
    return list(AuditEntry.objects.order_by("actor").values_list("actor", flat=True).distinct())
