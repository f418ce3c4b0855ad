"""Due times under a set clock: started, late, missed, and why."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

import pytest

from webapp.core.tests.factories import a_host, a_target, a_user
from webapp.hosts.lifecycle import begin_maintenance, end_maintenance
from webapp.hosts.maintenance_windows import add_single_window
from webapp.hosts.models import Target
from webapp.notices.models import Notice, Subscription
from webapp.plans.services import delete_plan
from webapp.runs.actions import pause_run, resume_run
from webapp.runs.dispatch import dispatch_host
from webapp.runs.models import Attempt, Priority, Run, RunState
from webapp.runs.services import cancel_run, start_run
from webapp.schedules.models import AtDeadline, Condition, GroupOrder, Occurrence, OccurrenceState, Overlap, Trigger
from webapp.schedules.services import change_schedule, delete_schedule, make_due, skip_occurrence, switch_off, switch_on
from webapp.schedules.spec import Window
from webapp.schedules.tests.clock import Clock, clock, finish
from webapp.schedules.tests.factories import a_group, a_schedule, a_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)  # 13:00 in Berlin
DUE = datetime(2026, 3, 10, 21, tzinfo=UTC)  # 22:00 in Berlin
NIGHT = Window(days=tuple(range(7)), opens=time(22), closes=time(6))


@pytest.fixture
def at_noon() -> Iterator[Clock]:
    with clock(NOON) as made:
        yield made


@pytest.fixture
def target(at_noon: Clock) -> Target:
    return a_target()


def latest() -> Occurrence:
    return Occurrence.objects.select_related("run", "schedule").latest("due_at", "position")


def states() -> list[str]:
    return list(Occurrence.objects.order_by("due_at", "position").values_list("state", flat=True))


def run_of(occurrence: Occurrence) -> Run:
    assert occurrence.run is not None
    occurrence.run.refresh_from_db()
    return occurrence.run


def test_it_starts_at_its_time_and_is_due_again(at_noon: Clock, target: Target) -> None:
    owner = a_user()
    schedule = a_schedule(owner, targets=[target], note="every night")
    at_noon.to(DUE - timedelta(seconds=1))
    assert not Occurrence.objects.exists()
    at_noon.to(DUE)
    started = latest()
    run = run_of(started)
    assert (started.state, started.due_at) == (OccurrenceState.STARTED, DUE)
    assert (run.created_by, run.note, list(run.targets.all())) == (owner, "every night", [target])
    assert run.version == schedule.version
    at_noon.after(seconds=5)
    assert Run.objects.count() == 1
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE + timedelta(days=1)
    finish(run)
    at_noon.after(seconds=5)
    assert states() == ["ended"]


def test_once_is_once(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target], trigger=Trigger.ONCE, once_at=DUE)
    at_noon.to(DUE)
    at_noon.after(days=3)
    assert len(states()) == 1
    schedule.refresh_from_db()
    assert schedule.next_due_at is None


def test_a_host_that_is_away_is_waited_for_until_the_latest_start(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.WAITING
    assert "has not been heard lately" in latest().reason
    at_noon.away = set()
    at_noon.after(minutes=50)
    assert latest().state == OccurrenceState.STARTED
    assert latest().reason == ""


def test_a_host_that_stays_away_is_missed_with_its_reason(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    at_noon.to(DUE + timedelta(minutes=60))
    assert latest().state == OccurrenceState.WAITING
    at_noon.after(seconds=1)
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "latest_start_passed")
    assert missed.reason.startswith("It could not start by its latest start, 2026-03-10 23:00 (Europe/Berlin). Host ")
    assert not Run.objects.exists()


def test_a_short_outage_makes_it_late_and_a_long_one_missed(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=3600)
    at_noon.to(DUE - timedelta(minutes=10))
    at_noon.to(DUE + timedelta(minutes=59))
    assert latest().state == OccurrenceState.STARTED
    finish(run_of(latest()))
    at_noon.to(DUE + timedelta(hours=23, minutes=50))
    at_noon.to(DUE + timedelta(hours=26))
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "scheduler_down")
    words = "The scheduler did not run from 2026-03-11 21:50 (Europe/Berlin) to 2026-03-12 00:00 (Europe/Berlin)."
    assert missed.reason == words


def test_of_the_due_times_in_an_outage_only_the_latest_is_made_up_for(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", start_within_s=1800)
    at_noon.to(NOON + timedelta(minutes=30))
    at_noon.to(NOON + timedelta(hours=5, minutes=10))
    assert states() == ["missed"] * 4 + ["started"]
    first = Occurrence.objects.earliest("due_at")
    assert first.reason_code == "scheduler_down"
    assert first.reason.endswith("Only the latest due time can still start.")


def test_an_outage_of_weeks_keeps_a_bounded_number_of_rows(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="*/5 * * * *")
    at_noon.to(NOON + timedelta(days=7))
    assert len(states()) == 101
    assert "At least 1,915 due times before this one were missed too" in Occurrence.objects.earliest("due_at").reason


def test_a_clock_that_is_set_back_starts_nothing_twice(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target])
    at_noon.to(DUE)
    at_noon.to(DUE - timedelta(hours=2))
    at_noon.to(DUE)
    assert len(states()) == 1


def test_a_run_still_going_skips_the_next(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *")
    at_noon.after(hours=1)
    number = run_of(latest()).number
    at_noon.after(hours=1)
    missed = latest()
    assert (missed.state, missed.reason_code) == (OccurrenceState.MISSED, "still_going")
    assert missed.reason == f"Run {number} of this schedule had not ended."


def test_a_run_still_going_is_waited_for_if_the_schedule_says_so(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", overlap=Overlap.WAIT)
    at_noon.after(hours=1)
    first = run_of(latest())
    at_noon.after(hours=1)
    assert latest().reason == f"Run {first.number} of this schedule has not ended."
    at_noon.after(minutes=20)
    finish(first)
    at_noon.after(seconds=5)
    assert states() == ["ended", "started"]


def test_outside_its_window_a_run_is_paused_and_goes_on_when_it_opens(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.to(DUE + timedelta(hours=8))
    assert run_of(latest()).state == RunState.PAUSED
    words = "The window of its schedule is closed (22:00 to 06:00, every day (Europe/Berlin))."
    assert run_of(latest()).pause_reason == words
    at_noon.to(DUE + timedelta(days=1, seconds=-1))
    assert run_of(latest()).state == RunState.PAUSED
    at_noon.to(DUE + timedelta(days=1))
    run.refresh_from_db()
    assert run.state in (RunState.QUEUED, RunState.RUNNING)
    assert run.pause_reason == ""


def test_a_person_who_resumes_outside_the_window_or_pauses_within_is_not_overruled(
    at_noon: Clock, target: Target
) -> None:
    person = a_user()
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.after(hours=8)
    resume_run(run=run_of(latest()), by=person)
    at_noon.after(hours=1)
    assert run_of(latest()).state != RunState.PAUSED
    at_noon.to(DUE + timedelta(days=1))
    pause_run(run=run, by=person)
    at_noon.after(hours=8)  # closes
    at_noon.to(DUE + timedelta(days=2))  # opens
    assert run_of(latest_with(run)).state == RunState.PAUSED


def latest_with(run: Run) -> Occurrence:
    return Occurrence.objects.select_related("run").get(run=run)


def test_a_person_who_pauses_a_run_that_the_window_paused_keeps_it_paused(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    run = run_of(latest())
    at_noon.after(hours=8)
    pause_run(run=run, by=a_user())
    at_noon.to(DUE + timedelta(days=1))
    assert run_of(latest_with(run)).state == RunState.PAUSED


def test_a_run_goes_on_when_its_window_is_taken_away(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target], window=NIGHT), a_user()
    at_noon.to(DUE)
    at_noon.after(hours=8)
    assert run_of(latest()).state == RunState.PAUSED
    change_schedule(schedule=schedule, spec=a_spec(version=schedule.version, targets=[target]), by=person)
    at_noon.after(seconds=5)
    assert run_of(latest()).state != RunState.PAUSED


def test_a_group_without_hosts_is_missed_with_its_reason(at_noon: Clock) -> None:
    group = a_group(a_target())
    a_schedule(group=group)
    group.members.all().delete()
    at_noon.to(DUE)
    assert (latest().reason_code, latest().reason) == ("group_empty", "The host group “Group lab” has no hosts.")


def test_targets_that_become_a_group_while_one_waits_start_no_run_on_all_hosts(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target]), a_user()
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    group = a_group(a_target(), a_target())
    change_schedule(schedule=schedule, spec=a_spec(version=schedule.version, group=group), by=person)
    at_noon.after(seconds=5)
    assert latest().reason_code == "changed"
    assert not Run.objects.exists()


def test_a_clock_that_was_years_ahead_keeps_nothing_from_being_due(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    at_noon.to(NOON + timedelta(days=3650))
    at_noon.to(NOON + timedelta(minutes=5))
    schedule.refresh_from_db()
    assert schedule.next_due_at == DUE


def test_what_waits_does_not_start_before_its_time_when_the_clock_is_set_back(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target])
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    at_noon.away = set()
    at_noon.to(DUE - timedelta(hours=6))
    assert latest().state == OccurrenceState.WAITING
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.STARTED


def test_two_due_times_that_end_at_the_same_moment_are_followed_twice(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill", cron="0 * * * *", overlap=Overlap.WAIT)
    a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill, condition="any")
    at_noon.after(hours=1)
    at_noon.set(at_noon.now)
    Occurrence.objects.create(
        schedule=fill, due_at=NOON, state="started", run=start_run(version=fill.version, targets=[target], by=None)
    )
    for run in Run.objects.all():
        finish(run)
    at_noon.after(seconds=5)
    assert Occurrence.objects.filter(schedule__name="read").count() == 2


def test_a_due_time_outside_the_window_waits_for_it(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 21 * * *", window=NIGHT, start_within_s=7200)
    at_noon.to(DUE - timedelta(hours=1))
    assert latest().reason == "The window opens 2026-03-10 22:00 (Europe/Berlin)."
    at_noon.to(DUE)
    assert latest().state == OccurrenceState.STARTED


def test_it_waits_for_a_host_in_maintenance_and_in_a_maintenance_window(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], start_within_s=4 * 3600)
    add_single_window(host=target.host, starts_at=DUE, ends_at=DUE + timedelta(hours=1), note="new fans", by=None)
    at_noon.to(DUE)
    assert "in a maintenance window until 2026-03-10 22:00 UTC (new fans)" in latest().reason
    begin_maintenance(host=target.host, note="", by=None)
    at_noon.after(hours=1)
    assert latest().reason.endswith("is maintenance and takes no runs.")
    end_maintenance(host=target.host, by=None)
    at_noon.after(seconds=5)
    assert latest().state == OccurrenceState.STARTED


def test_a_run_gets_no_trial_while_its_host_is_in_a_maintenance_window(at_noon: Clock, target: Target) -> None:
    at = {"starts_at": DUE + timedelta(hours=1), "ends_at": DUE + timedelta(hours=2)}
    a_schedule(targets=[target])
    add_single_window(host=target.host, note="", by=None, **at)
    at_noon.to(DUE)
    assert Attempt.objects.filter(kind="trial").count() == 1
    Attempt.objects.all().delete()
    at_noon.after(hours=1)
    assert dispatch_host(target.host.pk) is None
    at_noon.after(hours=1)
    found = dispatch_host(target.host.pk)
    assert found is not None


def test_a_run_past_its_deadline_is_late_and_cancelled_if_told_to(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target], deadline_s=4 * 3600)
    at_noon.to(DUE)
    at_noon.after(hours=4)
    assert latest().late_at is None
    at_noon.after(seconds=1)
    assert latest().late_at == at_noon.now
    assert run_of(latest()).cancel_requested_at is None
    finish(run_of(latest()))
    schedule.at_deadline = AtDeadline.CANCEL
    schedule.save()
    at_noon.to(DUE + timedelta(days=1))
    at_noon.after(hours=4, seconds=1)
    run = run_of(latest())
    assert run.cancel_requested_at == at_noon.now
    assert "cancelled the run at its deadline, 2026-03-12 02:00 (Europe/Berlin)" in run.cancel_reason


def test_chains_follow_each_run_that_is_done(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill")
    read = a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    verify = a_schedule(
        targets=[target], name="verify", trigger=Trigger.AFTER_SCHEDULE, after_schedule=read, condition=Condition.ANY
    )
    at_noon.to(DUE)
    finish(run_of(latest()))
    at_noon.after(minutes=1)
    assert (latest().schedule, latest().state) == (read, OccurrenceState.STARTED)
    finish(run_of(latest()), RunState.FAILED, "None of its trials was done; each says why.")
    at_noon.after(minutes=1)
    assert (latest().schedule, latest().state) == (verify, OccurrenceState.STARTED)


def test_what_follows_is_missed_where_the_run_before_is_not_done_or_was_missed(at_noon: Clock, target: Target) -> None:
    fill = a_schedule(targets=[target], name="fill")
    read = a_schedule(targets=[target], name="read", trigger=Trigger.AFTER_SCHEDULE, after_schedule=fill)
    a_schedule(targets=[target], name="any", trigger=Trigger.AFTER_SCHEDULE, after_schedule=read, condition="any")
    at_noon.to(DUE)
    run = run_of(latest())
    finish(run, RunState.FAILED, "broken")
    at_noon.after(minutes=1)
    missed = Occurrence.objects.get(schedule=read)
    assert missed.reason == f"It follows schedule “fill”, whose run {run.number} failed."
    last = Occurrence.objects.get(schedule__name="any")
    assert last.reason == f"It follows schedule “read”, which did not run: {missed.reason}"


def test_a_schedule_with_a_history_follows_one_run_too(at_noon: Clock, target: Target) -> None:
    person = a_user()
    schedule = a_schedule(person, targets=[target])
    at_noon.to(DUE)
    finish(run_of(latest()))
    at_noon.after(minutes=1)
    for _ in range(2):
        run = start_run(version=schedule.version, targets=[target], by=None)
        spec = a_spec(version=schedule.version, targets=[target], trigger=Trigger.AFTER_RUN, after_run=run)
        change_schedule(schedule=schedule, spec=spec, by=person)
        make_due(schedule=schedule, by=person)
        at_noon.after(minutes=1)
        finish(run_of(latest()))
        finish(run)
        at_noon.after(minutes=1)
        assert (latest().state, latest().due_at) == (OccurrenceState.STARTED, run.ended_at)
        finish(run_of(latest()))
        at_noon.after(minutes=1)


def test_after_months_without_a_look_the_latest_due_time_is_the_latest(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], cron="0 * * * *", start_within_s=1800)
    at_noon.to(NOON + timedelta(days=100, minutes=10))
    assert latest().due_at == NOON + timedelta(days=100)
    assert latest().state == OccurrenceState.STARTED


def test_it_follows_one_run_once(at_noon: Clock, target: Target) -> None:
    run = start_run(version=a_schedule(targets=[target]).version, targets=[target], by=None)
    after = a_schedule(targets=[target], name="after", trigger=Trigger.AFTER_RUN, after_run=run)
    at_noon.after(minutes=1)
    assert not after.occurrences.exists()
    finish(run)
    at_noon.after(minutes=1)
    at_noon.after(minutes=1)
    assert after.occurrences.get().state == OccurrenceState.STARTED


def test_a_group_runs_side_by_side_or_one_after_another(at_noon: Clock) -> None:
    targets = [a_target(a_host()) for _ in range(3)]
    a_schedule(group=a_group(*targets), name="beside")
    a_schedule(group=a_group(*targets, slug="row"), name="row", cron="0 23 * * *", group_order=GroupOrder.ONE_BY_ONE)
    at_noon.to(DUE)
    runs = list(Run.objects.order_by("number"))
    assert [run.label for run in runs] == ["A", "B", "C"]
    assert [list(run.targets.all()) for run in runs] == [[target] for target in targets]
    for run in runs:
        finish(run)
    at_noon.after(hours=1)
    assert states() == ["ended"] * 3 + ["started", "waiting", "waiting"]
    at_noon.after(hours=3)  # longer than the latest start: the others have not had their turn yet
    finish(run_of(Occurrence.objects.get(schedule__name="row", position=0)))
    at_noon.after(seconds=5)
    assert states()[3:] == ["ended", "started", "waiting"]


def test_a_host_of_a_group_that_is_away_passes_its_turn_on(at_noon: Clock) -> None:
    targets = [a_target(a_host()) for _ in range(2)]
    a_schedule(group=a_group(*targets), group_order=GroupOrder.ONE_BY_ONE)
    at_noon.away = {targets[0].host.slug}
    at_noon.to(DUE)
    assert states() == ["waiting", "waiting"]
    at_noon.after(hours=1, seconds=1)
    assert states() == ["missed", "started"]


def test_priority_decides_where_runs_enter_the_queue(at_noon: Clock, target: Target) -> None:
    for name, priority in (("low", Priority.LOW), ("normal", Priority.NORMAL), ("high", Priority.HIGH)):
        a_schedule(targets=[target], name=name, priority=priority)
    at_noon.to(DUE)
    by_place = Run.objects.order_by("queue_place").values_list("occurrence__schedule__name", flat=True)
    assert list(by_place) == ["high", "normal", "low"]
    Run.objects.update(state=RunState.QUEUED)
    hand = start_run(version=Run.objects.get(occurrence__schedule__name="low").version, targets=[target], by=None)
    ahead = Run.objects.filter(queue_place__gt=hand.queue_place).values_list("occurrence__schedule__name", flat=True)
    assert list(ahead) == ["low"]


def test_what_waits_is_missed_when_the_schedule_is_switched_off_or_deleted(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target]), a_user("olga")
    at_noon.away = {target.host.slug}
    at_noon.to(DUE)
    switch_off(schedule=schedule, by=person)
    assert (latest().state, latest().reason) == ("missed", "olga switched the schedule off.")
    at_noon.after(days=1)
    assert len(states()) == 1
    switch_on(schedule=schedule, by=person)
    at_noon.to(DUE + timedelta(days=2))
    delete_schedule(schedule=schedule, by=person)
    assert latest().reason == "olga deleted the schedule."


def test_one_that_waits_can_be_skipped_and_one_can_be_made_due(at_noon: Clock, target: Target) -> None:
    schedule, person = a_schedule(targets=[target]), a_user("olga")
    at_noon.away = {target.host.slug}
    at_noon.after(minutes=5)
    make_due(schedule=schedule, by=person)
    at_noon.after(seconds=5)
    skip_occurrence(occurrence=latest(), by=person)
    assert (latest().reason_code, latest().reason) == ("skipped", "olga skipped it.")


def test_the_same_reason_is_told_once_an_hour(at_noon: Clock, target: Target) -> None:
    person = a_user()
    Subscription.objects.create(user=person, channel="webhook", url="https://x.example/", events=["missed"])
    a_schedule(targets=[target], cron="* * * * *")
    for _ in range(62):
        at_noon.after(minutes=1)
    assert states().count("missed") == 61
    assert list(Notice.objects.order_by("created_at").values_list("event", flat=True)) == ["missed", "missed"]


def test_a_deleted_plan_is_not_run(at_noon: Clock, target: Target) -> None:
    schedule = a_schedule(targets=[target])
    delete_plan(plan=schedule.version.plan, by=a_user())
    at_noon.to(DUE)
    assert latest().reason_code == "plan_deleted"


def test_a_cancelled_run_ends_its_occurrence(at_noon: Clock, target: Target) -> None:
    a_schedule(targets=[target], window=NIGHT)
    at_noon.to(DUE)
    Attempt.objects.all().delete()
    run = run_of(latest())
    run.trials.update(state="planned")
    cancel_run(run=run, by=None)
    at_noon.after(seconds=5)
    assert run_of(latest()).state == RunState.CANCELLED
    assert states() == ["ended"]


def test_one_schedule_that_breaks_does_not_keep_the_others_from_running(
    at_noon: Clock, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    broken = a_schedule(targets=[target], name="broken")
    a_schedule(targets=[target], name="whole")
    type(broken).objects.filter(pk=broken.pk).update(cron="no cron line")
    at_noon.to(DUE)
    assert latest().schedule.name == "whole"
    assert "the next tick tries again" in caplog.text
