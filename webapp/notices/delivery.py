"""Sends due notices: different receivers in parallel, the notices of one receiver one after another.

The sending threads do not use the database; the calling thread records each result. A call waits only shortly: results
of slow receivers are recorded by a later call, and meanwhile their owners get nothing new (see `claim`). One person
uses few threads, whatever the number and the speed of his receivers, so that nobody else waits for them.
"""

import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from webapp.core.tasks import CLOCK_TOLERANCE
from webapp.notices import mail, webhook
from webapp.notices.models import Channel, Failure, Notice, NoticeState

# The outbox: due notices, the tasks that claim them, and the result of each try.
#
# A task claims notices, sends them outside any transaction and records each result. If a claim has no result in time,
# its task has died and the notice is due again, with the same delivery id.
#
# Times that lie further ahead than any new one are of a clock that was ahead and was set back: they count as passed.
# Tasks that run at once read the clock one after another, so the later one's times lie a little further ahead.

BACKOFF_S = (10, 30, 120, 600, 3600, 3 * 3600)  # after each try; the last one repeats
LONGEST_BACKOFF = timedelta(seconds=max(BACKOFF_S))
MAX_REFUSED_TRIES = 3
MAX_AT_ONCE = 40
MAX_PER_PERSON = 8  # so that one person's receivers do not delay the others'
CLAIM_FOR = timedelta(seconds=120)  # longer than any lane takes
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
    being_sent = same_person.filter(_claim_lasts(now), state=NoticeState.PENDING)
    come = Q(next_try_at__lte=now) | Q(next_try_at__gt=now + LONGEST_BACKOFF + CLOCK_TOLERANCE)
    return Notice.objects.filter(come, _unclaimed(now), wanted, ~Exists(being_sent), state=NoticeState.PENDING)


def _unclaimed(now: datetime) -> Q:
    return Q(claim=None) | ~_claim_lasts(now)


def _claim_lasts(now: datetime) -> Q:
    return Q(claimed_until__range=(now, now + CLAIM_FOR + CLOCK_TOLERANCE))


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


log = logging.getLogger(__name__)

RECEIVERS_AT_ONCE = 32
LANES_OF_PERSON = 2  # of these, with the receivers of one person
START_LIMIT_S = 10.0  # notices not tried by then wait for the next tick
WAIT_S = 3.0  # for results, in one call

Outcome = tuple[Notice, Failure | None, bool]  # the failure, if any, and whether it was tried
Tell = Callable[[Outcome], None]
Group = list[Notice]  # to one receiver

_pool = ThreadPoolExecutor(RECEIVERS_AT_ONCE, thread_name_prefix="notices")
_lock = threading.Lock()
_late: list["_Batch"] = []


class _Batch:
    """Notices that are being sent."""

    def __init__(self, notices: int) -> None:
        self.outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self.left = notices

    def record(self, now: datetime, *, wait_s: float) -> int:
        """Record the results that are there, or come in time; return the number of tries."""
        until, tried = time.monotonic() + wait_s, 0
        while self.left:
            try:
                outcome = self.outcomes.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            self.left -= 1
            tried += _record(*outcome, now)
        return tried


def send_due(now: datetime) -> int:
    """Send due notices; return the number of tries whose results are recorded."""
    tried = _record_late(now)
    notices = claim(now)
    if not notices:
        return tried
    batch = _Batch(len(notices))
    limit = time.monotonic() + START_LIMIT_S
    for lane in _lanes(notices):
        _pool.submit(_send_lane, lane, batch.outcomes.put, limit)
    tried += batch.record(now, wait_s=WAIT_S)
    if batch.left:
        with _lock:
            _late.append(batch)
    return tried


def _record_late(now: datetime) -> int:
    with _lock:
        batches = list(_late)
        _late.clear()
    tried = sum(batch.record(now, wait_s=0.0) for batch in batches)
    with _lock:
        _late.extend(batch for batch in batches if batch.left)
    return tried


def _lanes(notices: Iterable[Notice]) -> list[list[Group]]:
    """What one thread sends after another: e-mails, and the receivers of a person in a few lanes."""
    mails: Group = []
    by_person: dict[int, dict[str, Group]] = {}
    for notice in notices:
        subscription = notice.subscription
        if subscription.channel == Channel.WEBHOOK:
            receivers = by_person.setdefault(subscription.user_id, {})
            receivers.setdefault(urlsplit(subscription.url).netloc, []).append(notice)
        else:
            mails.append(notice)
    lanes = [[mails]] if mails else []
    for receivers in by_person.values():
        groups = list(receivers.values())
        lanes += [groups[lane::LANES_OF_PERSON] for lane in range(min(LANES_OF_PERSON, len(groups)))]
    return lanes


def _send_lane(lane: Sequence[Group], tell: Tell, limit: float) -> None:
    for group in lane:
        _send_all(group, tell, limit)


def _record(notice: Notice, failure: Failure | None, tried: bool, now: datetime) -> bool:
    if not tried:
        release(notice)
    elif failure is None:
        record_sent(notice, now)
    else:
        log.info("notice %s was not delivered: %s", notice.pk, failure.words)
        record_failure(notice, failure, now)
    return tried


def _send_all(group: list[Notice], tell: Tell, limit: float) -> None:
    """Send notices to one receiver until it becomes unreachable. Reports each notice, tried or not."""
    waiting = deque(group)
    try:
        with _sender(group[0].subscription.channel) as send:
            while waiting and time.monotonic() < limit:
                failure = _failure_of(send, waiting[0])
                tell((waiting.popleft(), failure, True))
                if failure and failure.unreachable:
                    break
    except Failure as failure:  # no connection to the mail server
        tell((waiting.popleft(), failure, True))
    finally:
        for notice in waiting:
            tell((notice, None, False))


@contextmanager
def _sender(channel: str) -> Iterator[Callable[[Notice], None]]:
    """Send one notice; all e-mails share one connection. Raises Failure."""
    if channel == Channel.WEBHOOK:
        yield webhook.send
        return
    with mail.connected() as connection:
        yield partial(mail.send, connection=connection)


def _failure_of(send: Callable[[Notice], None], notice: Notice) -> Failure | None:
    try:
        send(notice)
    except Failure as failure:
        return failure
    except Exception:
        log.exception("notice %s: internal server error", notice.pk)
        return Failure("Internal server error. The administrator can find details in the Celery worker's log.")
    return None
