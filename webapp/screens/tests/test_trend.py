"""The page Trend, baseline runs on it, and verdicts on other pages."""

import re
from collections.abc import Callable
from dataclasses import astuple

import pytest
from django.test import Client

from webapp.analysis.dimensions import label_of_fact
from webapp.notices.models import Event, Notice
from webapp.notices.tasks import announce_run
from webapp.plans.models import PlanVersion
from webapp.results.models import Result, known
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS
from webapp.tests.factories.schedules import a_schedule
from webapp.trends import services
from webapp.trends.models import Baseline
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights

pytestmark = pytest.mark.django_db
ADDRESS = "/trends/?plan=nightly&target=a/scratch"
NEW_KERNEL = FACTS | {"kernel.release": "6.12.0"}


@pytest.fixture
def version() -> PlanVersion:
    return a_version(slug="nightly")


@pytest.fixture
def nights(version: PlanVersion) -> Nights:
    return Nights(version, a_target(a_host("a"), "scratch"))


@pytest.fixture
def slower(nights: Nights) -> Run:
    """Run 16: from run 12 on, the kernel is newer and everything is slower."""
    for _ in range(11):
        nights.run(1000, 4000)
    for _ in range(4):
        nights.run(800, 3200, facts=NEW_KERNEL)
    return nights.run(800, 3200, facts=NEW_KERNEL)


