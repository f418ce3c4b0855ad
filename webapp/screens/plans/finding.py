"""Finds the plan or version of an address."""

from django.db.models import Q
from django.http import Http404

from webapp.plans.models import PlanVersion

_MAX_DIGITS = 9


def found_version(slug: str, number: str = "") -> PlanVersion:
    """The version; without a number the newest. Raises Http404."""
    wanted = Q()
    if number:
        if not number.isdecimal() or len(number) > _MAX_DIGITS:
            raise Http404(f"There is no version {number[:20]}.")
        wanted = Q(number=int(number))
    versions = PlanVersion.objects.select_related("plan", "created_by").filter(wanted, plan__slug=slug)
    version = versions.order_by("-number").first()
    if version is None:
        raise Http404("There is no such plan or version.")
    return version
