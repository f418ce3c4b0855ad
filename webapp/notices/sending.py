"""Sends due notices: different receivers in parallel, the notices of one receiver one after another.

The sending threads do not use the database; the calling thread records each result. A call waits only shortly: results
of slow receivers are recorded by a later call, and meanwhile their owners get nothing new (outbox.claim). One person
uses few threads, whatever the number and the speed of his receivers, so that nobody else waits for them.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

from webapp.notices import mail, outbox, webhook
from webapp.notices.failure import Failure
from webapp.notices.models import Channel, Notice

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
    notices = outbox.claim(now)
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
        outbox.release(notice)
    elif failure is None:
        outbox.record_sent(notice, now)
    else:
        log.info("notice %s was not delivered: %s", notice.pk, failure.words)
        outbox.record_failure(notice, failure, now)
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
