"""The live page of a run: changes since a cursor, sections that change when a trial ends, and a summary."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from webapp.core import formatting
from webapp.core.errors import Refusal, read_number
from webapp.plans.engines import engine_of
from webapp.plans.points import number_of
from webapp.results.metrics import METRICS
from webapp.results.models import NO_IO, WITHOUT_BYTES, Configuration, Result, Sample, StreamRun
from webapp.results.reading.content import POINTS
from webapp.results.reading.rows import stream_direction
from webapp.results.selectors import kernel_lines_of
from webapp.results.validity import marks_changed
from webapp.runs.models import (
    ACTIVE_ATTEMPT_STATES,
    OPEN_RUN_STATES,
    Attempt,
    AttemptKind,
    AttemptState,
    Run,
    RunState,
    SettingChange,
    Trial,
    TrialState,
)
from webapp.runs.reasons import sentence
from webapp.runs.selectors import RunProgress, progress
from webapp.runs.states import ENDED_RUN_STATES
from webapp.screens import point_words
from webapp.screens.access import page
from webapp.screens.hosts.presence import phase_words, quiet_for
from webapp.screens.payloads import LiveCell, LiveNow, LiveRun, LiveSample, LiveValue, Marks
from webapp.screens.runs.pictures import Seconds, seconds_response
from webapp.screens.runs.search import search_views
from webapp.screens.runs.telemetry import Lines, lines_of, live_sensors
from webapp.screens.runs.wear import wear_rows
from worker.contract.items import Direction

# Changes in a run since a cursor: the payload of its live page.
#
# A host runs one attempt after the other, and seconds are committed in order. So the cursor has, for each host, the
# newest attempt and the last offset of each of its streams; it does not depend on the worker's clock. State changes
# are found by time with an overlap, because a transaction may commit after one that started later. Sending a state
# twice is harmless. Up-to-date readers have the same cursor, so they share one answer (see `shared`).
#
# Samples have the worker's time. If its clock is wrong by more than the usual delay of a report, the smallest offset
# between sending and receipt corrects it on the axis.

# Summary of a run: the outcome of its trials, its settings and configurations.

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
    if live.done == live.total and run.state == RunState.DONE:  # its badge says that it is done
        return f"{live.total} {'trial' if live.total == 1 else 'trials'}{took}.{back}"
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
    return [_setting_row(run, *key, of_setting) for key, of_setting in sorted(groups.items())]


def _setting_row(run: Run, host: str, device: str, name: str, changes: Sequence[SettingChange]) -> SettingRow:
    made = [change for change in changes if not change.restoring]
    words, trouble = _put_back(run, [change for change in changes if change.restoring])
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


def _put_back(run: Run, restorations: Sequence[SettingChange]) -> tuple[str, bool]:
    if not restorations:
        return ("not yet" if run.ended_at is None else "nothing to restore"), False
    last = restorations[-1]
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
    configurations = Configuration.objects.in_bulk([digest for digest, _, _ in rows])
    return [Observed(configurations[digest].facts, count, version) for digest, version, count in rows]


SAMPLES_AT_ONCE = 3_000
SAMPLES_AT_FIRST = 12_000  # history on a page that is opened late
ATTEMPTS_AT_ONCE = 50
OVERLAP = timedelta(seconds=30)
WRONG_CLOCK_MS = 1_500  # a smaller offset is the delay of a report
MAX_TIME_MS = 250_000_000_000_000  # the year 9892: with the overlap, within Python's years
MAX_STREAM = 2**15 - 1
NOT_RUN = ("run_cancelled", "run_cancelled_before")  # the run says so itself: no problem of the trial


class BadCursor(ValueError):
    """Not a cursor of this server."""


@dataclass(frozen=True)
class Position:
    """The offset of the last sample of one stream that the reader has."""

    attempt: UUID
    stream: int
    offset_ms: int


@dataclass(frozen=True)
class Cursor:
    transitions_until: datetime | None = None
    positions: tuple[Position, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Cursor":
        if not text:
            return cls()
        try:
            positions, _, until_ms = text.rpartition("@")
            parts = [part.split(".") for part in positions.split(",") if part]
            return cls(
                datetime.fromtimestamp(read_number("time", until_ms, high=MAX_TIME_MS) / 1000, UTC),
                tuple(
                    Position(UUID(hex=attempt), read_number("stream", stream, high=MAX_STREAM), _offset_ms(offset))
                    for attempt, stream, offset in parts
                ),
            )
        except (ValueError, Refusal) as error:
            raise BadCursor("The cursor is not valid. Reload the page.") from error

    def write(self) -> str:
        until_ms = int((self.transitions_until or timezone.now()).timestamp() * 1000)
        return f"{','.join(f'{p.attempt.hex}.{p.stream}.{p.offset_ms}' for p in self.positions)}@{until_ms}"


def _offset_ms(text: str) -> int:
    """Raises Refusal."""
    return read_number("offset", text, high=2**31 - 1)


def live_run(run: Run, after: str = "", *, with_trials: bool = True) -> LiveRun:
    """State, and the cells and samples after a cursor. Raises BadCursor."""
    cursor = Cursor.read(after)
    transitions_until = _transitions_until(run)
    rows, more = _new_samples(run, cursor) if with_trials else ([], False)
    state = progress(run)
    lines, active = lines_of(rows), _active(run)
    unheard = any(quiet_for(attempt.host, attempt) for attempt in active)
    seconds_left = None if unheard else state.seconds_left
    return LiveRun(
        number=run.number,
        state=run.state,
        state_label=run.get_state_display(),
        ended=run.state in ENDED_RUN_STATES,
        total=state.total,
        done=state.done,
        failed=state.failed,
        cancelled=state.cancelled,
        lost=state.lost,
        progress=_progress(run, state),
        heading=_heading(run, state, seconds_left),
        elapsed_s=state.elapsed_s,
        lasted=lasted(run, state),
        seconds_left=seconds_left,
        now=_now(active),
        cells=_cells(run, cursor) if with_trials else (),
        samples=live_samples(rows, run.started_at or run.created_at, lines),
        sensors=live_sensors(rows, lines),
        cursor=Cursor(transitions_until, _positions(cursor, rows)).write(),
        more=more,
    )


def _heading(run: Run, state: RunProgress, seconds_left: float | None) -> str:
    ended = f"{_progress(run, state)} of {state.total} trials"
    match run.state:
        case RunState.QUEUED:
            return f"{state.total} {'trial waits' if state.total == 1 else 'trials wait'} to start"
        case RunState.PAUSED:
            return f"Paused after {ended}"
        case RunState.CLOSING:
            return f"{ended}, restoring settings"
    return f"{ended}, {formatting.duration(seconds_left)} left" if seconds_left else ended


def _progress(run: Run, state: RunProgress) -> int:
    """A run that was cancelled early is not shown as complete: trials that did not run do not count."""
    return state.done + state.failed + (0 if run.state in ENDED_RUN_STATES else state.cancelled)


def _unseen_attempts(run: Run, cursor: Cursor) -> list[Attempt]:
    """Attempts that may have seconds after the cursor, in order of creation."""
    attempts = Attempt.objects.filter(run=run, kind=AttemptKind.TRIAL)
    seen = Attempt.objects.in_bulk([position.attempt for position in cursor.positions])
    for attempt in seen.values():
        attempts = attempts.exclude(host=attempt.host_id, sequence__lt=attempt.sequence)
    ordered = attempts.select_related("trial", "host").order_by("sequence")
    return list(ordered) if seen else _latest_attempts(ordered)


def _latest_attempts(ordered: QuerySet[Attempt]) -> list[Attempt]:
    """The latest attempts that together have SAMPLES_AT_FIRST samples."""
    newest, latest, samples = ordered.reverse(), list[Attempt](), 0
    while samples < SAMPLES_AT_FIRST:
        more = list(newest[len(latest) : len(latest) + ATTEMPTS_AT_ONCE])
        latest += more
        samples += Sample.objects.filter(attempt__in=more).count()
        if len(more) < ATTEMPTS_AT_ONCE:
            break
    return latest[::-1]


def _after(attempts: Sequence[Attempt], cursor: Cursor) -> Q:
    """Conditions for the primary key: unread attempts, and the unread seconds of other attempts."""
    positions: dict[UUID, list[Position]] = {}
    for position in cursor.positions:
        positions.setdefault(position.attempt, []).append(position)
    after = Q(attempt__in=[attempt.pk for attempt in attempts if attempt.pk not in positions])
    for attempt_id, streams in positions.items():
        for position in streams:
            after |= Q(attempt=attempt_id, stream=position.stream, offset_ms__gt=position.offset_ms)
        after |= Q(attempt=attempt_id) & ~Q(stream__in=[position.stream for position in streams])
    return after


def _new_samples(run: Run, cursor: Cursor) -> tuple[list[Sample], bool]:
    """At most SAMPLES_AT_ONCE rows, whole seconds only, and whether there are more."""
    attempts = _unseen_attempts(run, cursor)
    attempt_by_id = {attempt.pk: attempt for attempt in attempts}
    unseen = Sample.objects.filter(_after(attempts, cursor), attempt__in=attempt_by_id).defer("latency")
    unseen = unseen.order_by("attempt__sequence", "offset_ms", "stream", "direction")
    start = 0 if cursor.positions else max(0, unseen.count() - SAMPLES_AT_FIRST)
    rows = list(unseen[start : start + SAMPLES_AT_ONCE + 1])
    for row in rows:
        row.attempt = attempt_by_id[row.attempt_id]
    if len(rows) <= SAMPLES_AT_ONCE:
        return rows, False
    cut = rows[-1]
    return [row for row in rows if (row.attempt_id, row.offset_ms) != (cut.attempt_id, cut.offset_ms)], True


def latest_samples(run: Run) -> list[Sample]:
    """Those of a page that is opened now."""
    rows, cursor, more = list[Sample](), Cursor(), True
    while more:
        new, more = _new_samples(run, cursor)
        rows += new
        cursor = Cursor(positions=_positions(cursor, new))
    return rows


def _positions(cursor: Cursor, rows: Iterable[Sample]) -> tuple[Position, ...]:
    """The new cursor: for each host the newest attempt and the last offset of each of its streams."""
    newest: dict[UUID, UUID] = {}
    last: dict[tuple[UUID, int], int] = {(p.attempt, p.stream): p.offset_ms for p in cursor.positions}
    for row in rows:
        newest[row.attempt.host_id] = row.attempt_id
        last[row.attempt_id, row.stream] = row.offset_ms
    if not newest:
        return cursor.positions
    hosts = dict(Attempt.objects.filter(id__in={attempt for attempt, _ in last}).values_list("id", "host_id"))
    return tuple(
        Position(attempt, stream, offset_ms)
        for (attempt, stream), offset_ms in last.items()
        if attempt in hosts and newest.get(hosts[attempt], attempt) == attempt
    )


def _transitions_until(run: Run) -> datetime:
    """The last transition, or the current half minute: the same for all readers, so that they have the same cursor."""
    half_minute = datetime.fromtimestamp(int(timezone.now().timestamp()) // 30 * 30, UTC)
    last: datetime | None = run.transitions.order_by("-at").values_list("at", flat=True).first()
    return max(half_minute, last) if last else half_minute


def live_samples(rows: Iterable[Sample], began: datetime, lines: Mapping[UUID, Lines]) -> tuple[LiveSample, ...]:
    """Samples for the charts, with times since `began`."""
    return tuple(_live_sample(row, began, lines.get(row.attempt_id)) for row in rows if row.attempt.trial is not None)


def shown_at(row: Sample) -> datetime:
    """The end of the second by the server's clock, if its offset is known."""
    offset_ms = row.attempt.clock_offset_ms or 0
    return row.at + timedelta(milliseconds=offset_ms) if abs(offset_ms) > WRONG_CLOCK_MS else row.at


