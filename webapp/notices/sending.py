"""Sends due notices: different receivers in parallel, the notices of one receiver one after another.

The sending threads do not use the database; the calling thread records each result.
"""

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit

from webapp.notices import mail, outbox, webhook
from webapp.notices.failure import Failure
from webapp.notices.models import Channel, Notice

log = logging.getLogger(__name__)

RECEIVERS_AT_ONCE = 16  # more than one person's receivers can occupy: see outbox.MAX_PER_PERSON
START_LIMIT_S = 10.0  # notices not tried by then wait for the next tick

Outcome = tuple[Notice, Failure | None, bool]  # the failure, if any, and whether it was tried
Tell = Callable[[Outcome], None]


def send_due(now: datetime) -> int:
    """Send due notices; return the number of tries."""
    batch = outbox.claim(now)
    if not batch:
        return 0
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    limit = time.monotonic() + START_LIMIT_S
    tried = 0
    with ThreadPoolExecutor(RECEIVERS_AT_ONCE, thread_name_prefix="notices") as pool:
        for group in _by_receiver(batch):
            pool.submit(_send_all, group, outcomes.put, limit)
        for _ in batch:
            tried += _record(*outcomes.get(timeout=outbox.CLAIM_FOR.total_seconds()), now)
    return tried


def _record(notice: Notice, failure: Failure | None, tried: bool, now: datetime) -> bool:
    if not tried:
        outbox.release(notice)
    elif failure is None:
        outbox.record_sent(notice, now)
    else:
        log.info("notice %s was not delivered: %s", notice.pk, failure.words)
        outbox.record_failure(notice, failure, now)
    return tried


def _by_receiver(batch: Iterable[Notice]) -> list[list[Notice]]:
    groups: dict[str, list[Notice]] = {}
    for notice in batch:
        groups.setdefault(urlsplit(notice.subscription.url).netloc, []).append(notice)
    return list(groups.values())


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
