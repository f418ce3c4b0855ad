"""Thins old inventories: of each host the first of a day is kept, all of the last KEPT_DAYS, and the newest."""

from datetime import timedelta

from django.db.models import Exists, OuterRef
from django.utils import timezone

from webapp.hosts.models import HostInventory, InventoryContent

KEPT_DAYS = 30


def thin_inventories() -> int:
    """The number of inventories deleted. Contents that no inventory has any more are deleted too."""
    old = HostInventory.objects.filter(taken_at__lt=timezone.now() - timedelta(days=KEPT_DAYS))
    by_day = old.order_by("host_id", "taken_at__date", "taken_at", "pk").distinct("host_id", "taken_at__date")
    newer = HostInventory.objects.filter(host=OuterRef("host"), taken_at__gt=OuterRef("taken_at"))
    thinned, _ = old.filter(Exists(newer)).exclude(pk__in=list(by_day.values_list("pk", flat=True))).delete()
    unused = ~Exists(HostInventory.objects.filter(content=OuterRef("pk")))
    InventoryContent.objects.filter(unused).delete()
    return thinned