def _live_sample(row: Sample, began: datetime, lines: Lines | None) -> LiveSample:
    seconds = row.length_ms / 1000
    return LiveSample(
        host=row.attempt.host.slug,
        trial=row.attempt.trial.number if row.attempt.trial else 0,
        attempt=row.attempt.number,
        stream=row.stream,
        stream_name=next(iter(row.attempt.trial.stream_names[row.stream :]), "") if row.attempt.trial else "",
        offset_ms=row.offset_ms,
        length_ms=row.length_ms,
        estimated=row.estimated,
        at_s=round((shown_at(row) - began).total_seconds(), 3),
        direction=row.direction,
        iops=None if row.direction in (NO_IO, Direction.RESYNC) else row.ios / seconds,
        bytes_per_s=None if row.direction in WITHOUT_BYTES else row.bytes / seconds,
        p50_ns=row.p50_ns,
        p99_ns=row.p99_ns,
        p999_ns=row.p999_ns,
        queue_depth=row.queue_depth,
        utilisation_percent=row.utilisation_percent,
        telemetry=lines.values(row.telemetry) if lines else (),
    )


def _active(run: Run) -> list[Attempt]:
    """The running trials' attempts, at most one per host."""
    active = Attempt.objects.filter(run=run, kind=AttemptKind.TRIAL, state__in=ACTIVE_ATTEMPT_STATES)
    return list(active.select_related("host", "trial__target").order_by("host__slug"))


