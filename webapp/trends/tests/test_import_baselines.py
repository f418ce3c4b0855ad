"""Imports as baselines: which runs they judge, and that an import stays while runs are judged by it."""

import pytest
from django.test import Client

from webapp.analysis.verdicts import Outcome
from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role, User
from webapp.imports.services import undo_import
from webapp.results.metrics import Missing
from webapp.results.models import Import, ImportState, Result, known
from webapp.runs.models import FurtherTarget, Run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.tests.refusals import refuses
from webapp.trends import selectors
from webapp.trends.models import Baseline
from webapp.trends.selectors import outcomes_on, verdicts_on
from webapp.trends.services import remove_baseline, set_baseline, set_import_baseline
from webapp.trends.tests.measuring import Nights
from webapp.trends.two_sides import Side, import_side

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
    given = {"target": nights.target, **given}
    return set_import_baseline(plan=nights.version.plan, imported=accepted, by=olga, **given)  # type: ignore[arg-type]


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


def test_without_single_values_nothing_is_claimed(nights: Nights, accepted: Import, olga: User) -> None:
    run = nights.run(1000, 3000)
    judge_by(nights, accepted, olga, single_values=False)
    assert outcome(run) is Outcome.UNCLEAR


def test_a_factor_that_only_the_import_states_must_be_ignored(nights: Nights, olga: User) -> None:
    """The options of fio, which it does not state, need not be."""
    run = nights.run(1000, 3000)
    text = "pattern,block_size,iodepth,read_ahead_sectors,iops\nrandread,4k,1,256,1000\nrandread,4k,2,256,4000\n"
    accepted = an_import(by=olga, title="Accepted system", text=text)
    judge_by(nights, accepted, olga, ignored=[])
    assert outcome(run) is Outcome.UNCLEAR
    (verdict,) = verdicts_on(run)
    assert [row.missing for row in verdict.rows] == [Missing.NOT_MEASURED, Missing.NOT_MEASURED]
    judge_by(nights, accepted, olga, ignored=["unstated"])
    assert outcome(run) is Outcome.FAILS
    judge_by(nights, accepted, olga, ignored=["read_ahead_sectors"])
    assert outcome(run) is Outcome.FAILS


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
    assert "several levels of queue depth (1, 2)" in verdict.problem
    with pytest.raises(Refusal, match=r"has no valid results at factor\.iodepth=7"):
        judge_by(nights, accepted, olga, levels={"factor.iodepth": "7"})


def test_a_chosen_level_without_valid_results_is_not_replaced_by_others(
    nights: Nights, accepted: Import, olga: User
) -> None:
    run = nights.run(2000)
    judge_by(nights, accepted, olga, levels={"factor.iodepth": "2"})
    assert outcome(run) is Outcome.FAILS  # against 4000
    Result.objects.filter(origin__imported=accepted, point__iodepth=2).update(invalid=True)
    assert outcome(run) is Outcome.UNCLEAR  # 1000 was accepted at another queue depth
    (verdict,) = verdicts_on(run)
    assert verdict.problem == "Import 1 has no valid results at factor.iodepth=2. Choose another level."


def test_results_of_several_targets_at_once_are_not_those_of_the_target(
    nights: Nights, accepted: Import, olga: User
) -> None:
    lab, second = nights.lab(), a_target(nights.target.host, "second")
    for depth, iops in ((1, 1000), (2, 4000)):
        lab.measure(iops, iodepth=depth, at_once=1)
        (both,) = lab.measure(2 * iops, iodepth=depth, at_once=2)
        FurtherTarget.objects.create(trial=known(both.trial), stream=1, target=second)
    judge_by(nights, accepted, olga)
    (verdict,) = verdicts_on(lab.run)
    assert [(row.baseline, row.value) for row in verdict.rows] == [(1000, 1000), (4000, 4000)]
    assert outcome(lab.run) is Outcome.PASSES


