"""Schedules and their past due times."""

from datetime import date, datetime, time
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Router, Schema, Status
from ninja.pagination import paginate
from pydantic import AwareDatetime

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import Input, Paged
from webapp.api.runs import run_with
from webapp.core.errors import FIRST_YEAR, LAST_YEAR, NotFound, Refusal
from webapp.hosts.selectors import known_group, known_targets
from webapp.plans.selectors import version_of
from webapp.runs.models import Priority
from webapp.schedules import arming, services
from webapp.schedules.models import (
    AtDeadline,
    Condition,
    GroupOrder,
    Occurrence,
    Overlap,
    Schedule,
    Trigger,
)
from webapp.schedules.selectors import all_targets, schedules_list, state_of
from webapp.schedules.services import MAX_NAME, MAX_NOTE, MAX_TARGETS, ScheduleSpec, Window, drafted
from webapp.schedules.timing import MAX_EXCEPT_DAYS, outlook, trigger_in_words, window_of

# Schedules: list, read, save, arm, switch on and off, delete.

router = Router(tags=["schedules"])
PriorityName = Literal["low", "normal", "high"]
ScheduleStateName = Literal["on", "finished", "off", "deleted"]


class ScheduleWindowIn(Input):
    """Weekly, in the schedule's time zone; `days` from 0 (Monday) to 6. Times as 22:00."""

    days: list[int] = Field(max_length=7)
    opens: time
    closes: time


class ScheduleIn(Input):
    """`targets` are host/target, or `group` is the slug of a host group. Limits are in seconds from the due time.

    Fields of other triggers are ignored: `once_at` for once, `cron` for cron, `after_schedule` (id) and
    `after_run` (number) for the others. `first_day`, `last_day` and `except_days` belong to cron.
    """

    name: str = Field(max_length=MAX_NAME)
    plan: str
    version: int | None = None
    targets: list[str] = Field([], max_length=MAX_TARGETS)
    group: str = ""
    group_order: GroupOrder = GroupOrder.SIDE_BY_SIDE
    trigger: Trigger
    once_at: datetime | None = None
    cron: str = Field("", max_length=100)
    time_zone: str = Field("UTC", max_length=64)
    first_day: date | None = None
    last_day: date | None = None
    except_days: list[date] = Field([], max_length=MAX_EXCEPT_DAYS)
    after_schedule: int | None = None
    after_run: int | None = None
    condition: Condition = Condition.DONE
    window: ScheduleWindowIn | None = None
    start_within_s: int = 3600
    deadline_s: int | None = None
    at_deadline: AtDeadline = AtDeadline.NOTIFY
    overlap: Overlap = Overlap.SKIP
    priority: PriorityName = "normal"
    note: str = Field("", max_length=MAX_NOTE)


class ScheduleWindowOut(Schema):
    days: list[int]
    opens: time
    closes: time


class ArmedOut(Schema):
    by: str | None
    until: datetime
    serials: list[str]


class ScheduleOut(Schema):
    """`when` is the trigger in words. `off_reason`: why it was switched off automatically.

    `state`: `finished` means switched on, due once, and its run has ended.
    """

    id: int
    name: str
    owner: str
    plan: str
    version: int
    targets: list[str]
    group: str
    group_order: str
    trigger: str
    when: str
    once_at: datetime | None
    cron: str
    time_zone: str
    first_day: date | None
    last_day: date | None
    except_days: list[date]
    paused_until: datetime | None
    after_schedule: int | None
    after_run: int | None
    condition: str
    window: ScheduleWindowOut | None
    start_within_s: int
    deadline_s: int | None
    at_deadline: str
    overlap: str
    priority: str
    note: str
    enabled: bool
    state: ScheduleStateName
    off_reason: str
    next_due_at: datetime | None
    deleted_at: datetime | None
    armed: ArmedOut | None

    @staticmethod
    def resolve_owner(schedule: Schedule) -> str:
        return schedule.owner.username

    @staticmethod
    def resolve_plan(schedule: Schedule) -> str:
        return schedule.version.plan.slug

    @staticmethod
    def resolve_version(schedule: Schedule) -> int:
        return schedule.version.number

    @staticmethod
    def resolve_targets(schedule: Schedule) -> list[str]:
        return [str(target) for target in all_targets(schedule)]

    @staticmethod
    def resolve_group(schedule: Schedule) -> str:
        return schedule.group.slug if schedule.group else ""

    @staticmethod
    def resolve_when(schedule: Schedule) -> str:
        return trigger_in_words(schedule)

    @staticmethod
    def resolve_after_schedule(schedule: Schedule) -> int | None:
        return schedule.after_schedule_id

    @staticmethod
    def resolve_after_run(schedule: Schedule) -> int | None:
        return schedule.after_run.number if schedule.after_run else None

    @staticmethod
    def resolve_state(schedule: Schedule) -> str:
        return state_of(schedule)

    @staticmethod
    def resolve_window(schedule: Schedule) -> Window | None:
        window = window_of(schedule)
        return Window(window.days, window.opens, window.closes) if window else None

    @staticmethod
    def resolve_priority(schedule: Schedule) -> str:
        return Priority(schedule.priority).name.lower()

    @staticmethod
    def resolve_armed(schedule: Schedule) -> dict[str, object] | None:
        if schedule.armed_until is None:
            return None
        by = schedule.armed_by.username if schedule.armed_by else None
        return {"by": by, "until": schedule.armed_until, "serials": schedule.armed_serials}


