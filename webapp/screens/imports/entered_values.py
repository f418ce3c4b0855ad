"""The form for values entered by hand, and the comparison of such values."""

from collections.abc import Mapping
from datetime import date
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from webapp.analysis.dimensions import FACT_PREFIX
from webapp.core.errors import Refusal
from webapp.imports.entered import TOOL, Entered, enter_values, read_values
from webapp.imports.given_labels import read_labels
from webapp.results.metrics import entered_metric
from webapp.results.models import Import, Origin
from webapp.screens.access import operator_action, person

# Labels with a column, and their dimensions in comparisons.
DIMENSIONS = {"host": "host", "controller": "controller", "drive": "model", "layout": "layout"}


@operator_action
def enter_values_action(request: HttpRequest) -> HttpResponse:
    try:
        made = enter_values(_entered(request.POST), by=person(request))
    except Refusal as refusal:
        messages.error(request, refusal.message)
        return redirect("imports")
    return redirect("import", made.number)


def _entered(form: Mapping[str, str]) -> Entered:
    """Raises Refusal."""
    return Entered(
        name=" ".join(form.get("name", "").split()),
        unit=form.get("unit", "").strip(),
        lower_is_better=form.get("better") != "higher",
        differs=form.get("differs", "").strip(),
        values=read_values(form.get("values", "")),
        labels=read_labels(form.get("labels", "")),
        note=form.get("note", "").strip(),
        on=_date(form.get("on", "")),
    )


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise Refusal("entered_date", f"`{text[:20]}` is not a date, such as 2009-05-22.") from error


def comparison_of_entered(imported: Import) -> str:
    """The address that compares the values, with the first ones as baseline; "" for other imports."""
    origins = list(imported.origins.filter(tool=TOOL).prefetch_related("results").order_by("number"))
    keys = [key for origin in origins for result in origin.results.all() for key in result.metrics]
    if not keys or entered_metric(keys[0]) is None:
        return ""
    name = _differing(origins, imported.labels)
    query = {
        "import": imported.number,
        "metric": keys[0],
        "x": "imported",
        "series": DIMENSIONS.get(name, FACT_PREFIX + name),
    }
    return f"{reverse('explore')}?{urlencode(query | {'baseline': _labels(origins[0])[name]})}"


def _labels(origin: Origin) -> dict[str, str]:
    own = {name: getattr(origin, name) for name in DIMENSIONS}
    return {**{name: text for name, text in own.items() if text}, **origin.other}


def _differing(origins: list[Origin], common: Mapping[str, str]) -> str:
    """The label that is not common to all values."""
    return next(name for name in _labels(origins[0]) if name not in common)
