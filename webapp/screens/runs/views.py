"""The list of runs, and the page of one run."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec
from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import CharField, Count, Exists, F, Func, OuterRef, Prefetch, Q, QuerySet
from django.db.models.functions import Extract
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from msgspec import structs

from webapp.analysis.run_answer import load_maps
from webapp.analysis.shares import Share, shares_of
from webapp.core.formatting import percent
from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.hosts.selectors import host_named, hosts_called
from webapp.plans.factors import BESIDE
from webapp.plans.load import is_share
from webapp.plans.models import Plan
from webapp.plans.points import on_virtual_drives
from webapp.results.metrics import METRICS, default_metric
from webapp.results.rounds import tracked_points
from webapp.runs.arming import arming_state, overwritten
from webapp.runs.dispatch.ending import STOPPED
from webapp.runs.models import OPEN_RUN_STATES, Note, Run, RunState, Transition, Trial, TrialState
from webapp.runs.reasons import codes_saying
from webapp.runs.selectors import runs_list
from webapp.schedules.models import Schedule
from webapp.screens import point_words
from webapp.screens.access import page
from webapp.screens.arming import drives_to_arm
from webapp.screens.choices import Choice, Group, options_of
from webapp.screens.explore.heat import heat_of
from webapp.screens.findings import below_heading, findings_of_run
from webapp.screens.hosts.inventory_comparison import since_run_before
from webapp.screens.outcome import outcome_of
from webapp.screens.payloads import LiveRun
from webapp.screens.runs.answer import heading, short_names, trust, warnings, with_short_names
from webapp.screens.runs.grid import trial_tables
from webapp.screens.runs.live import NOT_RUN, SettingRow, counted, live_run, observed, put_back_at, setting_rows
from webapp.screens.runs.multiples import multiples_of
from webapp.screens.runs.search import SearchView, search_heading, search_views
from webapp.screens.runs.wear import wear_rows
from webapp.screens.trend.claims import number, sentence

# Filters of the list of runs: state, plan, host, person, schedule, tag and text. An unknown value matches nothing.


class Unnest(Func):
    """One row for each item of an array."""

    function = "unnest"
    output_field = CharField()


STATE_GROUPS = (("open", "Open"), ("ended", "Ended"))


def filtered_runs(runs: QuerySet[Run], query: QueryDict) -> QuerySet[Run]:
    """`state` is a state, `open` or `ended`; `schedule` is an id or `any`; `text` is searched in notes and reasons."""
    state, plan, host, by, text = (query.get(key, "").strip() for key in ("state", "plan", "host", "by", "text"))
    if state in RunState.values:
        runs = runs.filter(state=state)
    elif state in ("open", "ended"):
        runs = runs.filter(ended_at__isnull=state == "open")
    if plan:
        runs = runs.filter(version__plan__slug=plan)
    if host:
        runs = runs.filter(pk__in=Run.objects.filter(targets__host__in=hosts_called([host])).values("pk"))
    if tag := query.get("tag", "").strip():
        runs = runs.filter(tags__contains=[tag])
    if by:
        runs = runs.filter(created_by__username=by)
    if schedule := query.get("schedule", "").strip():
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


def filter_choices(query: QueryDict) -> list[Choice]:
    plans = Plan.objects.filter(versions__runs__isnull=False).distinct().order_by("title").values_list("slug", "title")
    hosts = Host.objects.order_by("slug").values_list("slug", "slug")
    people = User.objects.filter(pk__in=Run.objects.order_by().values("created_by").distinct()).order_by("username")
    schedules = Schedule.objects.filter(occurrences__run__isnull=False).distinct().order_by("name", "pk")
    named_schedules = [(str(key), name) for key, name in schedules.values_list("pk", "name")]
    state, plan, host, by = (query.get(key, "") for key in ("state", "plan", "host", "by"))
    named = host_named(host) if host else None
    return [
        _choice("state", "State", [*STATE_GROUPS, *RunState.choices], state),
        _choice("plan", "Plan", plans, plan),
        _choice("host", "Host", hosts, named.slug if named else ""),
        _choice("by", "Started by", people.values_list("username", "username"), by),
        _choice("tag", "Tag", _tags(query.get("tag", "")), query.get("tag", "")),
        _choice("schedule", "Schedule", [("any", "Any schedule"), *named_schedules], query.get("schedule", "")),
    ]


def _tags(current: str) -> list[tuple[str, str]]:
    """All tags of runs, and the one in the address."""
    used = Run.objects.exclude(tags=[]).annotate(tag=Unnest("tags")).order_by().values_list("tag", flat=True).distinct()
    return [(tag, tag) for tag in sorted({*used, current} - {""})]


def _choice(name: str, label: str, pairs: Iterable[tuple[str, str]], chosen: str) -> Choice:
    options = options_of(pairs, chosen)
    return Choice(f"id-{name}", name, label, (Group("", options),), nothing="All")


# The shares that the streams of a run keep beside others, in words.


@dataclass(frozen=True)
class ShareRow:
    name: str
    target: str
    direction: str
    words: str
    claimed: bool


def share_rows(run: Run) -> list[ShareRow]:
    return [_share_row(share) for share in shares_of(run, METRICS["iops"])]


def _share_row(share: Share) -> ShareRow:
    several = len(share.streams) > 1
    name = f"Sum of {' and '.join(share.streams)}" if several else point_words.in_words(share.point)
    return ShareRow(name, BESIDE.join(share.targets), share.direction, words(share), share.ratio is not None)


def words(share: Share) -> str:
    """`38 % of its IOPS alone (95 % CI 35 % to 41 %, n = 5)`, or why nothing is claimed."""
    if share.ratio is None:
        return f"no share: {share.why_not}" + (f" (n = {share.n})" if share.n else "")
    label = share.metric.label
    of = f"the sum of their {label}" if len(share.streams) > 1 else f"its {label}"
    low, high = share.ratio.low, share.ratio.high
    interval = f"95 % CI {_percent(low)} to {_percent(high)}, " if low is not None and high is not None else ""
    claim = f"{_percent(share.ratio.value)} of {of} alone ({interval}n = {share.n})"
    return "; ".join([claim, *share.cautions])


def _percent(value: float) -> str:
    return percent(100 * value)


PER_PAGE = 50
TRANSITIONS_SHOWN = 100


def listed_runs() -> QuerySet[Run]:
    """Newest first, with all data for a row."""
    targets = Prefetch("targets", Target.objects.select_related("host"))
    runs = runs_list().select_related("occurrence__schedule").prefetch_related(targets)
    return runs.annotate(took_s=Extract(F("ended_at") - F("started_at"), "epoch"))


@page
def runs_page(request: HttpRequest) -> HttpResponse:
    """Open runs first, then those that ended last: the list is grouped by nights."""
    listed = listed_runs().order_by(F("ended_at").desc(nulls_first=True), "-number")
    shown = Paginator(filtered_runs(listed, request.GET), PER_PAGE).get_page(request.GET.get("page"))
    groups = _groups()
    context = {
        "runs": shown,
        "heading": _heading(groups),
        "groups": groups,
        "state": request.GET.get("state", ""),
        "choices": filter_choices(request.GET),
        "text": request.GET.get("text", ""),
        "filtered": any(value for key, value in request.GET.items() if key != "page"),
        "further": any(value for key, value in request.GET.items() if key not in ("page", "state")),
    }
    return render(request, "screens/runs.html", context)


@dataclass(frozen=True)
class StateGroup:
    """A chip above the list. `value` is the filter `state`."""

    value: str
    label: str
    count: int


def _groups() -> list[StateGroup]:
    """One query."""
    day = timezone.now() - timedelta(days=1)
    counts = Run.objects.aggregate(
        all=Count("pk"),
        open=Count("pk", filter=Q(ended_at=None)),
        failed=Count("pk", filter=Q(state=RunState.FAILED)),
        day=Count("pk", filter=Q(ended_at__gte=day)),
    )
    labels = {"all": "All", "open": "Open", "failed": "Failed", "day": "of the last day"}
    return [StateGroup(key if key != "all" else "", label, counts[key]) for key, label in labels.items()]


def _heading(groups: Sequence[StateGroup]) -> str:
    counts = {group.value: group.count for group in groups}
    phrases = [f"{runs_in_words(counts['day'])} ended in the last 24 hours"] if counts["day"] else []
    if counts["open"]:
        phrases.append(f"{number(counts['open'])} {'is' if counts['open'] == 1 else 'are'} open")
    return sentence(phrases) or ("No run ended in the last 24 hours" if counts[""] else "No runs yet")


def runs_in_words(count: int) -> str:
    return f"{number(count)} run{'' if count == 1 else 's'}"


def _run(number: int) -> Run:
    people = ("created_by", "paused_by", "armed_by")
    related = Run.objects.select_related("version__plan", *people, "again_of", "occurrence__schedule")
    return get_object_or_404(related, number=number)


@page
def run_page(request: HttpRequest, number: int) -> HttpResponse:
    run = _run(number)
    live, tables, searches = live_run(run, with_trials=False), trial_tables(run), search_views(run)
    payload = structs.replace(live, cells=tables.cells)
    trials = list(
        run.trials.defer("workload", "further_workloads", "settings")
        .prefetch_related("host", "target__host", "skipped_by")
        .order_by("index")
    )
    targets = list(run.targets.select_related("host"))
    distinct = {trial.point_key: trial.point for trial in trials}.values()
    metric = default_metric(distinct)
    transitions = Transition.objects.filter(run=run).select_related("trial", "by").order_by("-at", "-id")
    transitions = transitions.only("at", "before", "after", "code", "fields", "trial__index", "by__username")
    context = {
        "run": run,
        "live": payload,
        "samples_address": reverse("run_samples", args=[run.number]),
        "picture_title": f"Run {run.number}: {run.version.plan.title}",
        "payload": msgspec.to_builtins(payload),
        "open": run.state in OPEN_RUN_STATES,
        "trial_tables": mark_safe(tables.html),  # noqa: S308 - drawn by a template
        "own_metric": "" if metric.column else metric.label,
        "failures": [trial for trial in trials if trial.reason and trial.reason_code not in NOT_RUN],
        "transitions": transitions[:TRANSITIONS_SHOWN],
        "targets": targets,
        "notes": run.notes.select_related("by", "trial"),
        "counted": counted(run, payload),
        "setting_rows": (settings_of_run := setting_rows(run)),
        "searches": searches,
        **(_answer(run, targets, trials, settings_of_run, searches) if payload.ended else {}),
        "observed": observed(run),
        "virtual_drives": on_virtual_drives(distinct),
        "since_before": since_run_before(run),
        "wear_rows": wear_rows(run),
        "shares": share_rows(run) if any(trial.stream_names for trial in trials) else (),
        "tracked": tracked_points(run),
        **_actions(run, payload, trials),
    }
    return render(request, "screens/run.html", context)


def _answer(
    run: Run,
    targets: Sequence[Target],
    trials: Sequence[Trial],
    settings_of_run: Sequence[SettingRow],
    searches: Sequence[SearchView],
) -> dict[str, object]:
    """Data for the head of an ended run."""
    outcome, findings = outcome_of(run), findings_of_run(run)
    title = heading(run, outcome) if run.budget is None else search_heading(searches)
    findings = replace(findings, first=below_heading(findings.first, title))
    return {
        "outcome": outcome,
        "findings": with_short_names(findings, targets),
        "heading": short_names(title, targets),
        # A search repeats each combination as often as it needs: its bound says what one can trust.
        "trust": [] if searches else list(trust(run, trials, settings_of_run, outcome)),
        "warnings": list(warnings(run, trials, settings_of_run, outcome)),
        "all_multiples": multiples_of(run),
        "load_maps": [(each, heat_of(each, ratios=False)) for each in load_maps(run)] if _has_map(trials) else (),
    }


def _has_map(trials: Sequence[Trial]) -> bool:
    """Whether streams ran together at shares of their loads."""
    return any(trial.stream_names and is_share(trial.point) for trial in trials)


def _actions(run: Run, live: LiveRun, trials: list[Trial]) -> dict[str, object]:
    """Data for the action buttons and their dialogs."""
    changeable = run.state in (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED) and run.cancel_requested_at is None
    arming = arming_state(run) if changeable else None
    destroyed = overwritten(trials) if live.ended else []
    return {
        "changeable": changeable,
        "planned": sum(trial.state == TrialState.PLANNED for trial in trials),
        "left_out": sum(trial.reason_code == STOPPED for trial in trials),
        "arming": arming,
        "drives": drives_to_arm(arming.drives) if arming and not arming.holds else [],
        "destroyed": destroyed,
        "drives_again": drives_to_arm(destroyed) if destroyed else [],
        "put_back_at": put_back_at(run) if run.state == RunState.PAUSED else None,
        "keeps_s": settings.PAUSE_RESTORE_SECONDS,
        "request_id": uuid.uuid4(),
    }