def _now(active: Iterable[Attempt]) -> tuple[LiveNow, ...]:
    return tuple(
        LiveNow(
            host=attempt.host.slug,
            target=attempt.trial.target_names,
            trial=attempt.trial.number,
            attempt=attempt.number,
            point=point_words.in_words(attempt.trial.point),
            phase=phase_words(attempt),
        )
        for attempt in active
        if attempt.trial is not None
    )


def _cells(run: Run, cursor: Cursor) -> tuple[LiveCell, ...]:
    trials = Trial.objects.filter(run=run)
    if cursor.transitions_until is not None:
        moved = Q(transitions__at__gt=cursor.transitions_until - OVERLAP)
        trials = trials.filter(moved).distinct()
    return live_cells(trials.order_by("index"))


def _live_values(results: QuerySet[Result]) -> dict[int, list[LiveValue]]:
    """The values of each trial, by the index of the trial. Two queries, of only the needed columns, to save time."""
    columns = (
        "trial__index", "id", "point_key", "direction", "iops", "bytes_per_s", "latency_mean_ns", "p99_ns", "metrics",
    )  # fmt: skip
    rows = list(results.values_list(*columns))
    point_by_key = POINTS.get({key: id_ for _, id_, key, *_ in rows})
    values: dict[int, list[LiveValue]] = {}
    for index, _, key, direction, iops, bytes_per_s, mean_ns, p99_ns, metrics in rows:
        metric = METRICS[engine_of(point_by_key[key]).DEFAULT_METRIC]
        engine_value = None if metric.column else metrics.get(metric.key)
        value = LiveValue(
            direction=stream_direction(point_by_key[key], direction), iops=iops, bytes_per_s=bytes_per_s,
            mean_ns=mean_ns, p99_ns=p99_ns, own=engine_value,
            own_text="" if engine_value is None else metric.format(engine_value),
        )  # fmt: skip
        values.setdefault(index, []).append(value)
    return values


