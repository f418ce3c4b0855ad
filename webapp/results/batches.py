"""Batches of attempts, in order and exactly once: `confirmed_seq + 1` is next, lower ones were taken before."""

import time
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from django.db import transaction

from webapp.results.clock import offset_ms
from webapp.results.intake import Intake, started_streams, write
from webapp.results.items import take_item
from webapp.runs.dispatch import dispatch_host
from webapp.runs.leases import renewed
from webapp.runs.models import Attempt
from webapp.runs.states import Later
from worker.contract.reports import Batch

# Batches of an attempt in a report: a worker that keeps up sends one or two. One that has more to say was out of reach;
# after an outage that may be all of them, and what is next for each of them is left to the tick.
_KEEPS_UP = 20


def by_attempt(batches: Iterable[Batch]) -> dict[str, list[Batch]]:
    """What a report says of each attempt, by the name that it gives it."""
    said: dict[str, list[Batch]] = {}
    for batch in batches:
        said.setdefault(batch.attempt, []).append(batch)
    return said


def take_batches(said: Mapping[Attempt, Sequence[Batch]]) -> list[Intake]:
    """Take of each attempt, which is locked and active, what is next, and write it all at once.

    In a transaction, which must end where this raises: BadItem, IllegalMove, StaleMove, or Django's database errors.
    """
    later, streams = Later(), started_streams(said)
    intakes = [Intake(attempt, later, streams[attempt.pk]) for attempt in said]
    for intake in intakes:
        _gather(intake, said[intake.attempt])
    write(intakes, later)
    return intakes


def _gather(intake: Intake, batches: Sequence[Batch]) -> None:
    attempt = intake.attempt
    confirmed = attempt.confirmed_seq
    for batch in batches:
        if batch.seq == confirmed + 1:
            for item in batch.items:
                take_item(intake, item)
            confirmed = batch.seq
    offset = offset_ms(attempt.clock_offset_ms, batches[-1:], now_s=time.time())
    lease = renewed(attempt.lease_until)
    intake.later.change(attempt, confirmed_seq=confirmed, lease_until=lease, clock_offset_ms=offset)


def go_on(host_id: UUID, batches: Sequence[Batch]) -> None:
    """Give a host whose attempt has ended with these batches what is next, after the commit."""
    if len(batches) <= _KEEPS_UP:
        transaction.on_commit(lambda: dispatch_host(host_id))
