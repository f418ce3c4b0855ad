"""Imports as baselines: which runs they judge, and that an import stays while runs are judged by it."""

import pytest

from webapp.core.errors import Refusal
from webapp.core.models import Role, User
from webapp.imports.services import undo_import
from webapp.results.models import Import, Result
from webapp.runs.models import Run
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.trends.judging import Outcome
from webapp.trends.models import Baseline
from webapp.trends.selectors import outcomes_on, verdicts_on
from webapp.trends.services import remove_baseline, set_baseline, set_import_baseline
from webapp.trends.tests.measuring import Nights

# One value at each queue depth: no interval.
ACCEPTED = """pattern,block_size,iodepth,iops
randread,4k,1,1000
randread,4k,2,4000
"""


@pytest.fixture
def olga(db: None) -> User:
    return a_user("olga", role=Role.ADMIN)


@pytest.fixture
def accepted(olga: User) -> Import:
    return an_import(by=olga, title="Accepted system", text=ACCEPTED)


def judge_by(nights: Nights, accepted: Import, olga: User, **changes: object) -> Baseline:
    given = {"levels": {}, "ignored": ["unstated"], "single_values": True, "tolerances": {"iops": 5.0}, **changes}
    return set_import_baseline(
        plan=nights.version.plan, target=nights.target, imported=accepted, by=olga, **given,  # type: ignore[arg-type]
    )  # fmt: skip


def outcome(run: Run) -> Outcome | None:
    return outcomes_on([run]).get(run.pk)


def test_an_import_judges_earlier_and_later_runs(nights: Nights, accepted: Import, olga: User) -> None:
    before = nights.run(1000, 4000)
    judge_by(nights, accepted, olga)
    slow = nights.run(1000, 3000)
    assert (outcome(before), outcome(slow)) == (Outcome.PASSES, Outcome.FAILS)
    (verdict,) = verdicts_on(slow)
    assert [row.outcome for row in verdict.rows] == [Outcome.PASSES, Outcome.FAILS]
    assert [row.single_values for row in verdict.rows] == [True, True]
    assert [verdict.points[row.cell[0]]["iodepth"] for row in verdict.rows if row.cell] == [1, 2]


def test_without_single_values_and_with_all_factors_nothing_is_claimed(
    nights: Nights, accepted: Import, olga: User
) -> None:
    run = nights.run(1000, 3000)
    judge_by(nights, accepted, olga, single_values=False)
    assert outcome(run) is Outcome.UNCLEAR
    judge_by(nights, accepted, olga, ignored=[])
    (verdict,) = verdicts_on(run)
    assert {row.not_measured for row in verdict.rows} == {True}  # the import does not state the options of fio
    assert outcome(run) is Outcome.UNCLEAR


def test_an_outcome_follows_invalid_results_of_the_import(nights: Nights, accepted: Import, olga: User) -> None:
    run = nights.run(1000, 3000)
    judge_by(nights, accepted, olga)
    assert outcome(run) is Outcome.FAILS
    Result.objects.filter(origin__imported=accepted, point__iodepth=2).update(invalid=True)
    assert outcome(run) is Outcome.PASSES


def test_a_chosen_level_of_the_import_is_compared_with_any_level_of_the_run(
    nights: Nights, accepted: Import, olga: User
) -> None:
    one_depth, two_depths = nights.run(4000), nights.run(1000, 4000)
    judge_by(nights, accepted, olga, levels={"factor.iodepth": "2"})
    assert outcome(one_depth) is Outcome.PASSES
    (verdict,) = verdicts_on(two_depths)  # a row would mix both depths
    assert (verdict.outcome, verdict.rows) == (Outcome.UNCLEAR, ())
    assert verdict.problem.startswith("One side has several different results in one row")
    with pytest.raises(Refusal, match=r"has no results at factor\.iodepth=7"):
        judge_by(nights, accepted, olga, levels={"factor.iodepth": "7"})


def test_it_replaces_a_run_and_a_run_replaces_it(nights: Nights, accepted: Import, olga: User) -> None:
    first = nights.run(1000, 4000)
    set_baseline(run=first, target=nights.target, tolerances={"iops": 5.0}, by=olga)
    assert judge_by(nights, accepted, olga).name == "Accepted system"
    made = set_baseline(run=first, target=nights.target, tolerances={"iops": 5.0}, by=olga)
    assert (made.name, made.imported, made.ignored) == ("run 1", None, [])
    assert Baseline.objects.count() == 1


def test_an_import_stays_while_runs_are_judged_by_it(nights: Nights, accepted: Import, olga: User) -> None:
    baseline = judge_by(nights, accepted, olga)
    with pytest.raises(Refusal, match="is the baseline of nightly on a/scratch"):
        undo_import(accepted, by=olga)
    assert Import.objects.filter(pk=accepted.pk).exists()
    remove_baseline(baseline=baseline, by=olga)
    undo_import(accepted, by=olga)
    assert not Import.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tolerances": {"latency_p99": 5.0}}, "has no values of"),
        ({"ignored": ["speed"]}, "There is no factor `speed` to ignore"),
        ({"tolerances": {}}, "Enter a tolerance"),
    ],
)
def test_it_refuses_what_judges_nothing(
    nights: Nights, accepted: Import, olga: User, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        judge_by(nights, accepted, olga, **changes)
    assert not Baseline.objects.exists()
