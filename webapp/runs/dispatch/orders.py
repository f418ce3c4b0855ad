"""Builds an attempt's order, signs it and puts it into the host's queue."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from webapp.celery import app
from webapp.core.logs import about
from webapp.core.services import actor_name
from webapp.hosts.keys import signing_key
from webapp.hosts.selectors import drives_of
from webapp.plans.expected_time import pauses_s, step_bytes
from webapp.plans.fitness import HOST_WIDE
from webapp.plans.layouts import made_kind
from webapp.plans.points import steps_of
from webapp.plans.selectors import facts_of, reference_of, stream_at
from webapp.plans.steps import Preparation
from webapp.runs.arming import arming_of
from webapp.runs.models import Attempt, AttemptKind, AttemptState, HostAction, Trial
from worker.contract.inventory import PurgeMethod
from worker.contract.items import PhaseName
from worker.contract.orders import (
    ORDER_TASK,
    AnyOrder,
    Arming,
    CloseRunOrder,
    InventoryOrder,
    LayoutRequest,
    PurgeOrder,
    SettingOperation,
    SettingOrder,
    SettingRequest,
    TrialOrder,
    queue_name,
)
from worker.contract.signing import seal
from worker.contract.workload import Stream, TargetKind, Workload, WriteStep

# The purge and the steps before a trial, with those that are done once for all trials of a part.
#
# The first trial of the part on its targets does them. If it fails before it measures, the next one does them again,
# so that no trial measures unprepared targets, until the failure limit (failure_limit).


def preparation_of(trial: Trial) -> Preparation:
    """One query if the part has steps that are done once."""
    steps = steps_of(trial.point)
    return steps.each if steps.once and _is_prepared(trial) else steps.first


def failed_preparations(trial: Trial) -> int:
    """How many attempts of the same part and targets have ended before they measured, so that the steps that are done
    once were or may have been done in vain; 0 once they are done. Orders that no host accepted do not count."""
    if not steps_of(trial.point).once or _is_prepared(trial):
        return 0
    taken = _alike(trial).exclude(state=AttemptState.LOST, accepted_at=None)
    return taken.order_by().values("trial", "number").distinct().count()  # several hosts have one attempt each


def _is_prepared(trial: Trial) -> bool:
    """Whether a trial of the same part and targets has measured something in this run."""
    return _alike(trial).filter(Q(phase__name=PhaseName.RUN) | Q(state=AttemptState.DONE)).exists()


def _alike(trial: Trial) -> QuerySet[Attempt]:
    return Attempt.objects.filter(trial__run=trial.run_id, trial__part=trial.part, trial__target=trial.target_id)


def largest_bytes(trial: Trial, before: Preparation) -> int:
    """The most that one of the steps writes to one target, on any of the trial's hosts."""
    streams = zip(trial.stream_targets, trial.stream_workloads, trial.stream_layouts, strict=True)
    return max(
        (
            step_bytes([step], work, made_kind(TargetKind(target.kind), layout), facts_of(target), layout)
            for target, work, layout in (streams if before.steps else ())
            for step in before.steps
        ),
        default=0,
    )


# Log lines about an attempt name it, its host and its run.


def about_attempt(attempt: Attempt) -> AbstractContextManager[None]:
    return about(attempt=attempt.pk, host=attempt.host.slug, run=attempt.run_id)


log = logging.getLogger(__name__)

# Time beyond a trial's run time after which the trial counts as stuck (s).
_SLACK_S = 120
# The minimum throughput assumed for the time limit of an amount (bytes/s).
_SLOWEST_BYTES_PER_S = 1_000_000
_MAX_ORDER_S = 40 * 86400
_LONGEST_PURGE_S = 86400  # worker.drives.purge.ata


def publish(attempt: Attempt) -> bool:
    """Sign the attempt's order and put it into the host's queue; False if the broker is unavailable.

    Safe to repeat: the worker's journal refuses an attempt that it knows. The order goes directly to the queue's list,
    because an emptied Redis has no bindings.
    """
    with about_attempt(attempt):
        return _publish(attempt)


def _publish(attempt: Attempt) -> bool:
    envelope = seal(order_for(attempt), signing_key(trusted=attempt.host.trusted_keys)[1])
    try:
        app.send_task(ORDER_TASK, args=[envelope], queue=queue_name(str(attempt.host_id)), declare=[], argsrepr="[…]")
    except (OperationalError, RedisError, OSError) as error:
        log.warning("The broker did not accept the order; it will be sent again: %s", error)
        return False
    Attempt.objects.filter(pk=attempt.pk).update(published_at=timezone.now())
    return True


def waiting_orders(host_id: object) -> int:
    """The number of orders in the host's queue. Raises OSError, RedisError or OperationalError without a broker."""
    with app.producer_pool.acquire(block=True, timeout=5) as producer:
        return int(producer.channel.client.llen(queue_name(str(host_id))))


