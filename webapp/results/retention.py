"""Old samples are thinned, and runs are deleted on request.

A partition of samples (`results.partitions`) is thinned once its month is over and every run with an attempt in it
ended more than SWEETSPOT_SAMPLE_DAYS ago: a new table with about one sample in ten takes its place, and the old
table is dropped. One run that is open or ended lately keeps its whole partition as it is. Results with their
histograms, and everything else that they lead back to, stay.
"""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.results.models import Configuration, Sample, StreamRun
from webapp.results.partitions import Partition, partitions, replace_partition
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run

log = logging.getLogger(__name__)

KEPT = "offset_ms / 10000 > (offset_ms - length_ms) / 10000"  # SQL: the samples that go over a full ten seconds


def thin_samples() -> int:
    """Thin all partitions that are old; the number of rows dropped. With SWEETSPOT_SAMPLE_DAYS=0 none are."""
    if not settings.SAMPLE_DAYS:
        return 0
    before = timezone.now() - timedelta(days=settings.SAMPLE_DAYS)
    old = [each for each in partitions() if not each.thinned and _is_old(each, before)]
    return sum(_thin(partition) for partition in old)


def _is_old(partition: Partition, before: datetime) -> bool:
    begin, end = partition.span
    attempts = Attempt.objects.filter(created_at__gte=begin, created_at__lt=end, run__isnull=False)
    young = attempts.filter(Q(run__state__in=OPEN_RUN_STATES) | Q(run__ended_at__gte=before))
    return end <= timezone.now() and not young.exists()


def _thin(partition: Partition) -> int:
    """The number of rows dropped; 0 if somebody reads the samples for long: then the next day's task tries again."""
    try:
        dropped = replace_partition(partition, KEPT)
    except OperationalError as error:
        log.warning("%s could not be thinned now: %s", partition.table, error)
        return 0
    log.info("%d samples of %s were thinned out", dropped, partition.month.strftime("%B %Y"))
    return dropped


def _raw_delete(rows: QuerySet[Sample]) -> int:
    """Samples have nothing that hangs on them: they need not be loaded to be deleted."""
    return int(rows._raw_delete(rows.db))


@transaction.atomic
def delete_run(*, run: Run, by: User | None) -> None:
    """Delete a run that is over, with its trials, results and samples; its plan stays. Raises Refusal run_open."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if locked.state in OPEN_RUN_STATES:
        raise Refusal("run_open", f"Run {locked.number} has not ended. Cancel it, and delete it after its end.")
    counts = {"trials": locked.trials.count(), "results": locked.results.count()}
    _raw_delete(Sample.objects.filter(attempt__run=locked))
    audit(by=by, action="run.delete", on=locked, detail=counts)
    locked.delete()
    transaction.on_commit(delete_orphans)


def delete_orphans() -> int:
    """Configurations that no stream leads to any more; how many there were."""
    used = StreamRun.objects.filter(configuration=OuterRef("pk"))
    observed = Attempt.objects.filter(configuration_digest=OuterRef("digest"))
    gone, _ = Configuration.objects.filter(~Exists(used), ~Exists(observed)).delete()
    return gone
