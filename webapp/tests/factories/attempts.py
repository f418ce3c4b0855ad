"""Attempts of trials."""

from datetime import timedelta

from django.utils import timezone

from webapp.runs.models import (
    Attempt,
)


def make_overdue(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(published_at=timezone.now() - timedelta(minutes=1))
