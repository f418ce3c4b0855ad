"""The page of the audit log."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from webapp.analysis.models import EnteredCeiling, Price, SavedComparison
from webapp.core.audit_words import SENTENCES, area_of, choice, sentence_parts
from webapp.core.models import PERSON, AuditEntry, User
from webapp.core.people import AuditFilter, actors, audit_entries, midnight, person_names
from webapp.hosts.models import EnrolmentToken, Host, HostGroup, ServerKey, Target
from webapp.notices.models import Subscription
from webapp.plans.models import Plan
from webapp.plans.points import number_of
from webapp.results.models import Import
from webapp.runs.models import Run, Trial
from webapp.schedules.models import Schedule
from webapp.screens.access import operator_page, person
from webapp.screens.templatetags.times import day_in_words
from webapp.trends.models import Baseline

# Finds the page of an audit entry's object: one rule per type of object.
#
# An object that has been deleted, or whose type has no page, has no link.

Links = Mapping[tuple[str, str], str]  # (type, id) of an object -> address


@dataclass(frozen=True)
class Rule:
    """The columns in the address of an object; without `page`, objects of this type have no page."""

    model: type[Model]
    page: str = ""
    columns: tuple[str, ...] = ("pk",)
    arguments: Callable[..., tuple[object, ...]] = lambda *values: values


_RULES = (
    Rule(User, "person"),
    Rule(Plan, "plan", ("slug",)),
    Rule(Host, "host", ("slug",)),
    Rule(Target, "host_target", ("host__slug", "slug")),
    Rule(HostGroup, "host_group", ("slug",)),
    Rule(Run, "run", ("number",)),
    Rule(Trial, "trial", ("run__number", "index"), lambda run, index: (run, number_of(index))),
    Rule(Schedule, "schedule"),
    Rule(SavedComparison, "saved_comparison"),
    Rule(Baseline, "baseline"),
    Rule(Import, "import", ("number",)),
    Rule(Price, "product", ("kind", "name")),
    Rule(AuditEntry),
    Rule(EnteredCeiling),
    Rule(Subscription),
    Rule(EnrolmentToken),
    Rule(ServerKey),
)
RULES: Mapping[str, Rule] = {rule.model._meta.model_name or "": rule for rule in _RULES}


def links_of(entries: Iterable[AuditEntry], viewer: User) -> Links:
    """Addresses by object. One query per type of object. Only admins get links to people."""
    ids = defaultdict(set)
    for entry in entries:
        ids[entry.object_type].add(entry.object_id)
    return {
        (kind, key): address
        for kind, wanted in ids.items()
        if kind != "user" or viewer.is_administrator
        for key, address in _addresses(kind, wanted)
    }


def _addresses(kind: str, ids: Iterable[str]) -> Iterable[tuple[str, str]]:
    rule = RULES.get(kind)
    if rule is None or not rule.page:
        return
    for pk, *values in rule.model._default_manager.filter(pk__in=ids).values_list("pk", *rule.columns):
        yield str(pk), reverse(rule.page, args=rule.arguments(*values))


PER_PAGE = 100


class AuditForm(forms.Form):
    """The filters. A value that cannot be read gets an error message at its field and is ignored."""

    person = forms.ChoiceField(label="Person", required=False)
    action = forms.ChoiceField(label="Action", required=False)
    subject = forms.CharField(label="Object", max_length=200, required=False)
    since = forms.DateField(label="From day", required=False)
    until = forms.DateField(label="To day", required=False)

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        fields = self.fields
        _choices(fields["person"], [("", "Everybody"), *((name, name) for name in actors())])
        _choices(fields["action"], [("", "Any action"), *_actions()])
        for name, field in fields.items():
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            field.widget.attrs["class"] = f"{kind} {kind}-sm"
            if name in ("since", "until"):
                field.widget.input_type = "date"
                field.error_messages["invalid"] = "Enter a day such as 2026-01-31."

    def wanted(self) -> AuditFilter:
        """The filter from the valid fields."""
        self.is_valid()
        return AuditFilter(**{name: value for name, value in self.cleaned_data.items() if value})


def _choices(field: forms.Field, choices: list[Any]) -> None:
    field.choices = choices  # type: ignore[attr-defined]


def _actions() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Actions by area: the whole area, then each action."""
    for area, group in groupby(SENTENCES, key=area_of):
        actions = list(group)
        everything = (f"{actions[0].partition('.')[0]}.", f"{area}: any action")
        yield area, [everything, *((action, choice(action)) for action in actions)]


@dataclass(frozen=True)
class Line:
    """A displayed entry: the actor, the sentence around the object's name, and the details."""

    entry: AuditEntry
    before: str
    name: str
    address: str  # "": the object has no page
    after: str
    details: list[tuple[str, str]]


@operator_page
def audit_page(request: HttpRequest) -> HttpResponse:
    form = AuditForm(request.GET)
    wanted = form.wanted()
    shown = Paginator(audit_entries(wanted), PER_PAGE).get_page(request.GET.get("page"))
    lines = list(_lines(list(shown), person(request)))
    filtered = wanted != AuditFilter()
    context = {
        "form": form,
        "pages": shown,
        "days": [(day_in_words(day), list(group)) for day, group in groupby(lines, key=_day)],
        "newest": lines[0] if lines and shown.number == 1 else None,
        "heading": _heading(shown.paginator.count, filtered=filtered),
        "filtered": filtered,
    }
    return render(request, "screens/audit.html", context)


def _day(line: Line) -> date:
    return timezone.localtime(line.entry.at).date()


def _heading(count: int, *, filtered: bool) -> str:
    """`12 entries today` or, with filters, `3 matching entries`. `count`: those of all days that match."""
    if filtered:
        return _entries(count, "matching ")
    today = AuditEntry.objects.filter(at__gte=midnight(timezone.localdate())).count()
    return f"{_entries(today)} today" if count else "No entry yet"


def _entries(count: int, which: str = "") -> str:
    return f"{count:,} {which}{'entry' if count == 1 else 'entries'}" if count else f"No {which}entry"


def _lines(entries: Sequence[AuditEntry], viewer: User) -> Iterator[Line]:
    links, names = links_of(entries, viewer), person_names({key for entry in entries for key in _people(entry)})
    for entry in entries:
        before, after = sentence_parts(entry.action)
        address = links.get((entry.object_type, entry.object_id), "")
        yield Line(entry, before, _name(entry, names), address, after, list(_details(entry.detail, names)))


def _people(entry: AuditEntry) -> Iterator[int]:
    """Ids of the people in an entry, as object or in the details."""
    if entry.object_type == "user":
        yield int(entry.object_id)
    yield from (value[PERSON] for value in entry.detail.values() if isinstance(value, dict) and PERSON in value)


def _name(entry: AuditEntry, names: Mapping[int, str]) -> str:
    if entry.object_type == "user":
        return names.get(int(entry.object_id), f"person {entry.object_id}")
    return entry.label


def _details(detail: dict[str, Any], names: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for name, value in detail.items():
        if value not in (None, "", [], {}):
            yield name.replace("_", " "), _plain(value, names)


def _plain(value: Any, names: Mapping[int, str]) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_plain(item, names) for item in value)
    if isinstance(value, dict) and PERSON in value:
        return names.get(value[PERSON], f"person {value[PERSON]}")
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item, names)}" for key, item in value.items())
    return str(value)
