"""Finds the page of an audit entry's object: one rule per type of object.

An object that has been deleted, or whose type has no page, has no link.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Model
from django.urls import reverse

from webapp.compare.models import Price, SavedComparison
from webapp.core.models import AuditEntry, User
from webapp.hosts.models import EnrolmentToken, Host, HostGroup, ServerKey, Target
from webapp.notices.models import Subscription
from webapp.plans.models import Plan
from webapp.plans.trial_numbers import number_of
from webapp.results.models import Import
from webapp.runs.models import Run, Trial
from webapp.schedules.models import Schedule
from webapp.trends.models import Baseline

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
