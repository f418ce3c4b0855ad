"""The outbox: due notices, the tasks that claim them, and the result of each try.

A task claims notices, sends them outside any transaction and records each result. If a claim has no result in time,
its task has died and the notice is due again, with the same delivery id.
"""

import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from webapp.notices.failure import Failure
from webapp.notices.models import Notice, NoticeState

BACKOFF_S = (10, 30, 120, 600, 3600, 3 * 3600)  # after each try; the last one repeats
MAX_REFUSED_TRIES = 3
MAX_AT_ONCE = 40
MAX_PER_PERSON = 8  # so that one person's receivers do not delay the others'
CLAIM_FOR = timedelta(seconds=120)  # longer than any lane of sending.py takes
KEPT_FOR = timedelta(days=30)

PAUSED = "The subscription was paused before this notice was sent."
ACCOUNT_OFF = "The account was disabled before this notice was sent."


def drop_unwanted(now: datetime) -> None:
    """Fail pending notices of disabled accounts and of paused subscriptions."""
    waiting = Notice.objects.filter(_unclaimed(now), state=NoticeState.PENDING)
    waiting.filter(subscription__user__is_active=False).update(state=NoticeState.FAILED, last_error=ACCOUNT_OFF)
    waiting.filter(subscription__paused_at__isnull=False).update(state=NoticeState.FAILED, last_error=PAUSED)


def forget_old(now: datetime) -> None:
    """Delete old notices that are not pending."""
    Notice.objects.filter(created_at__lt=now - KEPT_FOR).exclude(state=NoticeState.PENDING).delete()


@transaction.atomic
def claim(now: datetime) -> list[Notice]:
    """Claim due notices for this task: first tries before retries, a few per person, and none of a person whose
    earlier notices are still being sent."""
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
    same_person = Notice.objects.filter(subscription__user=OuterRef("subscription__user"))
    being_sent = same_person.filter(state=NoticeState.PENDING, claimed_until__gte=now)
    return Notice.objects.filter(
        _unclaimed(now), wanted, ~Exists(being_sent), state=NoticeState.PENDING, next_try_at__lte=now
    )


def _unclaimed(now: datetime) -> Q:
    return Q(claim=None) | Q(claimed_until__lt=now)


def release(notice: Notice) -> None:
    """Release the claim of a notice that was not tried; it stays due."""
    _mine(notice).update(claim=None, claimed_until=None)


def record_sent(notice: Notice, now: datetime) -> None:
    _mine(notice).update(
        state=NoticeState.SENT, tries=F("tries") + 1, sent_at=now, last_error="", claim=None, claimed_until=None
    )


def record_failure(notice: Notice, failure: Failure, now: datetime) -> None:
    """Schedule the next try, or mark the notice as failed."""
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
    """The row, unless another task has claimed it because this one took too long."""
    return Notice.objects.filter(pk=notice.pk, claim=notice.claim)