class OutlookOut(Schema):
    """The trigger in words, the next five due times, and the serials of drives that would be overwritten."""

    when: str
    due: list[datetime]
    overwrites: list[str]


class PauseIn(Input):
    until: datetime


class ArmScheduleIn(Input):
    serials: list[str] = Field(min_length=1, max_length=MAX_TARGETS)
    until: datetime


def schedule_with(key: int) -> Schedule:
    """Raises Refusal schedule_unknown."""
    schedule = schedules_list(deleted=True).filter(pk=key).first()
    if schedule is None:
        raise NotFound("schedule_unknown", f"There is no schedule {key}.")
    return schedule


def _spec(payload: ScheduleIn) -> ScheduleSpec:
    """Look up the named objects. Raises Refusal for unknown names."""
    window = payload.window
    return ScheduleSpec(
        name=payload.name,
        version=version_of(payload.plan, payload.version),
        targets=known_targets(payload.targets),
        group=known_group(payload.group) if payload.group else None,
        group_order=payload.group_order,
        trigger=payload.trigger,
        once_at=_aware(payload.once_at) if payload.once_at else None,
        cron=payload.cron,
        time_zone=payload.time_zone,
        after_schedule=schedule_with(payload.after_schedule) if payload.after_schedule is not None else None,
        after_run=run_with(payload.after_run) if payload.after_run is not None else None,
        condition=payload.condition,
        window=Window(tuple(window.days), window.opens, window.closes) if window else None,
        start_within_s=payload.start_within_s,
        deadline_s=payload.deadline_s,
        at_deadline=payload.at_deadline,
        overlap=payload.overlap,
        priority=Priority[payload.priority.upper()],
        note=payload.note,
        first_day=payload.first_day,
        last_day=payload.last_day,
        except_days=payload.except_days,
    )


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise Refusal("time_refused", "The time has no UTC offset. Write it like 2026-03-10T22:00:00+01:00.")
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise Refusal("time_refused", f"The year of the time must be from {FIRST_YEAR} to {LAST_YEAR}.")
    return at


@router.get("/schedules", response=list[ScheduleOut])
@paginate(Paged)
def schedules(
    request: HttpRequest, plan: str = "", owner: str = "", enabled: bool | None = None, deleted: bool = False
) -> QuerySet[Schedule]:
    """By name."""
    schedules = schedules_list(deleted=deleted)
    if plan:
        schedules = schedules.filter(version__plan__slug=plan)
    if owner:
        schedules = schedules.filter(owner__username=owner)
    return schedules if enabled is None else schedules.filter(enabled=enabled)


@router.post("/schedules", response={201: ScheduleOut}, auth=OPERATORS)
def new_schedule(request: HttpRequest, payload: ScheduleIn) -> Status[Schedule]:
    """Save a schedule. It is switched on at once unless it overwrites drives: then arm it and switch it on."""
    person = operator(request)
    schedule = services.create_schedule(spec=_spec(payload), by=person)
    return Status(201, schedule_with(schedule.pk))


@router.post("/schedules/preview", response=OutlookOut, auth=OPERATORS)
def preview(request: HttpRequest, payload: ScheduleIn) -> dict[str, object]:
    """Preview a schedule; nothing is saved. Raises the same refusals as saving."""
    person, spec, now = operator(request), _spec(payload), timezone.now()
    draft = drafted(spec, Schedule(owner=person), now=now)
    coming = outlook(draft, now)
    overwritten = services.overwritten_by(spec)
    return {"when": coming.words, "due": coming.dues, "overwrites": [target.arming_serial for target in overwritten]}


@router.get("/schedules/{key}", response=ScheduleOut)
def schedule(request: HttpRequest, key: int) -> Schedule:
    """A schedule."""
    return schedule_with(key)


@router.put("/schedules/{key}", response=ScheduleOut, auth=OPERATORS)
def change(request: HttpRequest, key: int, payload: ScheduleIn) -> Schedule:
    """Replace all fields. Another plan version or other targets end its arming."""
    person, schedule = operator(request), schedule_with(key)
    services.change_schedule(schedule=schedule, spec=_spec(payload), by=person)
    return schedule_with(key)


@router.delete("/schedules/{key}", response={204: None}, auth=OPERATORS)
def delete(request: HttpRequest, key: int) -> Status[None]:
    """Delete a schedule, which can be restored. Safe to repeat."""
    services.delete_schedule(schedule=schedule_with(key), by=operator(request))
    return Status(204, None)


