"""The page Acceptance test: a candidate row by row against a baseline."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils.html import strip_tags

from webapp.core.models import Role
from webapp.hosts.models import Target
from webapp.imports.references.reading import load_references
from webapp.notices.models import Event, Notice
from webapp.notices.tasks import announce_run
from webapp.results.models import Import, Result, known
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.rows import read_rows
from webapp.runs.models import FurtherTarget, Run, RunState
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.notices import a_subscription
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import Lab
from webapp.trends.models import Baseline
from webapp.trends.services import set_import_baseline

pytestmark = pytest.mark.django_db
PAGE, FILE = "/trends/acceptance/", "/trends/acceptance.csv"
FAST, SLOW = (1000.0, 1001.0, 1002.0), (800.0, 801.0, 802.0)


@pytest.fixture
def target() -> Target:
    return a_target(a_host("a"), "scratch")


def shown(client: Client, query: str, status: int = 200) -> str:
    response = client.get(f"{PAGE}?{query}")
    assert response.status_code == status
    return response.content.decode()


def figures(page: str) -> list[int]:
    """Rows that fail, pass, are unclear, are not measured."""
    return [int(text) for text in re.findall(r'<span class="figure-value[^>]*>(\d+)</span>', page)]


def rows(page: str) -> list[list[str]]:
    body = page.split("rows-title")[2].split("<tbody>")[1].split("</tbody>")[0]
    return [
        [strip_tags(cell).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    ]


def iozone(*more: str) -> str:
    """The accepted system and the candidate of the reference library."""
    load_references()
    numbers = dict(Import.objects.values_list("slug", "number"))
    sides = {"baseline": "supermicro-arc1260", "candidate": "dell-pe2970-perc5i"}
    return "&".join([*(f"{side}=import%3D{numbers[slug]}" for side, slug in sides.items()), *more])


def test_it_asks_for_two_sides_and_offers_runs_imports_references_and_targets(operator: Client, target: Target) -> None:
    Lab(target).measure(*FAST)
    an_import(title="Our iozone")
    load_references()
    page = shown(operator, "")
    assert "Choose a baseline" in page
    for offered in ("run=1", "import=1", "target=a/scratch"):
        assert page.count(f'<option value="{offered}">') == 2
    assert re.search(r'<optgroup label="References"><option value="import=\d+">', page)
    assert '<option value="run=1" selected>' in shown(operator, "candidate=run%3D1")


def test_a_published_system_judges_another_row_by_row(operator: Client) -> None:
    asked = iozone("candidate.factor.read_ahead_sectors=not+set", "tolerance.bytes_per_s=5", "single_values=1")
    page = shown(operator, asked)
    assert figures(page) == [6, 6, 0, 0]
    assert rows(page)[2] == [
        "Fails", "Bandwidth", "read", "1", "32 GiB", "Read", "read", "396 MB/s", "346 MB/s", "×0.874", "–", "−5 %",
        "one value on each side, no interval",
    ]  # fmt: skip
    assert "Dell PowerEdge 2970, PERC 5/i, RAID 5, Read-ahead (sectors) not set" in strip_tags(page)
    assert "12 rows have no interval: the tolerance alone decides." in page
    assert "not that the systems differ" in page


def test_single_values_are_unclear_until_somebody_asks(operator: Client) -> None:
    page = shown(operator, iozone("candidate.factor.read_ahead_sectors=not+set"))
    assert figures(page) == [0, 0, 14, 0]  # with a mean of reads and a mean of writes
    link = re.search(r'<a href="\?([^"]*)">Judge these values by the tolerance alone</a>', page)
    assert link
    assert figures(shown(operator, link[1].replace("&amp;", "&"))) == [6, 6, 0, 0]


def test_a_side_with_several_levels_offers_them_and_rows_without_a_result_are_not_measured(operator: Client) -> None:
    page = shown(operator, iozone("single_values=1"))
    assert 'name="candidate.factor.read_ahead_sectors"' in page
    assert 'name="baseline.factor.read_ahead_sectors"' not in page
    assert "stated by one side only" not in page  # read-ahead tells rows of the candidate apart
    assert "The candidate has 8 cells that the baseline does not have." in page
    page = shown(operator, iozone("single_values=1", "candidate.factor.read_ahead_sectors=8192"))
    assert figures(page) == [1, 7, 0, 4]
    assert [row[0] for row in rows(page)][:4] == ["Not measured"] * 4


def test_the_file_has_the_same_rows_in_stored_units(operator: Client) -> None:
    asked = iozone("candidate.factor.read_ahead_sectors=8192", "tolerance.bytes_per_s=5", "single_values=1")
    response = operator.get(f"{FILE}?{asked}")
    lines = list(csv.DictReader(io.StringIO(b"".join(response).decode())))
    by_test = {(line["numjobs"], line["test"]): line for line in lines}
    fails = by_test["2", "Initial write"]
    assert (fails["Verdict"], fails["Unit"], fails["Single values"]) == ("Fails", "B/s", "True")
    assert float(fails["Baseline"]) == pytest.approx(327977.77 * 1024)
    assert float(fails["Candidate"]) == pytest.approx(290692.31 * 1024)
    assert float(fails["Ratio"]) == pytest.approx(290692.31 / 327977.77)
    assert by_test["1", "Read"]["Verdict"] == "Not measured"
    assert operator.get(FILE).status_code == 422


def test_page_and_file_say_that_a_side_is_a_cancelled_run(operator: Client, target: Target) -> None:
    for number in (1, 2):
        Lab(target, number=number).measure(1000.0, 1001.0, 999.0)
    Run.objects.filter(number=2).update(state=RunState.CANCELLED)
    (sentence,) = unfinished_sentences(read_rows(Result.objects.filter(run__number=2)))
    asked = "baseline=run%3D1&candidate=run%3D2"
    assert sentence in operator.get(f"{PAGE}?{asked}").context["judged"].limits
    lines = csv.DictReader(io.StringIO(b"".join(operator.get(f"{FILE}?{asked}")).decode()))
    assert all(sentence in line["Limits"] for line in lines)


def test_repeats_on_both_sides_are_judged_by_their_interval(operator: Client, target: Target) -> None:
    for number, values in ((1, FAST), (2, SLOW)):
        Lab(target, number=number).measure(*values)
    page = shown(
        operator, "baseline=run%3D1&candidate=run%3D2&single_values=1&tolerance.iops=5&tolerance.latency_p99=10"
    )
    assert figures(page) == [1, 1, 0, 0]
    assert [row[:2] for row in rows(page)] == [["Fails", "IOPS"], ["Passes", "p99 latency"]]
    assert "<strong>Same for all</strong> · randread · 4 KiB" in page
    assert rows(page)[0][-2] == "−5 %"
    assert rows(page)[1][-2] == "+10 %"
    assert "no interval" not in page


def test_factors_that_one_side_does_not_state_are_ignored_only_if_asked(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(10_100.0, iodepth=1)
    lab.measure(100_000.0, iodepth=32)
    an_import()
    asked = "baseline=import%3D1&candidate=run%3D1&single_values=1&tolerance.iops=5"
    page = shown(operator, asked)
    assert figures(page) == [1, 1, 0, 1]  # an import need not state everything
    assert "by one side only" not in page
    assert "import 1 does not state engine, I/O engine, " in page
    an_import(title="Stated", text="pattern,block_size,iodepth,read_ahead_sectors,iops\nrandread,4k,1,256,10000\n")
    asked = "baseline=import%3D2&candidate=run%3D1&single_values=1&tolerance.iops=5"
    page = shown(operator, asked)
    assert figures(page) == [0, 0, 0, 1]
    assert "factors are stated by one side only: Engine, I/O engine, " in page
    link = re.search(r'<a href="\?([^"]*)">Ignore factors that only one side states</a>', page)
    assert link
    page = shown(operator, link[1].replace("&amp;", "&"))
    assert figures(page) == [0, 1, 0, 0]
    assert "Ignored: Engine, I/O engine, " in page
    assert figures(shown(operator, f"{asked}&ignore=ioengine")) == [0, 0, 0, 1]


def test_what_cannot_be_judged_is_refused_with_the_form(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(*FAST)
    Lab(target, number=2)
    for query, words in {
        "baseline=run%3D1&candidate=run%3D9": "There is no run 9.",
        "baseline=run%3D1&candidate=colour%3Dred": "There is no filter `colour`.",
        "baseline=run%3D1&candidate=run%3D2": "The candidate has no valid results.",
        "baseline=run%3D1&candidate=run%3D1&tolerance.iops=five": "Enter a number in percent.",
        "baseline=run%3D1&candidate=run%3D1&tolerance.iops=200": "Enter 0.1 to 99 %.",
    }.items():
        page = shown(operator, query, 422)
        assert words in strip_tags(page)
        assert '<option value="run=1" selected>' in page
        assert operator.get(f"{FILE}?{query}").status_code == 422
    Run.objects.filter(number=1).update(state=RunState.RUNNING)
    assert "Run 1 has not ended." in shown(operator, "baseline=run%3D1&candidate=run%3D2", 422)


@pytest.mark.parametrize("more", ["&candidate.factor.iodepth=77", "&ignore=colour", "&tolerance.speed=5", "&x=1"])
def test_a_choice_that_does_not_fit_is_dropped(operator: Client, target: Target, more: str) -> None:
    Lab(target).measure(*FAST)
    Lab(target, number=2).measure(*FAST)
    page = shown(operator, f"baseline=run%3D1&candidate=run%3D2&tolerance.iops=5{more}")
    assert figures(page) == [0, 1, 0, 0]


def test_tests_of_an_import_that_only_a_label_tells_apart_are_chosen_by_it(operator: Client) -> None:
    load_references()
    number = Import.objects.get(slug="tachion-400gb").number
    page = shown(operator, f"baseline=import%3D{number}&candidate=import%3D{number}", 422)
    assert "are the same results" in page
    key = re.search(r'name="candidate\.(label\.[^"]*)"', page)
    assert key
    choice = re.search(rf'name="candidate\.{re.escape(key[1])}".*?</select>', page, re.DOTALL)
    assert choice
    name, levels = quote(key[1]), [quote(level) for level in re.findall(r'<option value="([^"]+)"', choice[0])]
    asked = f"baseline.{name}={levels[0]}&candidate.{name}={levels[1]}&single_values=1"
    assert sum(figures(shown(operator, f"baseline=import%3D{number}&candidate=import%3D{number}&{asked}"))) > 0


def test_a_chosen_level_that_the_other_side_lacks_is_named(operator: Client, target: Target) -> None:
    Lab(target).measure(*FAST, iodepth=32)
    other = Lab(target, number=2)
    other.measure(*SLOW, iodepth=1)
    other.measure(*FAST, iodepth=32)
    asked = "baseline=run%3D1&candidate=run%3D2&tolerance.iops=5&candidate.factor.iodepth="
    page = shown(operator, f"{asked}1")
    assert figures(page) == [1, 0, 0, 0]
    assert "the rows compare different levels: Queue depth (baseline 32, candidate 1)." in page
    assert "different levels" not in shown(operator, f"{asked}32")


def test_a_tolerance_stays_if_the_candidate_lacks_the_metric(operator: Client, target: Target) -> None:
    """As in the API: a candidate must not pass because it was judged by another metric."""
    for number in (1, 2):
        Lab(target, number=number).measure(*FAST)
    Result.objects.filter(run__number=2).update(p99_ns=None)
    asked = "baseline=run%3D1&candidate=run%3D2&tolerance.latency_p99=10"
    assert figures(shown(operator, asked)) == [0, 0, 0, 0, 1]  # the last: without a value
    assert figures(shown(operator, f"{asked}&tolerance.iops=5")) == [0, 1, 0, 0, 1]
    page = shown(operator, f"{asked}&tolerance.latency_p999=10&tolerance.iops=5")
    assert "Not judged: p99.9 latency. The baseline has no values of this metric." in page


@pytest.mark.parametrize(
    ("value", "verdict", "ratio"),
    [(949_600.0, "Fails", "×0.9496"), (950_000.0, "Passes", "×0.950"), (950_040.0, "Passes", "×0.95004")],
)
def test_a_ratio_has_enough_digits_to_tell_it_from_the_limit(
    operator: Client, target: Target, value: float, verdict: str, ratio: str
) -> None:
    for number, iops in ((1, 1_000_000.0), (2, value)):
        Lab(target, number=number).measure(iops)
    page = shown(operator, "baseline=run%3D1&candidate=run%3D2&tolerance.iops=5&single_values=1")
    assert [(row[0], row[5]) for row in rows(page)] == [(verdict, ratio)]


def test_two_drives_of_one_import_are_judged_once_a_target_of_each_side_is_chosen(operator: Client) -> None:
    made = an_import(drive="Old", text="pattern,block_size,iops\nrandread,4k,1000\nrandread,4k,900\n")
    made.origins.filter(number=2).update(drive="New")
    an_import(drive="Other", title="Others", text="pattern,block_size,iops\nrandread,4k,1500\n")
    page = shown(operator, "baseline=import%3D1&candidate=import%3D2", 422)
    assert "several levels of drive model (New, Old)" in page
    assert re.findall(r">(Baseline: [^<]*)<", page) == ["Baseline: Target"]
    page = shown(operator, "baseline=import%3D1&candidate=import%3D2&baseline.target=lab1/Old&single_values=1")
    assert figures(page) == [0, 1, 0, 0]


def test_it_is_linked_from_run_import_reference_and_trends(operator: Client, target: Target) -> None:
    Lab(target).measure(*FAST)
    number = an_import().number
    load_references()
    published = Import.objects.exclude(slug=None).first()
    assert published
    for address, link in {
        "/runs/1/": "?candidate=run%3D1",
        f"/imports/{number}/": f"?candidate=import%3D{number}",
        f"/imports/{published.number}/": f"?baseline=import%3D{published.number}",
        "/trends/?plan=plan-1&target=a/scratch": "?candidate=run%3D1",
    }.items():
        assert f'href="{PAGE}{link}"' in operator.get(address).content.decode()
    assert f'href="{PAGE}"' in operator.get("/trends/?plan=none").content.decode()


def test_it_takes_the_same_queries_for_any_number_of_results(
    operator: Client, queries_of: Callable[[str], int], target: Target
) -> None:
    asked = f"{PAGE}?baseline=run%3D1&candidate=run%3D2"
    labs = [Lab(target, number=number) for number in (1, 2)]
    for lab in labs:
        lab.measure(*FAST)
    few = queries_of(asked)
    for lab in labs:
        for iodepth in (2, 4, 8):
            lab.measure(*FAST, iodepth=iodepth)
    queries_of(asked)  # points are kept once they were read
    assert queries_of(asked) <= few


def test_every_run_of_the_plan_is_judged_like_the_acceptance_test(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(*SLOW, iodepth=1)
    accepted = an_import(title="Accepted system", text="pattern,block_size,iodepth,iops\nrandread,4k,1,1000\n")
    query = f"baseline=import%3D{accepted.number}&candidate=run%3D{lab.run.number}&ignore=unstated&single_values=1"
    page = shown(operator, query)
    (test,) = re.findall(r'name="test" value="([^"]*)"', page)
    given = {"plan": lab.run.version.plan.slug, "target": "a/scratch", "test": unescape(test)}
    assert operator.post("/trends/baselines/import/", given).status_code == 302
    baseline = Baseline.objects.get()
    assert (baseline.imported, baseline.single_values) == (accepted, True)
    assert (baseline.ignored, baseline.tolerances) == (["unstated"], {"iops": 5.0})
    of_run = operator.get(f"/runs/{lab.run.number}/").content.decode()
    assert "Accepted system</a> at a/scratch: 1 row fails" in of_run
    assert "1 row has no interval: the tolerance alone decides, which is no evidence of a difference." in of_run
    assert "Ignored factors: all that only one side states. The run may differ from the baseline in these." in of_run
    a_subscription(events=[Event.WORSE])
    announce_run(lab.run.pk)
    subject = "Run 1 fails against Accepted system, the baseline of A plan on a/scratch"
    assert Notice.objects.get().subject == subject
    trend = operator.get(f"/trends/?plan={given['plan']}&target=a/scratch").content.decode()
    assert "Accepted system</a> is the baseline of all runs" in trend
    (address,) = re.findall(r'href="(/trends/acceptance/[^"]*)">Acceptance test with its levels', trend)
    assert figures(operator.get(unescape(address)).content.decode()) == figures(page)


def test_a_baseline_that_is_an_import_is_set_again_by_undo(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(*SLOW, iodepth=1)
    accepted = an_import(text="pattern,block_size,iodepth,iops\nrandread,4k,1,1000\n")
    test = f"baseline=import%3D{accepted.number}&ignore=ioengine&tolerance.iops=12.3456789&single_values=1"
    given = {"plan": lab.run.version.plan.slug, "target": "a/scratch", "test": test}
    operator.post("/trends/baselines/import/", given)
    before = Baseline.objects.get()
    removed = operator.post(f"/trends/baselines/{before.pk}/remove/", follow=True).content.decode()
    (form,) = re.findall(r'<form[^>]*action="/trends/baselines/import/".*?</form>', removed, re.DOTALL)
    fields = {name: unescape(text) for name, text in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
    operator.post("/trends/baselines/import/", fields)
    after = Baseline.objects.get()
    names = ("plan", "target", "imported", "levels", "ignored", "single_values", "tolerances")
    assert [getattr(after, name) for name in names] == [getattr(before, name) for name in names]


def test_results_of_several_targets_at_once_offer_no_baseline_of_one_target(operator: Client, target: Target) -> None:
    lab, second = Lab(target), a_target(target.host, "second")
    (both,) = lab.measure(2000, iodepth=1, at_once=2)
    FurtherTarget.objects.create(trial=known(both.trial), stream=1, target=second)
    accepted = an_import(text="pattern,block_size,iodepth,iops\nrandread,4k,1,1000\n")
    page = shown(operator, f"baseline=import%3D{accepted.number}&candidate=run%3D1&ignore=unstated&single_values=1")
    assert figures(page) == [0, 1, 0, 0]
    assert "Judge every run" not in page


def test_a_change_near_the_limit_is_told_from_it(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(749.6, iodepth=1)
    accepted = an_import(text="pattern,block_size,iodepth,iops\nrandread,4k,1,1000\n")
    set_import_baseline(
        plan=lab.run.version.plan, target=target, imported=accepted, levels={}, ignored=["unstated"],
        single_values=True, tolerances={"iops": 25.0}, by=a_user("opal", role=Role.OPERATOR),
    )  # fmt: skip
    assert "−25.04 %" in operator.get(f"/runs/{lab.run.number}/").content.decode()  # −25.0 % would pass


def test_without_tolerances_or_an_import_no_baseline_is_set(operator: Client, target: Target) -> None:
    lab = Lab(target)
    lab.measure(*SLOW, iodepth=1)
    an_import()
    given = {"plan": lab.run.version.plan.slug, "target": "a/scratch"}
    for test, words in {"baseline=import%3D1": "Enter a tolerance", "baseline=run%3D1": "Choose an import"}.items():
        page = operator.post("/trends/baselines/import/", {**given, "test": test}, follow=True).content.decode()
        assert words in page
    assert not Baseline.objects.exists()
