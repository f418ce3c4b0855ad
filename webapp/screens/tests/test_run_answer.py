"""The page of an ended run: its answer, what one can trust, warnings and small charts."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client

from webapp.analysis.answer import Conclusion, FindingKind, Sentence
from webapp.analysis.claims import listed
from webapp.analysis.reviews import review_finding, stated_in
from webapp.analysis.run_answer import BETWEEN_CHARTS, run_answer
from webapp.analysis.run_findings import make_due as make_findings
from webapp.notices.models import Notice
from webapp.notices.tasks import announce_run
from webapp.results.models import Result
from webapp.results.validity import mark_run
from webapp.runs.models import Run, RunState, Trial, TrialState
from webapp.screens.findings import as_heading, below_heading
from webapp.screens.outcome import outcome_of
from webapp.screens.runs.answer import heading, short_names, trust
from webapp.screens.runs.multiples import Chart, multiples_of
from webapp.screens.templatetags.verdicts import results_of
from webapp.screens.trend.claims import trend_address
from webapp.tests.factories.hosts import a_drive, a_host, a_target
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS, START, Lab
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights

DEPTHS = (1, 4, 16)


@pytest.fixture
def run(db: None) -> Run:
    """mq-deadline is 40 % faster than none at queue depth 16, 40 % slower at 4, and as fast at 1; measured in turns."""
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    noise = random.Random(3)
    for block_size in (4096, 16384):
        for depth in DEPTHS:
            for scheduler, speed in (("none", 1.0), ("mq-deadline", {1: 1.0, 4: 0.6, 16: 1.4}[depth])):
                rates = [1000.0 * depth * speed * noise.uniform(0.998, 1.002) for _ in range(6)]
                facts = FACTS | {"device.scheduler": scheduler}
                lab.measure(*rates, scheduler=scheduler, iodepth=depth, block_size=block_size, facts=facts)
    _in_turns(lab.run)
    return _ended(lab.run)


def _in_turns(run: Run) -> None:
    """Each repeat measures all points, in an order of its own."""
    order = random.Random(4)
    results = list(Result.objects.filter(run=run).order_by("repeat", "id"))
    for repeat in range(1, 7):
        own = [result for result in results if result.repeat == repeat]
        order.shuffle(own)
        for place, result in enumerate(own):
            Result.objects.filter(pk=result.pk).update(measured_at=START + timedelta(minutes=100 * repeat + place))


def _ended(run: Run) -> Run:
    Run.objects.filter(pk=run.pk).update(ended_at=START + timedelta(hours=1), trial_count=run.trials.count())
    run.refresh_from_db()
    return run


def shown(client: Client, run: Run) -> Any:
    response = client.get(f"/runs/{run.number}/")
    assert response.status_code == 200
    return response.context


def marks_of(chart: Chart | None) -> list[str]:
    assert chart
    return [point.mark for line in chart.lines for point in line.points]


def test_the_heading_is_the_first_finding_without_its_interval(operator: Client, run: Run) -> None:
    page = shown(operator, run)
    sentence = page["findings"].first[0].finding.sentence
    assert page["heading"]
    assert "CI" not in page["heading"]
    assert page["heading"].split()[:3] == sentence.split()[:3]
    assert f"<h1>{page['heading']}</h1>" in operator.get(f"/runs/{run.number}/").content.decode()


def test_a_ratio_between_charts_is_no_heading(operator: Client, db: None) -> None:
    """Sequential reads are four times as fast, but the plan compares schedulers, which are not told apart."""
    lab, noise = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1")), random.Random(5)
    for pattern, speed in (("randread", 1000.0), ("read", 4000.0)):
        for scheduler in ("none", "mq-deadline"):
            rates = [speed * noise.uniform(0.8, 1.2) for _ in range(3)]
            facts = FACTS | {"device.scheduler": scheduler}
            lab.measure(*rates, scheduler=scheduler, pattern=pattern, block_size=4096, iodepth=4, facts=facts)
    page = shown(operator, _ended(lab.run))
    assert any(each.finding.kind in BETWEEN_CHARTS for each in page["findings"].first)
    of_levels = "no certain difference in IOPS of I/O scheduler none against mq-deadline"
    assert page["heading"] == f"randread and read: {of_levels}"


def test_a_plan_that_compares_nothing_has_no_ratio_of_reads_to_writes(operator: Client, db: None) -> None:
    """Its factors are axes of load, about which nobody asks for a difference."""
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    for pattern, speed in (("randread", 1000.0), ("randwrite", 2000.0)):
        for depth in DEPTHS:
            lab.measure(speed * depth, pattern=pattern, block_size=4096, iodepth=depth, facts=FACTS)
    page = shown(operator, _ended(lab.run))
    assert page["outcome"].lines
    assert not any(each.finding.kind in BETWEEN_CHARTS for each in page["findings"].first)
    assert page["heading"].startswith("randread")


def test_the_heading_is_not_repeated_below_it(operator: Client, run: Run) -> None:
    page = shown(operator, run)
    first = page["findings"].first[0]
    assert page["heading"] not in first.text
    texts = Sentence(("bfq is 8 % slower than none", "95 % CI 7 % to 9 %, n = 5")).texts
    finding = msgspec.structs.replace(first.finding, **texts)
    findings = (replace(first, finding=finding, text=finding.sentence),)
    (below,) = below_heading(findings, "bfq is 8 % slower than none")
    assert below.text.endswith(": 95 % CI 7 % to 9 %, n = 5")
    assert below_heading(findings, "bfq is 8 % …") == findings  # the heading was cut
    certain = msgspec.structs.replace(finding, certainty="")
    (below,) = below_heading((replace(first, finding=certain),), "bfq is 8 % slower than none")
    assert (first.chart is not None, below.text) == (True, "")
    (below,) = below_heading((replace(first, finding=certain, chart=None),), "bfq is 8 % slower than none")
    assert below.text == "Open the charts"


def test_the_doubt_of_the_heading_stands_below_it(operator: Client, run: Run) -> None:
    page = shown(operator, run)
    first = page["findings"].first[0]
    doubt = "may be chance: 3 repeats do not exclude it"
    finding = msgspec.structs.replace(
        first.finding, **Sentence(("bfq is 8 % slower than none", "95 % CI 7 % to 9 %, n = 3"), doubt).texts
    )
    outcome = replace(page["outcome"], claim=finding.claim, stated=finding)
    title = heading(run, outcome)
    assert title == "bfq is 8 % slower than none"
    shown_first = replace(first, finding=finding, text=finding.sentence, doubt="may be chance")
    (below,) = below_heading((shown_first,), title)
    assert (below.text.endswith(": 95 % CI 7 % to 9 %, n = 3"), below.doubt) == (True, "")
    doubts = [each.words for each in trust(run, list(run.trials.all()), (), outcome) if not each.is_good]
    assert doubts == [doubt]


def test_the_doubt_of_a_finding_that_is_not_in_the_heading_does_not_stand_below_it(operator: Client, run: Run) -> None:
    doubtful = Sentence(("write against read: +78 % in IOPS",), "may be chance: 3 repeats do not exclude it").texts
    answer = run_answer(run)
    ratio = msgspec.structs.replace(answer.findings[0], **doubtful, kind=FindingKind.RATIOS)
    (factor,) = answer.factors
    factor = msgspec.structs.replace(factor, conclusion=Conclusion.NONE)
    assert stated_in(msgspec.structs.replace(answer, findings=(ratio,))) == ratio
    assert stated_in(msgspec.structs.replace(answer, findings=(ratio,), factors=(factor,))) is None
    outcome = replace(shown(operator, run)["outcome"], stated=None)
    assert all(each.is_good for each in trust(run, list(run.trials.all()), (), outcome))


def test_one_headline_of_a_run_also_after_its_finding_was_dismissed(operator: Client, run: Run) -> None:
    """Page, list, API, notice and schedules state the same finding."""
    a_subscription()
    person, claims = a_user("ann"), []
    for _ in range(2):
        page, answer = shown(operator, run), operator.get(f"/api/v1/runs/{run.number}/answer").json()
        first = page["findings"].first[0].finding
        assert (answer["headline"], answer["claim"], outcome_of(run).says) == (
            first.sentence, first.claim, first.sentence,
        )  # fmt: skip
        assert page["heading"].startswith(as_heading(first.claim).removesuffix(" …").split("storage1")[0])
        make_findings(60)
        assert results_of([run])[run.pk] == first.sentence
        Run.objects.filter(pk=run.pk).update(announced_at=None)
        Notice.objects.all().delete()
        assert announce_run(run.pk)
        notice = Notice.objects.get()
        assert f"Result: {first.sentence}" in notice.text.splitlines()
        assert notice.payload["detail"]["headline"] == first.sentence
        claims.append(first.claim)
        review_finding(of=run, key=first.key, verdict="dismissed", reason="", by=person)
    assert claims[0] != claims[1]


def test_what_one_can_trust_stands_below_the_heading(operator: Client, run: Run) -> None:
    reasons = {each.words: each.is_good for each in shown(operator, run)["trust"]}
    assert reasons == {"6 repeats, random order": True, "nothing else differs": True}


def test_the_point_with_the_fewest_valid_repeats_counts(operator: Client, run: Run) -> None:
    few = list(run.trials.filter(point__iodepth=16))
    Trial.objects.filter(pk__in=[trial.pk for trial in few if trial.repeat > 2]).update(state=TrialState.CANCELLED)
    Trial.objects.filter(pk__in=[trial.pk for trial in few if trial.repeat == 2]).update(invalid_reason="cable")
    assert "1 to 6 repeats: too few for some claims" in [each.words for each in shown(operator, run)["trust"]]
    mark_run(run=run, reason="wrong cable", by=a_user("ann"))
    assert shown(operator, run)["trust"] == []


def test_what_differs_from_the_previous_run_counts_if_the_heading_is_about_both(operator: Client, db: None) -> None:
    nights = Nights(a_version(), a_target(a_host("a"), "loop0"))
    nights.run(1000, 2000, 4000)
    is_alone = []
    for speed, facts in ((0.8, FACTS), (0.6, FACTS | {"kernel.release": "6.12.0"})):
        later = nights.run(*(speed * level for level in (1000, 2000, 4000)), facts=facts)
        Run.objects.filter(pk=later.pk).update(trial_count=later.trials.count())
        page = shown(operator, later)
        assert page["findings"].first[0].finding.kind is FindingKind.CHANGED
        is_alone.append(page["trust"][1].is_good)
    assert is_alone == [True, False]


def test_single_values_are_a_doubt(operator: Client, db: None) -> None:
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    for depth in DEPTHS:
        lab.measure(100.0 * depth, iodepth=depth)
    assert not shown(operator, _ended(lab.run))["trust"][0].is_good


def test_charts_have_the_ratios_of_the_factor_by_load(run: Run) -> None:
    (multiples,) = multiples_of(run)
    assert [name for name, _ in multiples.names] in (["mq-deadline"], ["I/O scheduler none"])
    assert multiples.x_label == "queue depth"
    (row,) = multiples.rows
    assert [column.title for column in row.columns] == ["4 KiB", "16 KiB"]
    sign = 1 if multiples.baseline.endswith("none") else -1
    for column in row.columns:
        assert marks_of(column.chart) in (["equal", *_claims(sign)], ["unclear", *_claims(sign)])
        assert column.chart
        assert [tick.text for tick in column.chart.x_ticks] == ["1", "4", "16"]
        (line,) = column.chart.lines
        ys = [float(point.y) for point in line.points]
        one = float(column.chart.baseline)
        assert sign * (ys[1] - one) > 10  # SVG's y grows downwards: slower is below
        assert sign * (one - ys[2]) > 10
        assert all(float(point.high) < float(point.low) for point in line.points)


def _claims(sign: int) -> list[str]:
    return ["slower", "faster"] if sign > 0 else ["faster", "slower"]


def test_charts_follow_marks(run: Run) -> None:
    assert multiples_of(run)
    mark_run(run=run, reason="wrong cable", by=None)
    assert multiples_of(run) == ()


def test_two_targets_are_two_rows(db: None) -> None:
    host = a_host("storage1")
    lab = Lab(a_drive(host, "nvme0", model="A", serial="S1"))
    other = a_drive(host, "nvme1", model="B", serial="S2")
    lab.run.targets.add(other)
    for target in (lab.target, other):
        for block_size in (4096, 16384):
            for depth in DEPTHS:
                for scheduler, speed in (("none", 100.0), ("bfq", 80.0)):
                    facts = FACTS | {"device.scheduler": scheduler}
                    rates = (speed, speed * 1.01, speed * 0.99)
                    lab.measure(
                        *rates, target=target, facts=facts, scheduler=scheduler, iodepth=depth, block_size=block_size
                    )
    (multiples,) = multiples_of(_ended(lab.run))
    assert [row.title for row in multiples.rows] == ["storage1/nvme0", "storage1/nvme1"]
    assert [[column.title for column in row.columns] for row in multiples.rows] == [["4 KiB", "16 KiB"]] * 2


def test_a_run_of_one_load_has_no_charts(db: None) -> None:
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    lab.measure(100.0, 101.0, 102.0)
    assert multiples_of(_ended(lab.run)) == ()


def test_warnings_stand_at_full_size(operator: Client, run: Run) -> None:
    trial = run.trials.order_by("index")[0]
    Trial.objects.filter(pk=trial.pk).update(state=TrialState.FAILED, reason_code="fio_error")
    texts = [warning.text for warning in shown(operator, run)["warnings"]]
    assert any(text.startswith("1 of ") for text in texts)
    mark_run(run=run, reason="wrong cable", by=None)
    assert any("wrong cable" in warning.text for warning in shown(operator, run)["warnings"])


def test_the_newest_run_of_a_trend_that_got_slower_says_so(operator: Client, db: None) -> None:
    """The run before it was slow, too, so the findings of the run alone are that nothing has changed."""
    nights = Nights(a_version(), a_target(a_host("a"), "scratch"))
    runs = [nights.run(level) for level in (*[1000.0] * 8, *[800.0] * 5)]
    Run.objects.update(state=RunState.DONE)
    make_due(60)
    trends = [[warning.trend for warning in shown(operator, run)["warnings"]] for run in runs[-2:]]
    assert trends == [[], [trend_address(nights.version.plan, nights.target)]]


def test_a_run_without_results_says_so(operator: Client, db: None) -> None:
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    page = shown(operator, _ended(lab.run))
    assert page["heading"] == f"Run {lab.run.number} has no valid results"
    assert page["trust"] == []


def test_samples_of_an_ended_run_are_folded(operator: Client, run: Run) -> None:
    page = operator.get(f"/runs/{run.number}/").content.decode()
    assert '<details class="card" id="run-samples">' in page
    Run.objects.filter(pk=run.pk).update(state="running", ended_at=None)
    assert 'id="run-samples"' not in operator.get(f"/runs/{run.number}/").content.decode()


def test_two_levels_without_a_certain_difference_in_one_chart_are_named(operator: Client, db: None) -> None:
    """Their shared sentence has no chart to name: the answer ended in an error."""
    lab = Lab(a_drive(a_host("storage1"), "nvme0", model="A", serial="S1"))
    for scheduler, speed in (("none", 100.0), ("bfq", 103.0), ("kyber", 98.0)):
        rates = (speed, speed * 1.1, speed * 0.9)
        lab.measure(*rates, scheduler=scheduler, facts=FACTS | {"device.scheduler": scheduler})
    assert "bfq" in shown(operator, _ended(lab.run))["heading"]
    assert listed([]) == ""


def test_targets_of_one_host_are_named_without_it(db: None) -> None:
    host = a_host("storage1")
    here = [a_drive(host, "nvme1", model="A", serial="S1"), a_drive(host, "nvme10", model="B", serial="S2")]
    sentence = "storage1/nvme10 is 8 % slower than storage1/nvme1"
    assert short_names(sentence, here) == "nvme10 is 8 % slower than nvme1"
    elsewhere = a_drive(a_host("storage2"), "nvme1", model="A", serial="S3")
    assert short_names(sentence, [*here, elsewhere]) == sentence
