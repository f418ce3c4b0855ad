"""Goals of plans: their text, what a search refuses, and what its run costs at most."""

from dataclasses import replace

import msgspec
import pytest

from webapp.plans.document import Order, Part, PlanDocument, PlanFileRefused, export_plan, import_plan, read_budget
from webapp.plans.estimate import estimate, outline
from webapp.plans.expand import expand
from webapp.plans.goal import EXAMPLE, LEAST_BUDGET, SUFFIXES, Goal, GoalRefused, budget_of, read_goal
from webapp.plans.grids import document_problems
from webapp.plans.jobfile.reader import read_job_file
from webapp.plans.jobfile.writer import write_job_file
from webapp.plans.part_levels import PLAN_PROBLEM
from webapp.plans.search_space import spaces_of, within_budget
from webapp.plans.tests.helpers import device, directory, document, part
from webapp.plans.values import ValueRefused
from webapp.results.metrics import METRICS
from webapp.screens.plans.draft import checked, draft_of
from webapp.tuning.search import MIN_BUDGET

FACTORS = {"iodepth": "1..64 *2", "numjobs": "1, 2, 4", "direct": "off, on"}


def searched(*parts: Part, **given: object) -> PlanDocument:
    return document(*(parts or (part(grid=FACTORS),)), **({"repeats": 1, "goal": EXAMPLE} | given))


def refused(plan: PlanDocument) -> list[str]:
    return [problem.place for problem in document_problems(plan)]


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        (EXAMPLE, Goal("iops", True, "latency_p99", True, 1e6)),
        ("lowest latency_mean", Goal("latency_mean", False)),
        ("lowest latency_p99  where iops >= 50k", Goal("latency_p99", False, "iops", False, 50e3)),
        ("highest iops where bytes_per_s>=2.5 GB/s", Goal("iops", True, "bytes_per_s", False, 2.5e9)),
        ("highest bytes_per_s where latency_p999 <= 300µs", Goal("bytes_per_s", True, "latency_p999", True, 300e3)),
    ],
)
def test_a_goal_is_a_metric_and_perhaps_a_limit(text: str, goal: Goal) -> None:
    assert read_goal(text) == goal


