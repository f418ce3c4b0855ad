"""Filters of the list of runs: state, plan, host, person, schedule, tag and text. An unknown value matches nothing."""

from collections.abc import Iterable

from django.db.models import CharField, Exists, Func, OuterRef, Q, QuerySet
from django.http import QueryDict

from webapp.core.models import User
from webapp.hosts.models import Host
from webapp.hosts.selectors import host_named, hosts_called
from webapp.plans.models import Plan
from webapp.runs.models import Note, Run, RunState
from webapp.runs.reasons import codes_saying
from webapp.schedules.models import Schedule
from webapp.screens.choices import Choice, Group, options_of


class Unnest(Func):
    """One row for each item of an array."""

    function = "unnest"
    output_field = CharField()


STATE_GROUPS = (("open", "Open"), ("ended", "Ended"))


def filtered_runs(runs: QuerySet[Run], asked: QueryDict) -> QuerySet[Run]:
    """`state` is a state, `open` or `ended`; `schedule` is an id or `any`; `text` is searched in notes and reasons."""
    state, plan, host, by, text = (asked.get(key, "").strip() for key in ("state", "plan", "host", "by", "text"))
    if state in RunState.values:
        runs = runs.filter(state=state)
    elif state in ("open", "ended"):
        runs = runs.filter(ended_at__isnull=state == "open")
    if plan:
        runs = runs.filter(version__plan__slug=plan)
    if host:
        runs = runs.filter(pk__in=Run.objects.filter(targets__host__in=hosts_called([host])).values("pk"))
    if tag := asked.get("tag", "").strip():
        runs = runs.filter(tags__contains=[tag])
    if by:
        runs = runs.filter(created_by__username=by)
    if schedule := asked.get("schedule", "").strip():
        runs = _of_schedule(runs, schedule)
    return runs.filter(_mentions(text[:200])) if text else runs


def _of_schedule(runs: QuerySet[Run], schedule: str) -> QuerySet[Run]:
    if schedule == "any":
        return runs.filter(occurrence__isnull=False)
    known = schedule.isdecimal() and len(schedule) < 10
    return runs.filter(occurrence__schedule=int(schedule)) if known else runs.none()


def _mentions(text: str) -> Q:
    noted = Note.objects.filter(run=OuterRef("pk"), text__icontains=text)
    mentions = (
        Q(note__icontains=text)
        | Q(reason_code__in=codes_saying(text))
        | Q(reason_fields__icontains=text)
        | Q(invalid_reason__icontains=text)
    )
    return mentions | Q(Exists(noted))


def filter_choices(asked: QueryDict) -> list[Choice]:
    plans = Plan.objects.filter(versions__runs__isnull=False).distinct().order_by("title").values_list("slug", "title")
    hosts = Host.objects.order_by("slug").values_list("slug", "slug")
    people = User.objects.filter(pk__in=Run.objects.order_by().values("created_by").distinct()).order_by("username")
    schedules = Schedule.objects.filter(occurrences__run__isnull=False).distinct().order_by("name", "pk")
    named_schedules = [(str(key), name) for key, name in schedules.values_list("pk", "name")]
    state, plan, host, by = (asked.get(key, "") for key in ("state", "plan", "host", "by"))
    named = host_named(host) if host else None
    return [
        _choice("state", "State", [*STATE_GROUPS, *RunState.choices], state),
        _choice("plan", "Plan", plans, plan),
        _choice("host", "Host", hosts, named.slug if named else ""),
        _choice("by", "Started by", people.values_list("username", "username"), by),
        _choice("tag", "Tag", _tags(asked.get("tag", "")), asked.get("tag", "")),
        _choice("schedule", "Schedule", [("any", "Any schedule"), *named_schedules], asked.get("schedule", "")),
    ]


def _tags(asked: str) -> list[tuple[str, str]]:
    """All tags of runs, and the one in the address."""
    used = Run.objects.exclude(tags=[]).annotate(tag=Unnest("tags")).order_by().values_list("tag", flat=True).distinct()
    return [(tag, tag) for tag in sorted({*used, asked} - {""})]


def _choice(name: str, label: str, pairs: Iterable[tuple[str, str]], chosen: str) -> Choice:
    options = options_of(pairs, chosen)
    return Choice(f"id-{name}", name, label, (Group("", options),), nothing="All")