def page_of(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode()


def set_baseline(client: Client, **given: str) -> int:
    """The status of the answer."""
    form = {"plan": "nightly", "target": "a/scratch", "run": "1", "tolerance.iops": "5", **given}
    return client.post("/trends/baselines/", form).status_code


def test_it_shows_steps_with_their_date_size_and_what_changed(operator: Client, slower: Run) -> None:
    shown = page_of(operator, ADDRESS)
    assert '<strong class="worse">−20' in shown
    (heading,) = re.findall(r"<h1>(.*?)</h1>", shown)
    assert all(part in heading for part in ("IOPS", "−20", "since run 12", "changed"))
    assert 'from <a href="/runs/12/">run 12</a>' in shown
    assert "2024-05-13" in shown
    assert "Kernel: 6.1.0 → 6.12.0" in shown
    assert "Geometric mean over 2 cells" in shown


def test_trend_and_target_name_the_same_changes(operator: Client, nights: Nights) -> None:
    """A fact that is stated for the first time is no change, and one that a run does not state keeps its value."""
    for nodes in ({}, {"host.numa_nodes": "1"}, {}, {"host.numa_nodes": "2"}):
        nights.run(1000, facts=FACTS | nodes)
    expected = [(4, "host.numa_nodes", "1", "2")]
    in_trend = [(run.run.number, *astuple(change)) for run in nights.trend().runs for change in run.changed]
    parts = operator.get("/hosts/a/targets/scratch/").context["parts"]
    of_target = [(change.run, change.label, change.before, change.after) for change in parts.changes]
    assert in_trend == expected
    assert of_target == [(run, label_of_fact(name), *texts) for run, name, *texts in expected]


def test_a_change_has_the_digits_of_explore_on_every_page(operator: Client, nights: Nights) -> None:
    for speed in (*11 * [1000], *5 * [957.4]):
        nights.run(speed, spread=0.0001)
    make_due(60)
    made = operator.get("/api/v1/compare?x=iodepth&series=run&run=1&run=16&baseline=1&ratios=percent").json()
    (series,) = (each for each in made["panels"][0]["series"] if not each["is_baseline"])
    text = series["cells"][0]["against_baseline"]["text"]
    assert text == "−4.3 %"
    shown = page_of(operator, ADDRESS)
    assert set(re.findall(r"−4[.\d]* %", shown)) == {text}
    for address in ("/trends/", "/", "/hosts/a/"):
        assert set(re.findall(r"(?:▼ |−)(4[.\d]* %)", page_of(operator, address))) == {text.lstrip("−")}, address


def test_it_says_that_there_are_too_few_runs(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    nights.run(500)
    assert "Too few runs: the search for steps needs 13 runs, and there are 2." in page_of(operator, ADDRESS)


def test_the_text_below_the_chart_names_only_marks_that_are_drawn(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    nights.run(1000)
    shown = page_of(operator, ADDRESS)
    assert not re.findall(r"Red lines|Dashed|Dotted|Red diamonds|Chance alone|value 0", shown)


def test_the_text_below_the_chart_names_steps_baseline_run_and_failing_runs(operator: Client, slower: Run) -> None:
    set_baseline(operator)
    shown = page_of(operator, ADDRESS)
    for name in ("Red lines", "Dashed vertical lines", "Dotted grey line", "Red diamonds", "Chance alone"):
        assert name in shown


def test_the_address_holds_metric_factors_and_direction(operator: Client, nights: Nights) -> None:
    nights.run(1000, 4000)
    shown = page_of(operator, f"{ADDRESS}&metric=latency_mean&factor.iodepth=2&direction=read")
    assert "Mean latency" in re.findall(r"<h1>(.*?)</h1>", shown)[0]
    assert "One cell" in shown
    assert '<option value="2" selected>' in shown


@pytest.mark.parametrize("more", ["&metric=speed", "&factor.iodepth=7", "&direction=trim", "&factor.x=1", "&run=x"])
def test_a_choice_that_does_not_fit_is_dropped(operator: Client, nights: Nights, more: str) -> None:
    nights.run(1000, 4000)
    assert "Geometric mean over 2 cells" in page_of(operator, ADDRESS + more)


def test_the_value_of_one_cell_is_called_a_geometric_mean(operator: Client, nights: Nights) -> None:
    nights.lab().measure(1000, 1000, 8000, iodepth=1)
    shown = operator.get("/trends/?plan=nightly&target=a/scratch").content.decode()
    assert "2.00k" in shown  # Explore has the arithmetic mean, 3.33k
    assert "One cell, geometric mean over repeats" in shown
    assert "Each run: geometric mean over the repeats of one cell, with" in shown


def test_invalid_results_are_left_out_and_counted(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    Result.objects.filter(run=nights.run(500)).update(invalid=True)
    shown = page_of(operator, ADDRESS)
    assert "Left out: 3 invalid results; " in shown
    assert '<a href="/runs/2/">run 2</a> (no valid value of this metric)' in shown


def test_without_results_it_says_so(operator: Client, nights: Nights) -> None:
    assert "No ended run of this plan has a valid value of IOPS at a/scratch." in page_of(operator, ADDRESS)


def test_without_a_target_it_lists_them_and_opens_a_single_one(operator: Client, nights: Nights) -> None:
    assert "No run has ended yet." in page_of(operator, "/trends/")
    nights.run(1000)
    assert "No run has ended yet." not in page_of(operator, "/trends/")
    make_due(60)
    assert 'href="/trends/?plan=nightly&amp;target=a%2Fscratch"' in page_of(operator, "/trends/")
    for asked in ("plan=nightly", "target=a/scratch"):
        assert operator.get(f"/trends/?{asked}").headers["Location"] == "/trends/?plan=nightly&target=a%2Fscratch"
    assert "nightly" in page_of(operator, "/trends/?plan=unknown&target=a/unknown")


def test_the_list_folds_steady_trends_and_filters_by_verdict(
    operator: Client, slower: Run, nights: Nights, queries_of: Callable[[str], int]
) -> None:
    steady = Nights(nights.version, a_target(nights.target.host, "other"), count=nights.count)
    for _ in range(14):
        steady.run(1000)
    make_due(60)
    page = page_of(operator, "/trends/")
    assert "<h1>One target got slower</h1>" in page
    assert re.search(r">▼ 20 %<.*, kernel( release)? changed", page, re.IGNORECASE)
    folded = page[page.index('class="fold"') :]
    assert "a%2Fother" in folded
    assert "a%2Fscratch" not in folded
    only_steady = page_of(operator, "/trends/?state=steady")
    assert "a%2Fscratch" not in only_steady
    assert "a%2Fother" in only_steady
    assert page_of(operator, "/trends/?view=grid").count('class="spark-line') == 2
    before = queries_of("/trends/")
    third = Nights(nights.version, a_target(nights.target.host, "third"), count=steady.count)
    third.run(1000)
    make_due(60)
    assert queries_of("/trends/") == before
    page = page_of(operator, "/trends/")
    assert "1 steady, 1 too new to judge" in page
    assert "too few runs (1 of 13)" in page
    assert page.count("no change") == 1


def test_it_is_linked_from_plan_target_and_run(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    assert "/trends/?plan=nightly" in page_of(operator, "/plans/nightly/")
    assert "/trends/?target=a/scratch" in page_of(operator, "/hosts/a/targets/scratch/")
    assert "/trends/?plan=nightly&amp;target=a/scratch&amp;baseline=1#baseline" in page_of(operator, "/runs/1/")


def test_a_baseline_run_judges_later_runs_on_all_pages(operator: Client, slower: Run) -> None:
    assert set_baseline(operator) == 302
    badge = '<span class="badge state-badge state-failed">Fails</span>'
    shown = page_of(operator, "/runs/16/")
    assert badge in shown
    assert 'against baseline <a href="/runs/1/">run 1</a> at a/scratch: 3 rows fail.' in shown
    baseline = page_of(operator, "/runs/1/")
    assert "this is the baseline run" in baseline
    assert "Use as baseline run" not in baseline
    assert "Tolerances: IOPS −5 %." in shown
    assert page_of(operator, "/runs/").count(badge) == 5
    assert badge in page_of(operator, "/plans/nightly/")
    assert page_of(operator, ADDRESS).count(badge) == 5
    assert badge not in page_of(operator, "/runs/2/")


def test_the_verdict_is_that_of_the_target(operator: Client, nights: Nights) -> None:
    """The run fails at another target."""
    other, person, runs = a_target(nights.target.host, "other"), a_user("ann"), []
    for level in (1000, 700):
        lab = nights.lab()
        lab.run.targets.add(other)
        lab.measure(1000, 1000, 1000, target=nights.target)
        lab.measure(level, level, level, target=other)
        runs.append(lab.run)
    for target in (nights.target, other):
        services.set_baseline(run=runs[0], target=target, tolerances={"iops": 5.0}, by=person)
    for target, verdict in ((nights.target, "Passes"), (other, "Fails")):
        page = page_of(operator, f"/trends/?plan={nights.version.plan.slug}&target={target}")
        assert [each for each in ("Passes", "Fails") if f">{each}<" in page] == [verdict]


def test_the_form_keeps_its_values_when_it_is_refused(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    form = {"plan": "nightly", "target": "a/scratch", "run": "1", "tolerance.iops": "five"}
    response = operator.post("/trends/baselines/", form)
    assert response.status_code == 422
    shown = response.content.decode()
    assert "Not set: The tolerance of IOPS is &#x27;five&#x27;. Enter a number in percent." in shown
    assert 'value="five"' in shown
    assert set_baseline(operator, run="7") == 422
    assert set_baseline(operator, plan="unknown") == 404
    assert not Baseline.objects.exists()


def test_it_is_removed_and_only_operators_may(operator: Client, viewer: Client, nights: Nights) -> None:
    nights.run(1000)
    assert set_baseline(viewer) == 403
    assert set_baseline(operator) == 302
    baseline = Baseline.objects.get()
    assert operator.get(f"/trends/baselines/{baseline.pk}/").headers["Location"].startswith("/trends/?plan=nightly")
    assert "Setting a baseline requires the operator role." in page_of(viewer, ADDRESS)
    assert viewer.post(f"/trends/baselines/{baseline.pk}/remove/").status_code == 403
    operator.post(f"/trends/baselines/{baseline.pk}/remove/")
    assert not Baseline.objects.exists()


def test_a_notice_tells_that_a_run_is_worse(operator: Client, nights: Nights) -> None:
    a_subscription(events=[Event.WORSE])
    nights.run(1000)
    set_baseline(operator)
    announce_run(nights.run(1000).pk)
    assert not Notice.objects.exists()
    announce_run(nights.run(500).pk)
    notice = Notice.objects.get()
    assert (notice.event, notice.payload["run"]) == ("worse", 3)
    assert notice.subject == "Run 3 is worse than run 1, the baseline of A plan on a/scratch"
    assert notice.payload["detail"]["rows"] == {"total": 1, "fails": 1, "unclear": 0, "passes": 0}


def test_each_run_of_a_schedule_is_judged_against_the_baseline_run(operator: Client, nights: Nights) -> None:
    nights.run(1000)
    assert set_baseline(operator) == 302
    schedule = a_schedule(name="every night", version=nights.version, targets=[nights.target])
    for level in (1000, 500):
        run = nights.run(level)
        run.refresh_from_db()
        at = known(run.started_at)
        Occurrence.objects.create(schedule=schedule, due_at=at, state="ended", run=run, finished_at=at)
    shown = page_of(operator, f"/schedules/{schedule.pk}/")
    assert shown.count('<span class="badge state-badge state-failed">Fails</span>') == 1
    assert shown.count('<span class="badge state-badge state-done">Passes</span>') == 1


def test_it_takes_the_same_queries_for_any_number_of_runs(
    operator: Client, queries_of: Callable[[str], int], nights: Nights
) -> None:
    for _ in range(2):
        nights.run(1000)
    few = queries_of(ADDRESS)
    for _ in range(6):
        nights.run(1000)
    assert queries_of(ADDRESS) == few
