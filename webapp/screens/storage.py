"""The page Storage: the size of the database, what grows fastest, when its disk is full, and which runs are old."""

from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from webapp.plans.models import Plan
from webapp.screens.access import admin_page
from webapp.storage.run_retention import MAX_DAYS, Ages, proposals
from webapp.storage.sizes import read_storage


class PreviewForm(forms.Form):
    """The age of runs, and the plan that the preview is limited to."""

    days = forms.IntegerField(label="Days since the end", min_value=1, max_value=MAX_DAYS)
    plan = forms.ChoiceField(label="Plan", required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        slugs = Plan.objects.order_by("slug").values_list("slug", flat=True)
        self.fields["plan"].choices = [("", "All plans"), *((slug, slug) for slug in slugs)]  # type: ignore[attr-defined]
        self.fields["days"].widget.attrs["class"] = "form-control form-control-sm"
        self.fields["plan"].widget.attrs["class"] = "form-select form-select-sm"

    def ages(self) -> Ages:
        days, plan = self.cleaned_data["days"], self.cleaned_data["plan"]
        return Ages(0, {plan: days}) if plan else Ages(days, {})


@admin_page
def storage_page(request: HttpRequest) -> HttpResponse:
    form = PreviewForm(request.GET if "days" in request.GET else None)
    old = proposals(form.ages(), now=timezone.now()) if form.is_valid() else []
    context = {
        "storage": read_storage(),
        "form": form,
        "proposals": old,
        "old_bytes": sum(proposal.bytes for proposal in old),
        "old_count": sum(len(proposal.runs) for proposal in old),
        "run_days": settings.RUN_DAYS,
        "run_days_of_plans": settings.RUN_DAYS_OF_PLANS,
    }
    return render(request, "screens/storage.html", context)
