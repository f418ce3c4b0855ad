"""Who did what, when, on what."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from webapp.core.audit_words import WORDS, area_of, in_words
from webapp.core.models import AuditEntry
from webapp.core.selectors import AuditFilter, actors, audit_entries
from webapp.screens.access import operator_page

PER_PAGE = 100


class AuditForm(forms.Form):
    """Everything that can be looked for; what cannot be read is said at its field and left out."""

    person = forms.ChoiceField(label="Person", required=False)
    action = forms.ChoiceField(label="Did", required=False)
    subject = forms.CharField(label="To what", max_length=200, required=False)
    since = forms.DateField(label="From day (UTC)", required=False)
    until = forms.DateField(label="To day (UTC)", required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        fields = self.fields
        _choices(fields["person"], [("", "Everybody"), *((name, name) for name in actors())])
        _choices(fields["action"], [("", "Anything"), *_actions()])
        for name, field in fields.items():
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            field.widget.attrs["class"] = f"{kind} {kind}-sm"
            if name in ("since", "until"):
                field.widget.input_type = "date"
                field.error_messages["invalid"] = "Give a day as 2026-01-31."

    def wanted(self) -> AuditFilter:
        """As far as it can be read."""
        self.is_valid()
        return AuditFilter(**{name: value for name, value in self.cleaned_data.items() if value})


def _choices(field: forms.Field, choices: list[Any]) -> None:
    field.choices = choices  # type: ignore[attr-defined]


def _actions() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """By area: all of it, then each action."""
    for area, group in groupby(WORDS, key=area_of):
        actions = list(group)
        everything = (f"{actions[0].partition('.')[0]}.", f"{area}: anything")
        yield area, [everything, *((action, _choice(action)) for action in actions)]


def _choice(action: str) -> str:
    return in_words(action).removesuffix(" of").removesuffix(" for").capitalize()


@dataclass(frozen=True)
class Line:
    """An entry as it is shown; `address` is where its subject has a page, "" where it has none."""

    entry: AuditEntry
    did: str
    address: str
    details: list[tuple[str, str]]


@operator_page
def audit_page(request: HttpRequest) -> HttpResponse:
    form = AuditForm(request.GET)
    wanted = form.wanted()
    shown = Paginator(audit_entries(wanted), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "pages": shown,
        "lines": [_line(entry) for entry in shown],
        "filtered": wanted != AuditFilter(),
    }
    return render(request, "screens/audit.html", context)


def _line(entry: AuditEntry) -> Line:
    return Line(entry, in_words(entry.action), _address(entry), list(_details(entry.detail)))


def _address(entry: AuditEntry) -> str:
    """Of plans, hosts and runs, by what their entries call them."""
    area, subject = entry.action.partition(".")[0], entry.subject
    number = subject.removeprefix("run ")
    if area == "run" and number.isdecimal():
        return reverse("run", args=[int(number)])
    if area in ("plan", "host") and subject != "any" and subject.replace("-", "").replace("_", "").isalnum():
        return reverse(area, args=[subject]) if subject.isascii() else ""
    return ""


def _details(detail: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in detail.items():
        if value not in (None, "", [], {}):
            yield name.replace("_", " "), _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_plain(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(one)}" for key, one in value.items())
    return str(value)
