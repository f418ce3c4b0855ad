"""Stop rules in plans."""

import pytest

from webapp.plans.expand import expand
from webapp.plans.grids import document_problems
from webapp.plans.tests.helpers import device, directory, document, part
from worker.contract.workload import Confidence, FioWorkload, Settled


def test_a_rule_is_part_of_the_point_and_of_the_workload() -> None:
    plan = document(part(stop="confidence 2 %, settled 1min", runtime="120s", runtime_min="10s"))
    trials = expand(plan, [device()], seed=1).trials
    works = [trial.workload for trial in trials]
    assert {str(trial.point["stop"]) for trial in trials} == {"confidence 2%", "settled 60s"}
    rules = {work.stop for work in works if isinstance(work, FioWorkload)}
    assert rules == {Confidence(percent=2), Settled(hold_s=60)}
    assert {(work.least_time_s, work.time_s) for work in works} == {(10, 120), (60, 120)}


@pytest.mark.parametrize(
    ("factors", "least_s"),
    [({"runtime": "60s"}, 5), ({"runtime": "2h"}, 360), ({"runtime": "2h", "runtime_min": "10s"}, 10)],
)
def test_without_a_minimum_a_rule_waits_for_a_share_of_the_maximum_time(factors: dict[str, str], least_s: int) -> None:
    trial = expand(document(part(grid={"stop": "confidence 2%", **factors})), [device()], seed=1).trials[0]
    assert isinstance(trial.workload, FioWorkload)
    assert trial.workload.least_runtime_s == least_s


def test_a_point_without_a_rule_has_neither_factor() -> None:
    plain = expand(document(part()), [device()], seed=1).trials[0]
    assert not {"stop", "runtime_min"} & set(plain.point)
    without = expand(document(part(runtime_min="10s")), [device()], seed=1).trials[0]
    assert without.point_key == plain.point_key


@pytest.mark.parametrize(
    ("factors", "problem"),
    [
        ({"stop": "steady"}, "write it like `confidence 2%`, `settled 60s` or `snia 60s`"),
        ({"stop": "settled 10s", "runtime": "10s"}, "stop rule settled 10s needs at least 11 s: use a longer runtime"),
        ({"stop": "snia 60s", "runtime": "200s"}, "stop rule snia 60s needs at least 300 s: use a longer runtime"),
        ({"stop": "confidence 2%", "amount": "1G"}, "stop rule confidence 2% needs a runtime"),
        ({"stop": "confidence 2%", "runtime": "2d"}, "a stop rule needs a runtime of at most 24 h"),
        ({"stop": "confidence 2%", "hosts_at_once": "2"}, "no host knows the I/Os of all hosts"),
    ],
)
def test_a_rule_that_cannot_work_is_a_problem(factors: dict[str, str], problem: str) -> None:
    found = expand(document(part("main", factors)), [directory(), directory(id="other", name="a/other")], seed=1)
    assert any(problem in text for text in found.problems), found.problems


def test_a_rule_that_needs_more_than_the_time_is_a_problem_of_its_field() -> None:
    in_part = document(part(stop="settled 60s", runtime="30s"))
    assert [(one.place, one.message) for one in document_problems(in_part)] == [
        ("parts.0.factors.stop", "Stop rule settled 60s needs at least 60 s: use a longer runtime.")
    ]
    shared = {"size": "64M", "runtime": "30s", "stop": "settled 60s"}
    assert [one.place for one in document_problems(document(part("a"), part("b"), common=shared))] == ["common.stop"]
    assert document_problems(document(part(stop="settled 60s", runtime="30s, 90s"))) == ()