@pytest.mark.parametrize(
    "text",
    ["fast", "highest speed", "highest iops where latency_p99 <= 1", "highest iops where latency_p99 <= 0ms",
     "highest iops where latency_p99 < 1ms", "highest iops where iops >= 5ms", "best iops"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(GoalRefused):
        read_goal(text)


def test_its_metrics_are_those_of_the_table_of_metrics() -> None:
    assert SUFFIXES.keys() == METRICS.keys()
    assert LEAST_BUDGET == MIN_BUDGET


def test_a_plan_with_a_goal_is_sound() -> None:
    assert document_problems(searched()) == ()


@pytest.mark.parametrize(
    ("plan", "places"),
    [
        (searched(goal="fast"), ["goal"]),
        (searched(goal="", budget=80), ["budget"]),
        (searched(budget=31), ["budget"]),
        (searched(goal="", budget_s=60), ["budget"]),
        (searched(repeats=3), ["repeats"]),
        (searched(spread_percent=5), ["spread_percent"]),
        (searched(decide_percent=5), ["decide_percent"]),
        (searched(order=Order.LISTED), ["order"]),
        (searched(part("a", FACTORS), part("b", FACTORS)), ["goal"]),
        (searched(part(iodepth="1, 2", at_once="1, 2")), ["goal"]),
        (searched(part(iodepth="1")), ["goal"]),
        (searched(part(iodepth="1..100 +1", numjobs="1..100 +1")), ["goal"]),
        (searched(goal="lowest tps"), ["goal"]),
        (searched(msgspec.structs.replace(part(grid=FACTORS), before=("once flush",))), ["goal"]),
    ],
)
def test_it_refuses_what_a_search_cannot_do(plan: PlanDocument, places: list[str]) -> None:
    assert refused(plan) == places


def test_files_keep_the_goal() -> None:
    plan = searched(budget=64)
    assert import_plan(export_plan(plan)) == plan
    assert import_plan(export_plan(plan).replace("budget: 64", "budget: 64 trials")) == plan
    from_jobs = read_job_file(write_job_file(plan))
    assert (from_jobs.goal, from_jobs.budget) == (EXAMPLE, 64)


@pytest.mark.parametrize(
    ("text", "trials", "seconds"),
    [("30 minutes", 0, 1800), ("2h", 0, 7200), ("80 trials, 30 min", 80, 1800), ("1 hour, 40", 40, 3600)],
)
def test_a_budget_is_a_number_of_trials_or_a_time_or_both(text: str, trials: int, seconds: int) -> None:
    plan = searched(budget=trials, budget_s=seconds)
    assert read_budget(text) == {"budget": trials, "budget_s": seconds}
    assert import_plan(export_plan(plan)) == plan
    from_jobs = read_job_file(write_job_file(plan))
    assert (from_jobs.budget, from_jobs.budget_s) == (trials, seconds)
    assert checked(draft_of(plan)).document == plan


@pytest.mark.parametrize("text", ["soon", "80, 90", "30 minutes, 1h", "0s", "-1", "", "31 days"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(ValueRefused):
        read_budget(text)
    with pytest.raises(PlanFileRefused):
        import_plan(export_plan(searched(budget=64)).replace("64 trials", f"'{text}'").replace(": 64", f": '{text}'"))
    assert [problem.place for problem in checked(replace(draft_of(searched()), budget=text)).problems] == ["budget"]


def test_a_time_bounds_the_trials_and_the_estimate() -> None:
    """Trials of 10 s at least; the two targets of one host share the time."""
    common = {"runtime": "9s", "ramp": "1s", "size": "64M"}
    plan = searched(budget_s=1200, common=common)
    expansion = expand(plan, [directory()], seed=1)
    assert (expansion.budget, expansion.budget_s) == (120, 1200)
    assert estimate(expansion).seconds == 1200
    assert expand(searched(budget=40, budget_s=1200, common=common), [directory()], seed=1).budget == 40
    assert expand(plan, [directory(), device()], seed=1).budget == 60
    assert outline(plan).trials_high == 120
    assert outline(plan).seconds == 1200
    assert expand(searched(budget_s=300, common=common), [directory()], seed=1).problem_code == PLAN_PROBLEM


def test_it_costs_its_budget() -> None:
    expansion = expand(searched(), [directory()], seed=1)
    assert (len(expansion.trials), estimate(expansion).trials) == (42, 80)
    assert estimate(expand(searched(budget=32), [directory(), device()], seed=1)).trials == 64
    assert outline(searched(budget=32)).trials_high == 32
    assert [budget_of(searched(), count) for count in (42, 960)] == [80, 144]


def test_written_bytes_are_bounded_by_the_combination_that_writes_the_most() -> None:
    plan = searched(part(pattern="write", amount="16M, 64M", iodepth="1, 2"), budget=32, common={"size": "64M"})
    expansion = expand(plan, [device()], seed=1)
    assert estimate(expansion).written_most == {"loop": 32 * 64 * 2**20}
    assert {trial.point["amount"] for trial in within_budget(expansion).trials} == {64 * 2**20}


def test_a_space_has_one_number_for_each_point() -> None:
    (space,) = spaces_of(expand(searched(part(grid=FACTORS)), [directory()], seed=1)).values()
    assert space.levels == {"iodepth": (1, 2, 4, 8, 16, 32, 64), "numjobs": (1, 2, 4), "direct": (False, True)}
    assert sorted(space.by_number) == list(range(42))
    assert space.places_of("iodepth") == (0, 1, 2, 3, 4, 5, 6)
    assert space.places_of("direct") == ()


def test_combinations_that_a_rule_leaves_out_have_no_number() -> None:
    plan = searched(msgspec.structs.replace(part(grid=FACTORS), rules=("except iodepth=64; numjobs=4",)))
    (space,) = spaces_of(expand(plan, [directory()], seed=1)).values()
    assert len(space.by_number) == 40
