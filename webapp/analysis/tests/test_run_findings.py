"""Findings of ended runs are made once, stored, and made again when marks or rules change."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from webapp.analysis import run_findings, tasks
from webapp.analysis.answer import ONCE, FindingKind, Sentence
from webapp.analysis.evidence import RunFinding
from webapp.analysis.models import FindingsMade
from webapp.analysis.run_answer import BETWEEN_CHARTS, VERSION, run_answer
from webapp.analysis.run_findings import are_due, findings_of, make_due, newest
from webapp.analysis.tests.capped import CAPPED, a_capped_run
from webapp.results.validity import mark_run, mark_trial, trust_run
from webapp.runs.models import Run, RunState, Trial
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def kinds(found: Iterable[RunFinding]) -> list[FindingKind]:
    return [each.kind for each in found]


def test_a_plan_of_load_says_where_the_values_level_off() -> None:
    run = a_capped_run()
    answer = run_answer(run)
    assert answer.headline == "IOPS level off at 2.00k from 8 jobs on (measured once)."
    (finding,) = answer.findings
    assert (finding.kind, finding.run, finding.single) == (FindingKind.SATURATION, 1, True)
    assert finding.query == "run=1&x=numjobs"
    assert finding.targets == ("h1/loop0",)
    assert finding.picture is not None
    (line,) = finding.picture.lines
    assert line.values == tuple(CAPPED.values())
    assert finding.picture.levels[line.first or 0] == "8"


def test_findings_are_made_once_and_read_by_run() -> None:
    run = a_capped_run()
    assert (make_due(60), make_due(60)) == (1, 0)
    assert findings_of([run]) == {1: list(run_answer(run).findings)}


def test_an_open_run_has_no_stored_findings() -> None:
    run = a_capped_run()
    Run.objects.filter(pk=run.pk).update(ended_at=None, state=RunState.RUNNING)
    assert make_due(60) == 0
    assert findings_of([run]) == {}
    assert newest(timezone.now() - timedelta(days=1), 10) == []


def test_marks_make_them_again() -> None:
    run, person = a_capped_run(), a_user("ann")
    make_due(60)
    for trial in Trial.objects.filter(run=run, point__numjobs__gte=8):
        mark_trial(trial=trial, reason="wrong cable", by=person)
    assert (make_due(60), make_due(60)) == (1, 0)
    assert kinds(findings_of([run])[1]) == [FindingKind.GROWTH]
    assert newest(timezone.now() - timedelta(days=1), 10) == []


def test_an_invalid_run_is_no_news() -> None:
    run, person = a_capped_run(), a_user("ann")
    make_due(60)
    since = timezone.now() - timedelta(hours=1)
    assert kinds(newest(since, 10)) == [FindingKind.SATURATION]
    mark_run(run=run, reason="wrong cable", by=person)
    assert newest(since, 10) == []
    trust_run(run=run, by=person)
    make_due(60)
    assert kinds(newest(since, 10)) == [FindingKind.SATURATION]


def test_new_rules_make_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    a_capped_run()
    make_due(60)
    monkeypatch.setattr("webapp.analysis.run_findings.VERSION", 99)
    assert (make_due(60), make_due(60)) == (1, 0)


def test_findings_of_other_rules_are_not_shown_beside_those_of_these_rules() -> None:
    old, new, since = a_capped_run(1), a_capped_run(2), timezone.now() - timedelta(days=1)
    make_due(60)
    assert not are_due(since)
    FindingsMade.objects.filter(run=old).update(version=VERSION - 1)
    assert list(findings_of([old, new])) == [2]
    assert {each.run for each in newest(since, 10)} == {2}
    assert are_due(since)
    assert (make_due(60), are_due(since)) == (1, False)
    assert set(findings_of([old, new])) == {1, 2}


def test_a_finding_is_its_claim_with_certainty_and_doubt() -> None:
    run = a_capped_run()
    (finding,) = run_answer(run).findings
    assert finding.certainty == ONCE
    assert finding.doubt == ""
    assert ONCE not in finding.claim
    assert finding.sentence == Sentence((finding.claim, ONCE)).texts["sentence"]


def test_a_fault_of_one_run_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = a_capped_run(1), a_capped_run(2)

    def broken(run: Run) -> object:
        if run.pk == bad.pk:
            raise ZeroDivisionError
        return run_answer(run)

    monkeypatch.setattr(run_findings, "run_answer", broken)
    assert (make_due(60), make_due(60)) == (2, 0)
    assert FindingsMade.objects.get(failed=True).run == bad
    assert findings_of([good, bad]).keys() == {1, 2}


def test_without_time_no_run_is_started() -> None:
    a_capped_run()
    assert make_due(0) == 0


def test_the_same_subject_of_the_next_run_has_the_same_key() -> None:
    version, target = a_version(), a_target(a_host("h"), "loop0")
    first, second = (a_capped_run(lab=Lab(target, version=version, number=number)) for number in (1, 2))
    keys = [[each.key for each in run_answer(run).findings] for run in (first, second)]
    assert keys[0] == keys[1]


def test_news_are_of_the_last_run_first_and_at_most_three_of_a_run() -> None:
    now = timezone.now()
    for number in (1, 2):
        lab = Lab(a_target(a_host(f"h{number}"), "loop0"), number=number)
        for place, pattern in enumerate(("randread", "randwrite", "read", "write", "randrw"), start=1):
            for jobs, iops in CAPPED.items():
                lab.measure(iops * place * place, numjobs=jobs, pattern=pattern)
        Run.objects.filter(pk=lab.run.pk).update(ended_at=now - timedelta(hours=3 - number))
    make_due(60)
    assert [each.run for each in newest(now - timedelta(days=1), 10)] == [2, 2, 2, 1, 1, 1]
    assert [each.run for each in newest(now - timedelta(days=1), 4)] == [2, 2, 2, 1]
    assert [each.run for each in newest(now - timedelta(minutes=90), 10)] == [2, 2, 2]


def test_the_newest_take_few_queries(django_assert_num_queries: object) -> None:
    for number in (1, 2):
        a_capped_run(number)
    make_due(60)
    with django_assert_num_queries(2):  # type: ignore[operator]
        newest(timezone.now() - timedelta(days=1), 10)


def test_setup_makes_beat_tick() -> None:
    call_command("setup", stdout=StringIO(), stderr=StringIO())
    task = PeriodicTask.objects.get(name="findings")
    assert (task.task, task.interval.every) == (tasks.tick.name, 5)


def test_a_plans_own_factor_comes_before_ratios_of_its_charts() -> None:
    """Sequential reads are five times as fast as random ones, which nobody asked; the schedulers are equal."""
    lab = Lab(a_target(a_host("a"), "loop0"))
    for pattern, iops in (("randread", 1000.0), ("read", 5000.0)):
        for depth in (1, 2, 4, 8):
            for scheduler in ("none", "kyber"):
                values = [iops * depth * (1 + spread) for spread in (0.0, 0.1, -0.1)]
                lab.measure(*values, pattern=pattern, iodepth=depth, scheduler=scheduler)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    lab.run.refresh_from_db()
    found = kinds(run_answer(lab.run).findings)
    assert FindingKind.DIRECTION in found
    assert found[0] is FindingKind.EQUAL
    assert found[-1] is FindingKind.DIRECTION


def test_the_ratio_of_two_patterns_is_stated_once() -> None:
    """Several questions and both rates show that random access is slower."""
    lab = Lab(a_target(a_host("a"), "loop0"))
    for pattern, block, iops in (
        ("randread", 4096, 1000.0), ("read", 4096, 5000.0), ("randwrite", 131072, 1000.0), ("write", 131072, 4700.0),
    ):  # fmt: skip
        for engine in ("io_uring", "psync"):
            for scheduler in ("none", "kyber"):
                values = [iops * (1 + spread) for spread in (0.0, 0.05, -0.05)]
                lab.measure(*values, pattern=pattern, block_size=block, ioengine=engine, scheduler=scheduler)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    lab.run.refresh_from_db()
    ratios = [each for each in run_answer(lab.run).findings if each.kind in BETWEEN_CHARTS]
    assert len(ratios) == 2, [each.sentence for each in ratios]


@pytest.mark.parametrize("depths", [(4,), (1, 2, 4, 8)])
def test_reads_are_never_held_against_writes(depths: Sequence[int]) -> None:
    """With depths and without, where the patterns are the levels of x."""
    lab = Lab(a_target(a_host("a"), "loop0"))
    for pattern, direction, iops in (("randread", "read", 1000.0), ("randwrite", "write", 5000.0)):
        for depth in depths:
            values = [iops * depth * (1 + spread) for spread in (0.0, 0.001, -0.001)]
            lab.measure(*values, pattern=pattern, direction=direction, block_size=4096, iodepth=depth)
    made = run_answer(lab.run)
    claims = [made.claim, *(each.claim for each in made.findings)]
    assert all(" against " not in claim and " than " not in claim for claim in claims), claims
    assert "randread" in made.claim
    assert "randwrite" in made.claim
    if len(depths) == 1:
        assert made.claim == "randread reached 4.00k IOPS. randwrite reached 20.0k IOPS"


def test_a_limit_over_the_queue_depth_is_stated_in_one_rate() -> None:
    """At each block size, bandwidth is IOPS times the block size."""
    lab = Lab(a_target(a_host("a"), "loop0"))
    for block, iops in ((4096, 1000.0), (131072, 100.0)):
        for depth in (1, 2, 4, 8, 16, 32):
            lab.measure(*(iops * min(depth, 4),) * 3, block_size=block, iodepth=depth)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    lab.run.refresh_from_db()
    limits = [each for each in run_answer(lab.run).findings if each.kind is FindingKind.SATURATION]
    assert len(limits) == 2, [each.sentence for each in limits]