def order_for(attempt: Attempt) -> AnyOrder:
    """The attempt's order, valid for ORDER_EXPIRES_SECONDS from now."""
    now = time.time()
    head = {
        "host": str(attempt.host_id),
        "attempt": str(attempt.pk),
        "issued_at": now,
        "expires_at": now + settings.ORDER_EXPIRES_SECONDS,
        "session": attempt.host.session,
        "version": attempt.host.contract,
    }
    if attempt.kind == AttemptKind.INVENTORY:
        return InventoryOrder(**head)  # type: ignore[arg-type]
    if attempt.kind == AttemptKind.SETTING:
        return _setting_order(attempt.action, head)
    if attempt.kind == AttemptKind.PURGE:
        return _purge_order(attempt.action, head)
    if attempt.kind == AttemptKind.CLOSE_RUN:
        return CloseRunOrder(run=str(attempt.run_id), **head)  # type: ignore[arg-type]
    trial, run = attempt.trial, attempt.run
    assert trial is not None
    assert run is not None
    streams, before = streams_of(trial, attempt.host_id), preparation_of(trial)
    largest = largest_bytes(trial, before)
    return TrialOrder(
        run=str(run.pk),
        trial=str(trial.pk),
        streams=streams,
        settings=tuple(_setting_requests(trial, streams)),
        layouts=tuple(_layout_requests(trial)),
        drop_caches=trial.drop_caches,
        purge=PurgeMethod(before.purge) if before.purge else None,
        steps=before.steps,
        arming=arming_of(run),
        start_limit_s=start_limit_s(trial, before, largest) if trial.on_several_hosts else None,
        total_limit_s=longest_limit_s(trial, largest),
        **head,  # type: ignore[arg-type]
    )


def _setting_order(action: HostAction, head: dict[str, object]) -> SettingOrder:
    return SettingOrder(
        target=reference_of(action.target),
        name=action.setting,
        operation=SettingOperation(action.operation),
        value=action.value,
        **head,  # type: ignore[arg-type]
    )


def _purge_order(action: HostAction, head: dict[str, object]) -> PurgeOrder:
    assert action.armed_until is not None
    return PurgeOrder(
        target=reference_of(action.target),
        method=PurgeMethod(action.purge),
        arming=Arming(
            serials=(action.target.arming_serial,), by=actor_name(action.by), until=action.armed_until.timestamp()
        ),
        **head,  # type: ignore[arg-type]
    )


def streams_of(trial: Trial, host_id: UUID) -> tuple[Stream, ...]:
    """The host's streams, numbered over all hosts of the trial: named ones, or one for each target."""
    targets, works, layouts = trial.stream_targets, trial.stream_workloads, trial.stream_layouts
    names = trial.stream_names or ("",) * len(works)
    return tuple(stream_at(targets[n], works[n], layouts[n], n, names[n]) for n in trial.streams_on(host_id))


def _setting_requests(trial: Trial, streams: Sequence[Stream]) -> Iterator[SettingRequest]:
    """Settings of the host once, settings of a target's devices for the first stream on each target."""
    first = {stream.target: stream for stream in reversed(streams)}
    for name, value in trial.settings.items():
        for stream in streams[:1] if name in HOST_WIDE else reversed(first.values()):
            yield SettingRequest(name=name, value=value, stream=stream.number)


def _layout_requests(trial: Trial) -> Iterator[LayoutRequest]:
    """The drives of its layout on each pool, each with its serial number: the first ones of the pool."""
    for pool, layout in dict(zip(trial.stream_targets, trial.stream_layouts, strict=True)).items():
        if layout is None:
            continue
        drives = drives_of(pool)[: layout.drives]
        yield LayoutRequest(pool=pool.slug, layout=layout, drives=tuple(reference_of(drive) for drive in drives))


def longest_limit_s(trial: Trial, step_bytes: int = 0) -> int:
    """The time limit of the streams of a trial."""
    return max(total_limit_s(work, trial.stream_count, step_bytes) for work in trial.workloads)


def total_limit_s(workload: Workload, streams: int = 1, step_bytes: int = 0) -> int:
    """The time limit of a stream, after which the worker ends it. Streams may share the slow drive.

    Each step that writes has the same limit; `step_bytes`: the most that one of them writes.
    """
    slowest = _SLOWEST_BYTES_PER_S / streams
    measured = workload.time_s + (workload.load_bytes + (workload.moved_bytes or 0)) / slowest
    prefill = (workload.size_bytes or 0) * workload.files / slowest if workload.prefill else 0
    steps = step_bytes / _SLOWEST_BYTES_PER_S
    return min(_MAX_ORDER_S, int(measured + prefill + steps) + _SLACK_S)


def start_limit_s(trial: Trial, before: Preparation, step_bytes: int) -> int:
    """How long a host waits for the others of its trial: as long as they may purge, prefill and do the steps, or be
    silent before they are lost."""
    writing = sum(isinstance(step, WriteStep) for step in before.steps)
    steps = writing * longest_limit_s(trial, step_bytes) + pauses_s(before.steps)
    purge = _LONGEST_PURGE_S if before.purge else 0
    return min(_MAX_ORDER_S, longest_limit_s(trial) + steps + purge + settings.LEASE_SECONDS)


def to_publish_again() -> list[Attempt]:
    """Orders that were not accepted in time. Orders of cancelled runs and skipped trials expire."""
    overdue = timezone.now() - timedelta(seconds=settings.REPUBLISH_SECONDS)
    waiting = Attempt.objects.filter(state=AttemptState.DISPATCHED, lease_until__gt=timezone.now())
    waiting = waiting.exclude(kind=AttemptKind.TRIAL, run__cancel_requested_at__isnull=False)
    waiting = waiting.exclude(trial__skip_requested_at__isnull=False)
    waiting = waiting.exclude(trial__stop_requested_at__isnull=False)
    waiting = waiting.exclude(published_at__gt=overdue)
    return list(
        waiting.order_by(F("published_at").asc(nulls_first=True)).select_related(
            "run", "trial__target", "host", "action__target", "action__by"
        )
    )
