"""What becomes of samples that are old, and of runs that nobody wants any more.

Of samples of runs that ended more than SWEETSPOT_SAMPLE_DAYS ago one second in ten is kept, as it was measured.
Results with their whole histograms, and everything that they lead back to, stay. Nothing of a run that is not over
is ever touched.
"""

import logging
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Mod
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.core.services import audit
from webapp.results.models import Configuration, Sample, StreamRun
from webapp.runs.models import OPEN_RUN_STATES, Attempt, Run

log = logging.getLogger(__name__)

KEEP_EVERY = 10  # s


def thin_samples() -> int:
    """Thin the samples of all runs that are old enough; how many rows went. With SWEETSPOT_SAMPLE_DAYS=0 none do."""
    if not settings.SAMPLE_DAYS:
        return 0
    before = timezone.now() - timedelta(days=settings.SAMPLE_DAYS)
    old = Run.objects.exclude(state__in=OPEN_RUN_STATES).filter(ended_at__lt=before)
    gone = sum(_thin(run) for run in old.order_by("number").iterator())
    if gone:
        log.info("%d samples of runs that ended before %s were thinned out", gone, before.date())
    return gone


def _thin(run: Run) -> int:
    """One attempt a statement, so that no lock is held for long."""
    between = Sample.objects.annotate(rest=Mod(F("second"), KEEP_EVERY)).exclude(rest=0)
    thick = run.attempts.filter(Exists(between.filter(attempt=OuterRef("pk"))))
    return sum(_raw_delete(between.filter(attempt=pk)) for pk in list(thick.values_list("pk", flat=True)))


def _raw_delete(rows: QuerySet[Sample]) -> int:
    """Samples have nothing that hangs on them: they need not be loaded to be deleted."""
    return int(rows._raw_delete(rows.db))


@transaction.atomic
def delete_run(*, run: Run, by: User | None) -> None:
    """Delete a run that is over, with its trials, results and samples; its plan stays. Raises Refusal run_open."""
    locked = Run.objects.select_for_update().get(pk=run.pk)
    if locked.state in OPEN_RUN_STATES:
        raise Refusal(
            "run_open", f"Run {locked.number} is not over yet. Cancel it first, and delete it when it has ended."
        )
    counts = {"trials": locked.trials.count(), "results": locked.results.count()}
    _raw_delete(Sample.objects.filter(attempt__run=locked))
    name = str(locked)
    locked.delete()
    audit(by=by, action="run.delete", subject=name, detail=counts)
    transaction.on_commit(delete_orphans)


def delete_orphans() -> int:
    """Configurations that no stream leads to any more; how many there were."""
    used = StreamRun.objects.filter(configuration=OuterRef("pk"))
    observed = Attempt.objects.filter(configuration_digest=OuterRef("digest"))
    gone, _ = Configuration.objects.filter(~Exists(used), ~Exists(observed)).delete()
    return gone
