"""The estimated cost of one run of a schedule, and a warning if it is due too often."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice, pairwise
from zoneinfo import ZoneInfo

from django.utils import timezone

from webapp.core import formatting
from webapp.core.windows import local_time, time_zone
from webapp.hosts.models import Target
from webapp.plans.document import read
from webapp.plans.estimate import Expected, written_in_total
from webapp.plans.grids import grids_of
from webapp.plans.models import PlanVersion
from webapp.plans.preview import Preview
from webapp.results.speeds import expected_writes, learned_preview
from webapp.runs.durations import experience_of
from webapp.runs.models import Priority
from webapp.schedules import timing
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Overlap, Schedule, Trigger
from webapp.schedules.selectors import in_order, is_finished, missed_since, next_due
from webapp.schedules.timing import due_after, trigger_in_words, window_of
from webapp.screens.trend.claims import number
from webapp.screens.trend.claims import sentence as phrases_in_sentence

# Describes schedules: when, on what, and each of their rules.

TARGETS_NAMED = 3


MISSED_WITHIN = timedelta(hours=24)


def heading(now: datetime) -> dict[str, object]:
    """Of the list and the calendar: `One due time was missed in the last 24 hours, two schedules are on`, and the next
    due time."""
    present = Schedule.objects.filter(deleted_at=None)
    on, missed = present.filter(~is_finished(), enabled=True).count(), missed_since(now - MISSED_WITHIN).count()
    phrases = []
    if missed:
        times = "time was" if missed == 1 else "times were"
        phrases.append(f"{number(missed)} due {times} missed in the last 24 hours")
    if on or present.exists():
        phrases.append(f"{number(on)} {'schedule is' if on == 1 else 'schedules are'} on")
    return {"heading": phrases_in_sentence(phrases) or "No schedule yet", "next": next(iter(next_due(1)), None)}


@dataclass(frozen=True)
class Rule:
    label: str
    text: str


def when_in_words(schedule: Schedule) -> str:
    """“At 22:00 every day (Europe/Berlin)”, “Once at 2026-11-23 22:00 (Europe/Berlin)”."""
    if schedule.trigger == Trigger.ONCE and schedule.once_at:
        return f"Once at {local_time(schedule.once_at, schedule.time_zone)}"
    return trigger_in_words(schedule)


def window_in_words(schedule: Schedule) -> str:
    """“22:00 to 06:00, Mon to Fri (Europe/Berlin)”; "" for none."""
    window = window_of(schedule)
    return str(window) if window else ""


def targets_in_words(targets: list[Target]) -> str:
    named = ", ".join(str(target) for target in targets[:TARGETS_NAMED])
    return f"{named} and {len(targets) - TARGETS_NAMED} more" if len(targets) > TARGETS_NAMED else named


def group_in_words(schedule: Schedule, hosts: int) -> str:
    """“Three servers (3 hosts, side by side)”."""
    order = GroupOrder(schedule.group_order).label.lower() if schedule.run_for_each_host else "in one run"
    return f"{schedule.group} ({hosts} host{'' if hosts == 1 else 's'}, {order})"


def on_in_words(schedule: Schedule) -> str:
    """The targets or the group; `schedule` comes from `schedules_list`. No query."""
    if schedule.group is not None:
        return group_in_words(schedule, getattr(schedule, "hosts", 0))
    return targets_in_words(in_order(schedule, schedule.targets.all()))


def limit_in_words(seconds: int) -> str:
    """A time limit in the form in which people type it: 90 s, 30 min, 2 h."""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def sentence(schedule: Schedule, on: str) -> str:
    """The whole schedule: plan, targets, trigger, window and limits."""
    sentences = [f"Runs {schedule.version.plan.title}, version {schedule.version.number}, on {on}."]
    sentences += [f"{when_in_words(schedule)}."]
    if window := window_in_words(schedule):
        sentences.append(f"The run works only in this window: {window}.")
    sentences.append(
        f"It is missed if it cannot start within {limit_in_words(schedule.start_within_s)} {_counted(schedule)}."
    )
    if schedule.deadline_s is not None:
        end = "cancelled" if schedule.at_deadline == AtDeadline.CANCEL else "late"
        sentences.append(f"It is {end} if it has not ended {limit_in_words(schedule.deadline_s)} after the due time.")
    return " ".join(sentences)


def rules(schedule: Schedule) -> list[Rule]:
    """Its behaviour, in one or two sentences per rule; `webapp.schedules` implements it."""
    return list(_rules(schedule))


def _rules(schedule: Schedule) -> Iterator[Rule]:
    limit = limit_in_words(schedule.start_within_s)
    yield from _start(schedule)
    if window := window_in_words(schedule):
        yield Rule("Window", window)
        yield Rule(
            "Outside the window",
            "No run starts. A run that has started is paused and goes on when the window opens. A trial under way goes "
            "on to its end.",
        )
    yield Rule(
        "Latest start",
        f"{limit} {_counted(schedule)}. After that, the occurrence is missed and its reason is recorded.",
    )
    if schedule.trigger in (Trigger.CRON, Trigger.ONCE):
        yield Rule("Sweetspot is not running", _outage(schedule))
    yield Rule(
        "A host is away",
        "The occurrence waits until the latest start. The same holds while the host is in maintenance or in one of its "
        "maintenance windows, and while a target is absent.",
    )
    yield Rule("An earlier run is still going", _overlap(schedule))
    yield Rule("Deadline", _deadline(schedule))
    if (schedule.trigger == Trigger.CRON or schedule.window_days) and clocks_change(time_zone(schedule.time_zone)):
        yield from _clocks(schedule)


def _counted(schedule: Schedule) -> str:
    return "after the host's turn begins" if _one_by_one(schedule) else "after the due time"


def _start(schedule: Schedule) -> Iterator[Rule]:
    yield Rule("Start", f"The run enters the queue of its hosts, {_PLACES[Priority(schedule.priority)]}.")
    if schedule.group is not None:
        side_by_side = "Each host gets a run of its own. All are due at the same time."
        one_by_one = "Each host gets a run of its own. The next one starts when the run before has ended or was missed."
        together = "All hosts are in one run, because a trial of the plan uses several hosts at once."
        separate = one_by_one if _one_by_one(schedule) else side_by_side
        yield Rule("Host group", separate if schedule.run_for_each_host else together)
    if schedule.trigger in (Trigger.AFTER_SCHEDULE, Trigger.AFTER_RUN):
        yield Rule("Preceding run", _after(schedule))


_PLACES = {
    Priority.LOW: "behind all waiting runs",
    Priority.NORMAL: "before waiting runs of low priority",
    Priority.HIGH: "before waiting runs of normal and low priority",
}


def _one_by_one(schedule: Schedule) -> bool:
    return schedule.run_for_each_host and schedule.group_order == GroupOrder.ONE_BY_ONE


def _after(schedule: Schedule) -> str:
    if schedule.trigger == Trigger.AFTER_RUN:
        failed = "If it fails or is cancelled, this schedule is missed."
        return failed if schedule.condition == Condition.DONE else "It may be done, failed or cancelled."
    if schedule.condition == Condition.DONE:
        return "If it fails, is cancelled or is missed, this schedule is missed too."
    return "It may be done, failed or cancelled. If it is missed, this schedule is missed too."


def _outage(schedule: Schedule) -> str:
    late = "The run starts when Sweetspot is back. If the latest start has passed, it is missed."
    if schedule.trigger == Trigger.ONCE:
        return late
    return f"{late} If several due times have passed, only the latest is started; the others are missed."


def _overlap(schedule: Schedule) -> str:
    if schedule.overlap == Overlap.SKIP:
        text = "The new run is not started, and its occurrence is missed."
    else:
        text = "The new run starts after it ends, if that is before the latest start."
    if schedule.run_for_each_host and not _one_by_one(schedule):
        text += " This applies to each host separately."
    return text


def _deadline(schedule: Schedule) -> str:
    if schedule.deadline_s is None:
        return "None. The run may take as long as it needs."
    after = limit_in_words(schedule.deadline_s)
    end = "is cancelled" if schedule.at_deadline == AtDeadline.CANCEL else "goes on"
    return f"{after} after the due time. A run that has not ended by then {end}, and subscribers get a notice."


def _clocks(schedule: Schedule) -> Iterator[Rule]:
    if schedule.trigger == Trigger.CRON and timing.has_fixed_time(schedule.cron):
        yield Rule(
            "Clocks are set forward",
            "If the time does not exist, the run is due right after the gap: 02:30 becomes 03:00.",
        )
        yield Rule("Clocks are set back", "If the time occurs twice, the run is due once, at the first.")
    elif schedule.trigger == Trigger.CRON:
        yield Rule("Clocks are set forward", "Due times in the hour that is left out do not occur.")
        yield Rule("Clocks are set back", "Due times in the hour that is repeated occur twice.")
    if schedule.window_days:
        yield Rule(
            "Window, clocks change",
            "If a time does not exist, the first moment after the gap counts. If a time occurs twice, the window opens "
            "at the first and closes at the second.",
        )


def clocks_change(zone: ZoneInfo) -> bool:
    """Whether the clocks of this zone are set forward or back within the next year."""
    now = timezone.now()
    offsets = {_offset(now + timedelta(days=14 * step), zone) for step in range(27)}
    return len(offsets) > 1


def _offset(at: datetime, zone: ZoneInfo) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


DUES_LOOKED_AT = 100


@dataclass(frozen=True)
class RunCost:
    """`preview` and `expected` are of one run; of a host group, of the run that takes longest."""

    preview: Preview
    expected: list[tuple[Target, Expected]]
    host: str  # of the group; "" without one
    hosts: int
    seconds: float  # from the start at a due time to the end of its last run
    drives: tuple[Target, ...]  # that all of its runs overwrite

    @property
    def written(self) -> int | None:
        """Expected bytes written; None if nothing is known about one of the targets."""
        return written_in_total(self.preview.estimate, {str(target.pk): expected for target, expected in self.expected})


def run_cost(version: PlanVersion, targets: Sequence[Target], group_order: GroupOrder | None) -> RunCost | None:
    """None without targets. With `group_order`, each host of `targets` gets its own run."""
    runs = _by_host(targets) if group_order else [list(targets)]
    if not targets:
        return None
    document, experience = read(version.document), experience_of(targets)
    grids = grids_of(document)
    chosen, longest = None, runs[0]
    seconds, drives = [], list[Target]()
    for each in runs:
        made = learned_preview(document, each, experience=experience, grids=grids)
        seconds.append(made.estimate.seconds)
        drives += made.destructive
        if chosen is None or made.estimate.seconds > chosen.estimate.seconds:
            chosen, longest = made, each  # the others are released: each can have 10,000 trials
    assert chosen is not None
    return RunCost(
        preview=chosen,
        expected=expected_writes(chosen.expansion, chosen.estimate, longest),
        host=str(longest[0].host) if group_order else "",
        hosts=len(runs),
        seconds=sum(seconds) if group_order == GroupOrder.ONE_BY_ONE else max(seconds),
        drives=tuple(drives),
    )


def _by_host(targets: Sequence[Target]) -> list[list[Target]]:
    ordered = sorted(targets, key=lambda target: str(target.host_id))
    return [list(each) for _, each in groupby(ordered, key=lambda target: target.host_id)]


def too_often(schedule: Schedule, cost: RunCost, now: datetime) -> str:
    """A warning if a run is due before the previous one has ended; "" otherwise."""
    dues = list(islice(due_after(schedule, now), DUES_LOOKED_AT))
    gaps = {later - earlier for earlier, later in pairwise(dues)}
    if not gaps or min(gaps) >= timedelta(seconds=cost.seconds):
        return ""
    apart = limit_in_words(int(min(gaps).total_seconds()))
    runs = "The runs of one due time take" if cost.hosts > 1 else "A run takes"
    how = "at least" if cost.preview.estimate.unknown_trials else "about"
    takes = f"{runs} {how} {formatting.duration(cost.seconds)}"
    due = f"runs are due every {apart}" if len(gaps) == 1 else f"some runs are due only {apart} apart"
    return f"{takes}, but {due}. {_MEANWHILE[Overlap(schedule.overlap)]}"


_MEANWHILE = {
    Overlap.SKIP: "A run that is due while an earlier one is going is missed.",
    Overlap.WAIT: "A run that is due while an earlier one is going waits for it, and is missed at its latest start.",
}
