"""Tasks in the background. Each is safe to run twice, also at the same time."""

from datetime import timedelta
from time import monotonic

from django.http import QueryDict
from django.utils import timezone

from webapp.celery import app
from webapp.core.answers import answered
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.runs.states import ENDED_RUN_STATES
from webapp.screens.bench.address import read_address
from webapp.screens.bench.views import shown_products
from webapp.screens.explore.import_findings import make_due
from webapp.screens.overview.views import compared
from webapp.screens.trend.views import trend_answer

BUDGET_S = 4.0  # less than the distance of two ticks, so that they do not pile up
RECENT = timedelta(minutes=1)  # several ticks, because the trends of a run on many targets take longer than one


@app.task(name="webapp.screens.tasks.tick")
def tick() -> None:
    """Every few seconds: make the findings of imports that have ended, and what is shown after a run has ended."""
    until = monotonic() + BUDGET_S
    make_due(BUDGET_S)
    _compute_next(until)


@app.task(name="webapp.screens.tasks.renew_bench")
def renew_bench(address: str, zone: str) -> None:
    """Compute what a page of Bench shows after a change, for readers in this time zone."""
    data = QueryDict(address)
    with timezone.override(zone):
        selection = read_address(data)
        if selection:
            answered(shown_products(data, selection))


def _compute_next(until: float) -> None:
    """The pairs of the overview and the trends of ended runs, before their first reader, until the time is used up.
    What is stored already costs little."""
    compared()
    ended = Run.objects.filter(state__in=ENDED_RUN_STATES, ended_at__gte=timezone.now() - RECENT, targets__isnull=False)
    trends = {*ended.order_by().values_list("version__plan", "targets")}
    plans = Plan.objects.in_bulk({plan for plan, _ in trends})
    targets = Target.objects.in_bulk({target for _, target in trends})
    for plan, target in trends:
        if monotonic() >= until:
            return
        trend_answer(plans[plan], targets[target], QueryDict())
