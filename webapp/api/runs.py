"""Runs: list, start, wait for the end, act on them, and conclusions about one run."""

from datetime import datetime
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate

from webapp.analysis.reviews import answer_of
from webapp.analysis.run_answer import RunAnswer
from webapp.analysis.shares import Share, shares_of
from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged, json_of, schema_of
from webapp.core.errors import NotFound
from webapp.hosts.selectors import hosts_called, known_targets
from webapp.plans.selectors import version_of
from webapp.results.metrics import METRICS
from webapp.results.rounds import Tracked, tracked_points
from webapp.runs.actions.annotations import MAX_NOTE_LENGTH, add_note, delete_note
from webapp.runs.actions.run_actions import (
    MAX_REASON_LENGTH,
    arm_run,
    disarm_run,
    move_in_queue,
    pause_run,
    resume_run,
    run_again,
    skip_trials,
)
from webapp.runs.arming import ArmingState, arming_state
from webapp.runs.models import Note, Run, Trial
from webapp.runs.selectors import phase_sentence, progress, runs_list
from webapp.runs.services import StartOptions, cancel_run, start_run
from webapp.runs.states import ENDED_RUN_STATES

if TYPE_CHECKING:
    from webapp.analysis.searching import TargetSearch

# Conclusions about one run: the steady state over its rounds, and the shares of its streams.

# Runs: list, read, start, cancel.

# Waits for the end of a run inside a request.
#
# A waiting request occupies one of the few threads that run Django (`webapp.serving.worker`), so few may wait at a
# time.

MAX_WAIT_S = 30.0
MAX_WAITING = 2  # in each process
INTERVAL_S = 1.0
_places = BoundedSemaphore(MAX_WAITING)


def wait_for_end(number: int, seconds: float) -> None:
    """Return when the run has ended, after `seconds`, or at once if too many requests wait already."""
    if not _places.acquire(blocking=False):
        return
    try:
        end = monotonic() + seconds
        while _is_open(number) and (left := end - monotonic()) > 0:
            sleep(min(INTERVAL_S, left))
    finally:
        _places.release()


def _is_open(number: int) -> bool:
    return Run.objects.filter(number=number).exclude(state__in=ENDED_RUN_STATES).exists()


router = Router(tags=["runs"])
Seed = Field(None, ge=0, le=2**53)


class RunOut(Schema):
    """`schedule`: the id of the schedule that started it."""

    number: int
    plan: str
    version: int
    state: str
    trial_count: int
    done_count: int
    failed_count: int
    note: str
    schedule: int | None
    reason_code: str
    reason: str
    invalid_reason: str
    tags: list[str]
    created_by: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @staticmethod
    def resolve_plan(run: Run) -> str:
        return run.version.plan.slug

    @staticmethod
    def resolve_version(run: Run) -> int:
        return run.version.number

    @staticmethod
    def resolve_schedule(run: Run) -> int | None:
        occurrence = getattr(run, "occurrence", None)
        return occurrence.schedule_id if occurrence else None

    @staticmethod
    def resolve_created_by(run: Run) -> str | None:
        return run.created_by.username if run.created_by else None


class ProgressOut(Schema):
    """`running` is the number of the current trial; `seconds_left` is null if unknown: until a trial is done, and while
    a trial takes longer than those before it."""

    total: int
    done: int
    failed: int
    cancelled: int
    lost: int
    running: int | None
    phase: str
    elapsed_s: float
    seconds_left: float | None


class ArmingOut(Schema):
    """The arming of a run with destructive trials left. `until` null: disarmed. Not `holds`: it waits to be armed."""

    by: str
    until: datetime | None
    holds: bool
    drives: list[str]

    @staticmethod
    def resolve_drives(state: ArmingState) -> list[str]:
        return [str(target) for target in state.drives]


class RunnerUpOut(Schema):
    """Its value in the final rounds, divided by the best one's. All intervals hold together with 95 % probability."""

    point: dict[str, Any]
    ratio: float
    low: float
    high: float
    within: float


class EffectOut(Schema):
    """What one other level changes at the best combination: expected value divided by the best one's."""

    factor: str
    level: Any
    ratio: float
    low: float
    high: float


class SearchOut(Schema):
    """The search of a run on one target. Until its final rounds are done, the fields from `point` on are null, and the
    lists empty. `value` and `limited` in the stored units of their metrics."""

    target: str
    trials: int
    budget: int
    budget_s: int | None
    combinations: int
    point: dict[str, Any] | None = None
    value: float | None = None
    limited: float | None = None
    below: dict[str, Any] | None = None
    above: dict[str, Any] | None = None
    bound: float | None = None
    within: float | None = None
    noise: float | None = None
    runners_up: list[RunnerUpOut] = []
    effects: list[EffectOut] = []


