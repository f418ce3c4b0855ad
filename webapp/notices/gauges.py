"""The numbers of pending and failed notices."""

from django.db.models import Count

from webapp.core.gauges import Family, Reading, collector
from webapp.notices.models import Notice, NoticeState

SHOWN = (NoticeState.PENDING, NoticeState.FAILED)


@collector
def notices() -> list[Family]:
    rows = Notice.objects.filter(state__in=SHOWN).order_by().values_list("state").annotate(count=Count("pk"))
    found: dict[str, int] = dict(rows)
    readings = tuple(Reading(found.get(state, 0), {"state": state.value}) for state in SHOWN)
    return [Family("sweetspot_notices", "Notices that are pending, or that failed in the last 30 days", readings)]
