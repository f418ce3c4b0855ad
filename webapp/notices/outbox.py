"""Which notices are due, who sends them now, and what becomes of each try.

A task claims notices, sends them outside any transaction and records each result. A claim that was not recorded in
time belongs to a task that died: the notice is due again, with the same delivery id.
"""

import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from webapp.notices.failure import Failure
from webapp.notices.models import Notice, NoticeState

BACKOFF_S = (10, 30, 120, 600, 3600, 3 * 3600)  # after each try; the last one repeats
MAX_REFUSED_TRIES = 3
MAX_AT_ONCE = 40
MAX_PER_PERSON = 8  # of those: one person's receivers do not hold up everybody's
CLAIM_FOR = timedelta(seconds=120)  # longer than any task sends
KEPT_FOR = timedelta(days=30)

PAUSED = "The subscription was paused before this notice was sent."
ACCOUNT_OFF = "The account was switched off before this notice was sent."


def drop_unwanted(now: datetime) -> None:
    """Notices that wait for a person whose account is off, or for a paused subscription, are not sent."""
    waiting = Notice.objects.filter(_unclaimed(now), state=NoticeState.PENDING)
    waiting.filter(subscription__user__is_active=False).update(state=NoticeState.FAILED, last_error=ACCOUNT_OFF)
    waiting.filter(subscription__paused_at__isnull=False).update(state=NoticeState.FAILED, last_error=PAUSED)


def forget_old(now: datetime) -> None:
    """Delete notices that nobody waits for any more."""
    Notice.objects.filter(created_at__lt=now - KEPT_FOR).exclude(state=NoticeState.PENDING).delete()


def somebody_sends(now: datetime) -> bool:
    """Whether another task is sending: the next tick goes on."""
    return Notice.objects.filter(state=NoticeState.PENDING, claimed_until__gte=now).exists()


@transaction.atomic
def claim(now: datetime) -> list[Notice]:
    """What is due, for this task alone: first tries before retries, a few of each person."""
    rank = Window(RowNumber(), partition_by="subscription__user_id", order_by=["tries", "next_try_at"])
    ranked = _due(now).annotate(rank=rank).filter(rank__lte=MAX_PER_PERSON).order_by("tries", "next_try_at")
    wanted = list(ranked.values_list("pk", flat=True)[:MAX_AT_ONCE])
    free = _due(now).filter(pk__in=wanted).select_for_update(skip_locked=True, of=("self",))
    taken = list(free.select_related("subscription__user").order_by("tries", "next_try_at"))
    mark, until = uuid.uuid4(), now + CLAIM_FOR
    Notice.objects.filter(pk__in=[notice.pk for notice in taken]).update(claim=mark, claimed_until=until)
    for notice in taken:
        notice.claim = mark
    return taken


def _due(now: datetime) -> QuerySet[Notice]:
    wanted = Q(subscription__user__is_active=True, subscription__paused_at=None)
    return Notice.objects.filter(_unclaimed(now), wanted, state=NoticeState.PENDING, next_try_at__lte=now)


def _unclaimed(now: datetime) -> Q:
    return Q(claim=None) | Q(claimed_until__lt=now)


def release(notice: Notice) -> None:
    """It was not tried: it stays due."""
    _mine(notice).update(claim=None, claimed_until=None)


def record_sent(notice: Notice, now: datetime) -> None:
    _mine(notice).update(
        state=NoticeState.SENT, tries=F("tries") + 1, sent_at=now, last_error="", claim=None, claimed_until=None
    )


def record_failure(notice: Notice, failure: Failure, now: datetime) -> None:
    """Plan the next try, or give up."""
    tries = notice.tries + 1
    next_try = now + timedelta(seconds=BACKOFF_S[min(tries, len(BACKOFF_S)) - 1])
    hopeless = failure.refused and tries >= MAX_REFUSED_TRIES
    changes: dict[str, object] = {"tries": tries, "last_error": failure.words[:500]}
    if hopeless or next_try > notice.give_up_at:
        changes["state"] = NoticeState.FAILED
    else:
        changes["next_try_at"] = next_try
    _mine(notice).update(claim=None, claimed_until=None, **changes)


def _mine(notice: Notice) -> QuerySet[Notice]:
    """The row, as long as no other task has claimed it after this one took too long."""
    return Notice.objects.filter(pk=notice.pk, claim=notice.claim)