def _searches(run: Run) -> list[SearchOut]:
    if run.budget is None:
        return []
    from webapp.analysis.searching import searches_of  # the search takes much memory, and few runs have one

    return [_search(each, run) for each in searches_of(run)]


def _search(search: "TargetSearch", run: Run) -> SearchOut:
    out = SearchOut(
        target=str(search.target), trials=len(search.trials), budget=search.search.budget,
        budget_s=run.budget_s, combinations=len(search.space.by_number),
    )  # fmt: skip
    if bracket := search.bracket:
        out.point, out.below, out.above = (
            None if number is None else dict(search.levels(number))
            for number in (bracket.point, bracket.below, bracket.above)
        )
        if bracket.point is not None:
            out.value, out.limited = bracket.value, search.limited_at(bracket.point)
    if conclusion := search.conclusion:
        out.point, out.value = search.levels(conclusion.point), conclusion.value
        out.limited, out.bound = search.limited_at(conclusion.point), conclusion.bound
        out.within, out.noise = conclusion.within, conclusion.noise
        out.runners_up = [
            RunnerUpOut(**vars(runner_up) | {"point": search.levels(runner_up.point)})
            for runner_up in conclusion.runners_up
        ]
        out.effects = [EffectOut(**vars(effect) | {"level": search.level(effect)}) for effect in conclusion.effects]
    return out


class RunDetail(RunOut):
    seed: int
    again_of: int | None
    paused_at: datetime | None
    targets: list[str]
    progress: ProgressOut
    arming: ArmingOut | None
    searches: list[SearchOut]

    @staticmethod
    def resolve_searches(run: Run) -> list[SearchOut]:
        return _searches(run)

    @staticmethod
    def resolve_arming(run: Run) -> ArmingState | None:
        return arming_state(run)

    @staticmethod
    def resolve_again_of(run: Run) -> int | None:
        """None also for a run that was deleted after `run` was read."""
        return Run.objects.filter(again=run).values_list("number", flat=True).first()

    @staticmethod
    def resolve_targets(run: Run) -> list[str]:
        return [str(target) for target in run.targets.select_related("host")]

    @staticmethod
    def resolve_progress(run: Run) -> dict[str, object]:
        run_progress = progress(run)
        plain = {
            name: getattr(run_progress, name) for name in ProgressOut.model_fields if name not in ("running", "phase")
        }
        return plain | {
            "running": run_progress.running.number if run_progress.running else None,
            "phase": phase_sentence(run_progress.attempt) if run_progress.attempt else "",
        }


class TrialOut(Schema):
    """`target` is host/target; for several at once host/first + second."""

    id: UUID
    run: int
    number: int  # in its run, from 1
    repeat: int
    batch: int | None
    source: str
    part: str
    target: str
    point: dict[str, Any]
    point_key: str
    state: str
    reason_code: str
    reason: str
    ended_at: datetime | None
    invalid_reason: str

    @staticmethod
    def resolve_run(trial: Trial) -> int:
        return trial.run.number

    @staticmethod
    def resolve_target(trial: Trial) -> str:
        return trial.place


class StartIn(Input):
    """`targets` are host/target; `armed_serials`: serial numbers of all devices and files that the plan overwrites.

    If you do not know whether a run was started, send the same `request_id` again: it starts only once.
    """

    plan: str
    version: int | None = None
    targets: list[str] = Field(min_length=1, max_length=100)
    armed_serials: list[str] = Field([], max_length=100)
    seed: int | None = Seed
    note: str = Field("", max_length=2000)
    request_id: UUID | None = None


RunStateName = Literal["queued", "running", "paused", "closing", "done", "failed", "cancelled"]
TrialStateName = Literal["planned", "dispatched", "accepted", "running", "done", "failed", "cancelled", "lost"]


def run_with(number: int) -> Run:
    """The run with the counts of a list. Raises Refusal run_unknown."""
    run = runs_list().filter(number=number).first()
    if run is None:
        raise NotFound("run_unknown", f"There is no run {number}.")
    return run


@router.get("/runs", response=list[RunOut])
@paginate(Paged)
def runs(
    request: HttpRequest, plan: str = "", host: str = "", state: RunStateName | None = None, schedule: int | None = None
) -> QuerySet[Run]:
    """Runs, latest first. `schedule`: only runs started by that schedule."""
    runs = runs_list()
    if schedule is not None:
        runs = runs.filter(occurrence__schedule=schedule)
    if plan:
        runs = runs.filter(version__plan__slug=plan)
    if host:
        runs = runs.filter(pk__in=Run.objects.filter(targets__host__in=hosts_called([host])).values("pk"))
    return runs.filter(state=state) if state else runs