def live_cells(trials: QuerySet[Trial]) -> tuple[LiveCell, ...]:
    """Cells of the trials of one run, with the results of finished trials."""
    these = trials.order_by().values("pk")
    results = Result.objects.filter(trial__in=these).order_by("stream_run__stream", "direction")
    values = _live_values(results)
    kernel_lines, labels = kernel_lines_of(these), dict(TrialState.choices)
    columns = (
        "pk", "index", "state", "invalid_reason", "run__invalid_reason", "reason_code", "reason_fields",
        "skipped_by__username",
    )  # fmt: skip
    return tuple(
        LiveCell(
            trial=number_of(index),
            state=state,
            state_label=labels[state],
            reason="" if code in NOT_RUN else sentence(code, fields, skipped_by or ""),
            invalid=why or run_why,
            kernel_lines=kernel_lines.get(pk, 0),
            values=tuple(values.get(index, ())),
        )
        for pk, index, state, why, run_why, code, fields, skipped_by in trials.values_list(*columns)
    )


# One answer for simultaneous identical requests, so that fifty viewers of a run cost about as much as one.
#
# Answers are kept in this process for SHARED_S. The first request computes the answer; the others wait for it.

SHARED_S = 0.25  # maximum age of an answer; viewers see data this much later
MAX_KEPT = 500


