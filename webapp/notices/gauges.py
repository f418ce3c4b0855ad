"""How many notices wait, and how many were given up."""

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import Metric

from webapp.core.gauges import collector, gauge
from webapp.notices.models import Notice, NoticeState

SHOWN = (NoticeState.PENDING, NoticeState.FAILED)


@collector
def notices() -> Iterator[Metric]:
    rows = Notice.objects.filter(state__in=SHOWN).order_by().values_list("state").annotate(count=Count("pk"))
    counts: dict[str, int] = dict(rows)
    description = "Notices that are pending, or that failed in the last 30 days"
    yield gauge("sweetspot_notices", description, "state", ((state.value, counts.get(state, 0)) for state in SHOWN))