@router.post("/runs", response={201: RunDetail}, auth=OPERATORS)
def new_run(request: HttpRequest, payload: StartIn) -> Status[Run]:
    """Start a plan on targets. The run is queued behind earlier runs of the same hosts."""
    person = operator(request)
    run = start_run(
        version=version_of(payload.plan, payload.version),
        targets=known_targets(payload.targets),
        by=person,
        armed=payload.armed_serials,
        seed=payload.seed,
        note=payload.note,
        options=StartOptions(request_id=payload.request_id),
    )
    return Status(201, run_with(run.number))


@router.get("/runs/{number}", response=RunDetail)
def run(request: HttpRequest, number: int) -> Run:
    """A run with its progress."""
    return run_with(number)


@router.get("/runs/{number}/wait", response=RunDetail)
def wait(request: HttpRequest, number: int, seconds: Annotated[float, Field(ge=0, le=MAX_WAIT_S)] = MAX_WAIT_S) -> Run:
    """The run, as soon as it has ended, at the latest after `seconds`. Ask again until it is done, failed or cancelled.

    The server keeps few such requests open at a time and answers others at once: ask at most every two seconds.
    """
    run_with(number)
    wait_for_end(number, seconds)
    return run_with(number)


@router.post("/runs/{number}/cancel", response=RunDetail, auth=OPERATORS)
def cancel(request: HttpRequest, number: int) -> Run:
    """Cancel a run: planned trials are cancelled, running ones stopped, settings restored. Safe to repeat."""
    cancel_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.get("/runs/{number}/trials", response=list[TrialOut])
@paginate(Paged)
def trials(request: HttpRequest, number: int, state: TrialStateName | None = None) -> QuerySet[Trial]:
    """Trials in the order of execution."""
    trials = Trial.objects.filter(run=run_with(number)).select_related("run", "target__host").order_by("index")
    trials = trials.prefetch_related("further")
    return trials.filter(state=state) if state else trials


class RoundsOut(Schema):
    """A tracked point of a part with `rounds until steady`. Range and change are of the bandwidth over the last five
    rounds, in percent of its mean. `steady`, `range_percent` and `change_percent` are null unless the last five rounds
    are complete."""

    part: str
    target: str
    point: dict[str, Any]
    rounds: int
    steady: bool | None
    range_percent: float | None
    change_percent: float | None

    @staticmethod
    def resolve_target(tracked: Tracked) -> str:
        return tracked.trial.place

    @staticmethod
    def resolve_rounds(tracked: Tracked) -> int:
        return tracked.count

    @staticmethod
    def resolve_steady(tracked: Tracked) -> bool | None:
        return tracked.verdict.steady if tracked.verdict else None

    @staticmethod
    def resolve_range_percent(tracked: Tracked) -> float | None:
        return tracked.verdict.range_percent if tracked.verdict else None

    @staticmethod
    def resolve_change_percent(tracked: Tracked) -> float | None:
        return tracked.verdict.change_percent if tracked.verdict else None


class ShareOut(Schema):
    """The IOPS of a stream beside others, divided by its IOPS alone; for several `streams`, the ratio of their sums.

    `metric` is `iops`, or the default metric of the engine for results without IOPS.

    `ratio` is the geometric mean over `n` repeats, `low` and `high` its 95 % interval. Without a ratio, `why_not` is
    the reason. `cautions` are reasons to doubt it.
    """

    streams: tuple[str, ...]
    targets: tuple[str, ...]
    point: dict[str, Any]
    direction: str
    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    n: int
    why_not: str
    cautions: tuple[str, ...]

    @staticmethod
    def resolve_metric(share: Share) -> str:
        return share.metric.key

    @staticmethod
    def resolve_ratio(share: Share) -> float | None:
        return share.ratio.value if share.ratio else None

    @staticmethod
    def resolve_low(share: Share) -> float | None:
        return share.ratio.low if share.ratio else None

    @staticmethod
    def resolve_high(share: Share) -> float | None:
        return share.ratio.high if share.ratio else None


@router.get("/runs/{number}/answer", response=schema_of(RunAnswer))
def answer(request: HttpRequest, number: int) -> HttpResponse:
    """The headline of the run, its findings, and what each factor does that its plan varies. Of an open
    run, for the trials that are done."""
    return json_of(answer_of(run_with(number)))


@router.get("/runs/{number}/rounds", response=list[RoundsOut])
def rounds(request: HttpRequest, number: int) -> list[Tracked]:
    """Whether the tracked points of the run's rounds are steady. Empty if its plan has no rounds."""
    return tracked_points(run_with(number))


@router.get("/runs/{number}/shares", response=list[ShareOut])
def shares(request: HttpRequest, number: int) -> list[Share]:
    """The share of its speed alone that each stream keeps beside others. Empty without named streams."""
    return shares_of(run_with(number), METRICS["iops"])


class SkipIn(Input):
    """`trials` are numbers of trials."""

    trials: list[int] = Field(min_length=1, max_length=10_000)
    reason: str = Field("", max_length=MAX_REASON_LENGTH)


