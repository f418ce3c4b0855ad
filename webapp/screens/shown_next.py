"""What many readers open after a run has ended, computed before they do: the pairs of the overview, and its trends."""

from datetime import timedelta
from time import monotonic

from django.http import QueryDict
from django.utils import timezone

from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.screens.overview.views import compared
from webapp.screens.trend.views import trend_answer
from webapp.trends.run_values import ENDED

RECENT = timedelta(minutes=1)  # several ticks, because the trends of a run on many targets take longer than one


def compute_next(budget_s: float) -> None:
    """Until the time is used up. What is stored already costs little."""
    until = monotonic() + budget_s
    compared()
    ended = Run.objects.filter(state__in=ENDED, ended_at__gte=timezone.now() - RECENT, targets__isnull=False)
    trends = {*ended.order_by().values_list("version__plan", "targets")}
    plans = Plan.objects.in_bulk({plan for plan, _ in trends})
    targets = Target.objects.in_bulk({target for _, target in trends})
    for plan, target in trends:
        if monotonic() >= until:
            return
        trend_answer(plans[plan], targets[target], QueryDict())
