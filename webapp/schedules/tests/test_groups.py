"""Schedules of a group of hosts: side by side, one after another, hosts that are away."""

import msgspec
import pytest

from webapp.hosts.models import Target
from webapp.plans.document import Part
from webapp.runs.models import Run
from webapp.schedules.models import GroupOrder, Occurrence
from webapp.schedules.selectors import group_targets
from webapp.schedules.services import change_schedule
from webapp.schedules.tests.clock import Clock, finish
from webapp.schedules.tests.moments import DUE
from webapp.schedules.tests.occurrences import latest, run_of, states
from webapp.screens.schedules.words import group_in_words, rules
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.schedules import a_group, a_schedule, a_spec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


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


def test_hosts_that_a_trial_uses_at_once_are_in_one_run(at_noon: Clock) -> None:
    targets = [a_target(a_host()) for _ in range(2)]
    part = Part(name="p", factors={"pattern": "randread", "size": "64M", "hosts_at_once": "1, 2"})
    version = a_version(msgspec.structs.replace(DOCUMENT, parts=(part,), repeats=1))
    schedule = a_schedule(group=a_group(*targets), group_order=GroupOrder.ONE_BY_ONE, version=version)
    at_noon.to(DUE)
    run = Run.objects.get()
    assert list(run.targets.order_by("host__slug")) == sorted(targets, key=lambda target: target.host.slug)
    assert [len(trial.all_targets) for trial in run.trials.order_by("index")].count(2) == 1
    assert group_in_words(schedule, 2) == "Group lab (2 hosts, in one run)"
    assert any("All hosts are in one run" in rule.text for rule in rules(schedule))
    finish(run)
    at_noon.after(seconds=5)
    assert states() == ["ended"]


def test_targets_of_a_host_are_in_the_order_of_their_names() -> None:
    hosts = [a_host() for _ in range(2)]
    groups = [[a_target(host, slug=slug) for slug in ("c", "a", "b")] for host in hosts]
    group = a_group(*(targets[0] for targets in groups))
    for member, targets in zip(group.members.order_by("place"), groups, strict=True):
        member.targets.set(targets)
    found = [(target.host, target.slug) for target in group_targets(group)]
    assert found == [(host, slug) for host in hosts for slug in ("a", "b", "c")]


def test_a_host_of_a_group_that_is_away_passes_its_turn_on(at_noon: Clock) -> None:
    targets = [a_target(a_host()) for _ in range(2)]
    a_schedule(group=a_group(*targets), group_order=GroupOrder.ONE_BY_ONE)
    at_noon.away = {targets[0].host.slug}
    at_noon.to(DUE)
    assert states() == ["waiting", "waiting"]
    at_noon.after(hours=1, seconds=1)
    assert states() == ["missed", "started"]