class ArmIn(Input):
    serials: list[str] = Field(min_length=1, max_length=100)


class QueueMoveIn(Input):
    """The number of the run before or after which to move; exactly one of them."""

    before: int | None = None
    after: int | None = None


class AgainIn(Input):
    """If you do not know whether a run was started, send the same `request_id` again: it starts only once."""

    same_seed: bool = False
    only_failed: bool = False
    armed_serials: list[str] = Field([], max_length=100)
    note: str = Field("", max_length=2000)
    request_id: UUID | None = None


class NoteIn(Input):
    """`trial` is the number of a trial; null: about the run."""

    text: str = Field(max_length=MAX_NOTE_LENGTH)
    trial: int | None = None


class NoteOut(Schema):
    id: int
    trial: int | None
    text: str
    by: str | None
    at: datetime

    @staticmethod
    def resolve_trial(note: Note) -> int | None:
        return note.trial.number if note.trial else None

    @staticmethod
    def resolve_by(note: Note) -> str | None:
        return note.by.username if note.by else None


@router.post("/runs/{number}/pause", response=RunDetail, auth=OPERATORS)
def pause(request: HttpRequest, number: int) -> Run:
    """Pause a run: no new trial is sent, the current one continues to its end. Safe to repeat."""
    pause_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/resume", response=RunDetail, auth=OPERATORS)
def resume(request: HttpRequest, number: int) -> Run:
    """Resume a paused run. Safe to repeat."""
    resume_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/skip", response=RunDetail, auth=OPERATORS)
def skip(request: HttpRequest, number: int, payload: SkipIn) -> Run:
    """Skip trials: planned ones do not start, running ones are stopped. Safe to repeat."""
    skip_trials(run=run_with(number), numbers=payload.trials, reason=payload.reason, by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/arm", response=RunDetail, auth=OPERATORS)
def arm(request: HttpRequest, number: int, payload: ArmIn) -> Run:
    """Arm a waiting run again."""
    arm_run(run=run_with(number), serials=payload.serials, by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/disarm", response=RunDetail, auth=OPERATORS)
def disarm(request: HttpRequest, number: int) -> Run:
    """Disarm a run: it overwrites nothing until it is armed again; the current trial continues. Safe to repeat."""
    disarm_run(run=run_with(number), by=operator(request))
    return run_with(number)


@router.post("/runs/{number}/again", response={201: RunDetail}, auth=OPERATORS)
def again(request: HttpRequest, number: int, payload: AgainIn) -> Status[Run]:
    """Start the same plan version on the same targets again, all trials or only failed ones."""
    run = run_again(
        run=run_with(number), by=operator(request), same_seed=payload.same_seed, only_failed=payload.only_failed,
        armed=payload.armed_serials, note=payload.note, request_id=payload.request_id,
    )  # fmt: skip
    return Status(201, run_with(run.number))


@router.get("/queue", response=list[RunOut])
def queue(request: HttpRequest) -> QuerySet[Run]:
    """Open runs in queue order."""
    return runs_list().filter(queue_position__isnull=False).order_by("queue_position")


@router.post("/queue/{number}", response=RunOut, auth=OPERATORS)
def move(request: HttpRequest, number: int, payload: QueueMoveIn) -> Run:
    """Move a run directly before or after another one. Safe to repeat."""
    person = operator(request)
    before = None if payload.before is None else run_with(payload.before)
    after = None if payload.after is None else run_with(payload.after)
    move_in_queue(run=run_with(number), before=before, after=after, by=person)
    return run_with(number)


@router.get("/runs/{number}/notes", response=list[NoteOut])
def notes(request: HttpRequest, number: int) -> QuerySet[Note]:
    """Notes of the run and its trials, oldest first."""
    return run_with(number).notes.select_related("trial", "by")


@router.post("/runs/{number}/notes", response={201: NoteOut}, auth=OPERATORS)
def new_note(request: HttpRequest, number: int, payload: NoteIn) -> Status[Note]:
    """Add a note. If the same person repeats the last note, no second note is added."""
    person, run = operator(request), run_with(number)
    trial = None if payload.trial is None else _trial(run, payload.trial)
    return Status(201, add_note(run=run, trial=trial, text=payload.text, by=person))


@router.delete("/runs/{number}/notes/{note_id}", response={204: None}, auth=OPERATORS)
def no_note(request: HttpRequest, number: int, note_id: int) -> Status[None]:
    """Delete a note. Safe to repeat."""
    delete_note(run=run_with(number), note_id=note_id, by=operator(request))
    return Status(204, None)


def _trial(run: Run, number: int) -> Trial:
    trial = run.trials.numbered(number).first()
    if trial is None:
        raise NotFound("trial_unknown", f"Run {run.number} has no trial {number}.")
    return trial