@router.post("/schedules/{key}/restore", response=ScheduleOut, auth=OPERATORS)
def restore(request: HttpRequest, key: int) -> Schedule:
    """Restore a deleted schedule, which stays switched off. Safe to repeat."""
    services.restore_schedule(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/on", response=ScheduleOut, auth=OPERATORS)
def on(request: HttpRequest, key: int) -> Schedule:
    """Safe to repeat."""
    services.switch_on(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/off", response=ScheduleOut, auth=OPERATORS)
def off(request: HttpRequest, key: int) -> Schedule:
    """Switch off: waiting occurrences are missed, started runs continue. Safe to repeat."""
    services.switch_off(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/take-over", response=ScheduleOut, auth=OPERATORS)
def take_over(request: HttpRequest, key: int) -> Schedule:
    """Become the owner; this ends its arming. Safe to repeat."""
    arming.take_over(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/arm", response=ScheduleOut, auth=OPERATORS)
def arm(request: HttpRequest, key: int, payload: ArmScheduleIn) -> Schedule:
    """Arm a schedule: its runs may overwrite these drives until the given time. Switch it on afterwards."""
    person, schedule = operator(request), schedule_with(key)
    arming.arm_schedule(schedule=schedule, serials=payload.serials, until=_aware(payload.until), by=person)
    return schedule_with(key)


@router.post("/schedules/{key}/disarm", response=ScheduleOut, auth=OPERATORS)
def disarm(request: HttpRequest, key: int) -> Schedule:
    """Disarm a schedule: its later runs overwrite nothing. Safe to repeat."""
    arming.disarm_schedule(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/pause", response=ScheduleOut, auth=OPERATORS)
def pause(request: HttpRequest, key: int, payload: PauseIn) -> Schedule:
    """Skip the due times of a recurring schedule before the given time. Started runs continue. Safe to repeat."""
    services.pause_schedule(schedule=schedule_with(key), until=_aware(payload.until), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/resume", response=ScheduleOut, auth=OPERATORS)
def resume(request: HttpRequest, key: int) -> Schedule:
    """End the pause of a schedule. Safe to repeat."""
    services.resume_schedule(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/skip-next", response=ScheduleOut, auth=OPERATORS)
def skip_next(request: HttpRequest, key: int) -> Schedule:
    """Skip the next due time of a recurring schedule, by a pause until one minute after it."""
    services.skip_next(schedule=schedule_with(key), by=operator(request))
    return schedule_with(key)


@router.post("/schedules/{key}/run-now", response={202: ScheduleOut}, auth=OPERATORS)
def run_now(request: HttpRequest, key: int) -> Status[Schedule]:
    """Add a due time now. The run starts within seconds."""
    services.make_due(schedule=schedule_with(key), by=operator(request))
    return Status(202, schedule_with(key))


StateName = Literal["waiting", "started", "ended", "missed"]


class OccurrenceOut(Schema):
    """One due time, for one host if the schedule has a group. `reason`: why it was missed, or why it waits."""

    id: UUID
    schedule: int
    due_at: datetime
    host: str | None
    state: str
    reason_code: str
    reason: str
    run: int | None
    late_at: datetime | None
    finished_at: datetime | None

    @staticmethod
    def resolve_schedule(occurrence: Occurrence) -> int:
        return occurrence.schedule_id

    @staticmethod
    def resolve_host(occurrence: Occurrence) -> str | None:
        return occurrence.host.slug if occurrence.host else None

    @staticmethod
    def resolve_run(occurrence: Occurrence) -> int | None:
        return occurrence.run.number if occurrence.run else None


@router.get("/schedules/{key}/occurrences", response=list[OccurrenceOut])
@paginate(Paged)
def occurrences(
    request: HttpRequest, key: int, state: StateName | None = None,
    since: AwareDatetime | None = None, before: AwareDatetime | None = None,
) -> QuerySet[Occurrence]:  # fmt: skip
    """Past due times, latest first."""
    occurrences = schedule_with(key).occurrences.select_related("host", "run")
    occurrences = occurrences.filter(state=state) if state else occurrences
    occurrences = occurrences.filter(due_at__gte=since) if since else occurrences
    return occurrences.filter(due_at__lt=before) if before else occurrences


@router.post("/schedules/{key}/occurrences/{occurrence}/skip", response=OccurrenceOut, auth=OPERATORS)
def skip(request: HttpRequest, key: int, occurrence: UUID) -> Occurrence:
    """Skip a waiting occurrence."""
    person = operator(request)
    waiting_occurrence = schedule_with(key).occurrences.filter(pk=occurrence).first()
    if waiting_occurrence is None:
        raise NotFound("occurrence_unknown", f"Schedule {key} has no such occurrence.")
    services.skip_occurrence(occurrence=waiting_occurrence, by=person)
    return schedule_with(key).occurrences.select_related("host", "run").get(pk=occurrence)