def test_the_outcome_over_several_targets_counts_one_that_could_not_be_judged(
    nights: Nights, accepted: Import, olga: User
) -> None:
    lab, other = nights.lab(), a_target(a_host("b"), "scratch")
    lab.run.targets.add(other)
    for target in (nights.target, other):
        for depth, iops in ((1, 1000), (2, 4000)):
            lab.measure(iops, iodepth=depth, target=target)
    judge_by(nights, accepted, olga)
    judge_by(nights, accepted, olga, target=other, levels={"factor.iodepth": "2"})  # a row would mix both depths
    client = Client()
    client.force_login(olga)
    answer = client.get(f"/api/v1/runs/{lab.run.number}/verdict").json()
    assert [one["outcome"] for one in answer["targets"]] == ["passes", "unclear"]
    assert answer["outcome"] == outcome(lab.run) == "unclear"
    assert [row["single_values"] for row in answer["targets"][0]["rows"]] == [True, True]


def test_an_import_is_read_once_for_all_runs_of_a_list(
    nights: Nights, accepted: Import, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(number: int, levels: dict[str, str]) -> Side:
        read.append(number)
        return import_side(number, levels)

    judge_by(nights, accepted, olga)
    monkeypatch.setattr(selectors, "import_side", counted)
    outcomes_on([nights.run(1000, 4000) for _ in range(3)])
    assert read == [accepted.number]
    Result.objects.filter(origin__imported=accepted, point__iodepth=2).update(invalid=True)
    (verdict,) = verdicts_on(nights.run(1000))
    assert len(verdict.rows) == 1  # what is kept follows the results
    assert len(read) == 2


def test_it_replaces_a_run_and_a_run_replaces_it(nights: Nights, accepted: Import, olga: User) -> None:
    first = nights.run(1000, 4000)
    set_baseline(run=first, target=nights.target, tolerances={"iops": 5.0}, by=olga)
    assert judge_by(nights, accepted, olga).name == "Accepted system"
    assert AuditEntry.objects.filter(action="baseline.set").latest("pk").detail == {
        "import": 1, "tolerances": {"iops": 5.0}, "levels": {}, "ignored": ["unstated"], "single_values": True,
    }  # fmt: skip
    made = set_baseline(run=first, target=nights.target, tolerances={"iops": 5.0}, by=olga)
    assert (made.name, made.imported, made.ignored) == ("run 1", None, [])
    assert Baseline.objects.count() == 1


def test_an_import_stays_while_runs_are_judged_by_it(nights: Nights, accepted: Import, olga: User) -> None:
    baseline = judge_by(nights, accepted, olga)
    with refuses("import_is_baseline"):
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
        ({"levels": {"nonsense": "not set"}}, "has no valid results at nonsense=not set"),
        ({"levels": {"factor.speed": "not set"}}, "has no valid results at factor.speed=not set"),
        ({"levels": {"label.table": ""}}, "has no valid results at label.table="),  # an address cannot hold it
        ({"ignored": ["iodepth"]}, r"several levels of queue depth \(1, 2\)"),
    ],
)
def test_it_refuses_what_judges_nothing(
    nights: Nights, accepted: Import, olga: User, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        judge_by(nights, accepted, olga, **changes)
    assert not Baseline.objects.exists()


def test_an_import_that_is_still_being_read_is_refused(nights: Nights, accepted: Import, olga: User) -> None:
    accepted.state = ImportState.READING
    with pytest.raises(Refusal, match="Import 1 has not ended"):
        judge_by(nights, accepted, olga)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"plan": "another"}, "There is no plan another."),
        ({"single_values": True}, "Levels, ignore and single_values are those of an import."),
        ({"levels": {"target": "a/scratch"}}, "Levels, ignore and single_values are those of an import."),
    ],
)
def test_a_baseline_run_has_no_choices_of_an_import(
    nights: Nights, olga: User, more: dict[str, object], words: str
) -> None:
    client, run = Client(), nights.run(1000)
    client.force_login(olga)
    given = {"run": run.number, "target": "a/scratch", "tolerances": {"iops": 5}}
    refused = client.post("/api/v1/baselines", {**given, **more}, "application/json")
    assert refused.status_code >= 400
    assert words in refused.content.decode()
    assert client.post("/api/v1/baselines", {**given, "plan": "nightly"}, "application/json").status_code == 201
