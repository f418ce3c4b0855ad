"""The periodic task. It is safe to run twice, also at the same time."""

import logging
from collections.abc import Callable

from django.db.models import Exists, OuterRef

from webapp.celery import app
from webapp.core import health, tally
from webapp.hosts.models import HostState
from webapp.runs.dispatch.dispatcher import dispatch_host, idle_hosts
from webapp.runs.dispatch.ending import end_finished_run, give_up_revoked, sweep_cancelled
from webapp.runs.dispatch.leases import correct_times_ahead, expire_leases, publish_again
from webapp.runs.models import OPEN_RUN_STATES, Run, TrialState

log = logging.getLogger(__name__)

TICK_SECONDS = 5


@app.task(name="webapp.runs.tasks.tick")
def tick() -> None:
    """Every few seconds: all changes that no report triggers."""
    for step in (note_tick, correct_times_ahead, expire_leases, tidy_runs, publish_again, dispatch_all, tally.write):
        _guarded(step)


def _guarded(step: Callable[[], object]) -> None:
    """Run one step; a failure does not stop the other steps."""
    try:
        step()
    except Exception:
        log.exception("%s failed; the next tick tries again.", step.__name__)


def note_tick() -> None:
    health.note(health.TICK)


def tidy_runs() -> None:
    """Finish work that a race, a crash or a revoked host left incomplete."""
    for run in Run.objects.filter(state__in=OPEN_RUN_STATES):
        if run.targets.filter(host__state=HostState.REVOKED).exists():
            give_up_revoked(run)
        if run.cancel_requested_at and run.trials.filter(state=TrialState.PLANNED).exists():
            sweep_cancelled(run.pk)
        end_finished_run(run.pk)


def dispatch_all() -> None:
    """Check all busy hosts, perhaps hundreds, with one query."""
    in_use = Run.targets.through.objects.filter(target__host=OuterRef("pk"), run__state__in=OPEN_RUN_STATES)
    for host_id in idle_hosts().filter(Exists(in_use)).values_list("pk", flat=True):
        dispatch_host(host_id)
