"""Summary of a run: the outcome of its trials, its settings and configurations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from django.utils import timezone

from webapp.core import formatting
from webapp.results.models import Configuration, StreamRun
from webapp.runs.models import Attempt, AttemptKind, AttemptState, Run, RunState, SettingChange
from webapp.runs.selectors import RunProgress
from webapp.screens.payloads import LiveRun

MAX_CHANGES = 20_000


def counted(run: Run, live: LiveRun) -> str:
    """One line about an ended run; "" for an open run."""
    if not live.ended:
        return ""
    if run.state == RunState.CANCELLED:
        return _cancelled(run, live)
    took = f" in {formatting.duration(live.elapsed_s)}" if run.started_at else ""
    counts = [(live.failed, "failed"), (live.cancelled, "cancelled or skipped")]
    others = "".join(f", {count} {what}" for count, what in counts if count)
    back = " Some settings were not restored." if run.reason_code == "settings_not_restored" else ""
    return f"{live.done} of {live.total} trials done{others}{took}.{back}"


def _cancelled(run: Run, live: LiveRun) -> str:
    after = f" after {formatting.duration(live.elapsed_s)}" if run.started_at else " before it started"
    failed = f", {live.failed} failed" if live.failed else ""
    measured = f"{live.done} of {live.total} trials were measured{failed}; {live.cancelled} did not finish."
    return f"Cancelled{after}. {measured}"


def lasted(run: Run, state: RunProgress) -> str:
    """How long it has run without its pauses, and how long it has been paused or waiting."""
    ran = formatting.duration(state.elapsed_s - state.paused_s)
    if run.state == RunState.PAUSED and run.paused_at:
        paused = formatting.duration((timezone.now() - run.paused_at).total_seconds())
        return f"paused for {paused}" + (f", ran for {ran}" if run.started_at else "")
    return f"{'running' if run.started_at else 'waiting'} for {ran}"


def put_back_at(run: Run) -> datetime | None:
    """When the settings of a paused run were restored on all its hosts; None while they are kept."""
    last: dict[object, Attempt] = {}
    for attempt in run.attempts.exclude(kind=AttemptKind.CLOSE_RUN, state=AttemptState.LOST).order_by("sequence"):
        last[attempt.host_id] = attempt
    ends = [attempt.ended_at for attempt in last.values() if attempt.kind == AttemptKind.CLOSE_RUN]
    times = [end for end in ends if end is not None]
    return max(times) if last and len(times) == len(last) else None


@dataclass(frozen=True)
class SettingRow:
    """One setting of one device over the whole run."""

    name: str
    device: str  # "" for the host
    host: str
    before: str
    asked: tuple[str, ...]
    otherwise: tuple[str, ...]  # observed but not requested
    put_back: str  # as text
    trouble: bool


def setting_rows(run: Run) -> list[SettingRow]:
    """All settings that the run changed, by host, device and name."""
    changes = SettingChange.objects.filter(attempt__run=run).select_related("attempt__host").order_by("at", "id")
    groups: dict[tuple[str, str, str], list[SettingChange]] = {}
    for change in changes[:MAX_CHANGES]:
        groups.setdefault((change.attempt.host.slug, change.device, change.name), []).append(change)
    return [_setting_row(run, *key, found) for key, found in sorted(groups.items())]


def _setting_row(run: Run, host: str, device: str, name: str, found: Sequence[SettingChange]) -> SettingRow:
    made = [change for change in found if not change.restoring]
    backs = [change for change in found if change.restoring]
    words, trouble = _put_back(run, backs)
    return SettingRow(
        name=name,
        device=device,
        host=host,
        before=made[0].before if made else "",
        asked=tuple(dict.fromkeys(change.asked for change in made)),
        otherwise=tuple(dict.fromkeys(change.observed for change in made if change.observed != change.asked)),
        put_back=words,
        trouble=trouble,
    )


def _put_back(run: Run, backs: Sequence[SettingChange]) -> tuple[str, bool]:
    if not backs:
        return ("not yet", False) if run.ended_at is None else ("nothing to restore", False)
    last = backs[-1]
    if last.restored:
        return f"to {last.observed}", False
    return f"not restored: {last.note or 'no reason given'}", True


@dataclass(frozen=True)
class Observed:
    """An observed configuration with the engine's version, and the number of streams with both."""

    facts: dict[str, str]
    streams: int
    engine_version: str


def observed(run: Run) -> list[Observed]:
    """The configurations of the run, most frequent first."""
    streams = StreamRun.objects.filter(attempt__run=run, configuration__isnull=False).order_by()
    counted = streams.values_list("configuration", "engine_version").annotate(streams=Count("pk"))
    rows = list(counted.order_by("-streams", "configuration", "engine_version"))
    known = Configuration.objects.in_bulk([digest for digest, _, _ in rows])
    return [Observed(known[digest].facts, count, version) for digest, version, count in rows]