@dataclass
class _Answer:
    lock: threading.Lock = field(default_factory=threading.Lock)
    body: bytes | None = None
    made_at: float = 0.0

    def fresh(self) -> bool:
        return self.body is not None and time.monotonic() - self.made_at < SHARED_S


class SharedAnswers:
    """Thread-safe."""

    def __init__(self) -> None:
        self._answers: dict[object, _Answer] = {}
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], bytes]) -> bytes:
        """The answer for `key`, computed unless there is a fresh one. Raises the exceptions of `make`."""
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                self._drop_stale()
                answer = self._answers[key] = _Answer()
        with answer.lock:
            if not answer.fresh() or answer.body is None:
                # before `make`: later commits belong to the next answer
                answer.made_at = time.monotonic()
                answer.body = make()
            return answer.body

    def _drop_stale(self) -> None:
        if len(self._answers) >= MAX_KEPT:
            self._answers = {
                key: answer for key, answer in self._answers.items() if answer.lock.locked() or answer.fresh()
            }


_answers = SharedAnswers()


@never_cache
@page
def live(request: HttpRequest, number: int) -> HttpResponse:
    run = get_object_or_404(Run, number=number)
    after = request.GET.get("after", "")
    try:
        body = _answers.get((run.pk, after), lambda: msgspec.json.encode(live_run(run, after)))
    except BadCursor as error:
        return JsonResponse({"code": "bad_cursor", "message": str(error)}, status=422)
    return HttpResponse(body, content_type="application/json")


@never_cache
@page
def samples_picture(request: HttpRequest, number: int) -> HttpResponse:
    """SVG of what a page shows that is opened now."""
    run = get_object_or_404(Run.objects.select_related("version__plan"), number=number)
    rows = latest_samples(run)
    lines = lines_of(rows)
    seconds = Seconds(live_samples(rows, run.started_at or run.created_at, lines), live_sensors(rows, lines))
    title, note = f"Run {run.number}: {run.version.plan.title}", "Time: min:s since the run began."
    return seconds_response(seconds, title, note, request)


@never_cache
@page
def wear(request: HttpRequest, number: int) -> HttpResponse:
    """The section about bytes written to drives; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"wear_rows": wear_rows(run), "open": run.state in OPEN_RUN_STATES}
    return render(request, "screens/parts/wear.html", context)


@never_cache
@page
def searches(request: HttpRequest, number: int) -> HttpResponse:
    """The sections about a search; the page fetches them again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    return render(request, "screens/parts/run_searches.html", {"run": run, "searches": search_views(run)})


@never_cache
@page
def settings(request: HttpRequest, number: int) -> HttpResponse:
    """The section about settings and configuration; the page fetches it again when a trial has ended."""
    run = get_object_or_404(Run, number=number)
    context = {"run": run, "setting_rows": setting_rows(run), "observed": observed(run)}
    return render(request, "screens/parts/run_settings.html", context)


@never_cache
@page
def marks(request: HttpRequest) -> HttpResponse:
    """The number of validity changes in `?run=17`, or in all runs."""
    counted_marks = Marks(count=marks_changed(request.GET.get("run", "")[:60]))
    return HttpResponse(msgspec.json.encode(counted_marks), content_type="application/json")
