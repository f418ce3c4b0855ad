"""The findings of a run on its page: the first ones, their small charts, and what people think of them."""

import pytest
from django.test import Client
from msgspec import structs

from webapp.analysis.answer import FindingKind, Sentence
from webapp.analysis.evidence import TIME, Line, Picture, RunFinding
from webapp.analysis.reviews import reviewed
from webapp.analysis.run_answer import run_answer
from webapp.analysis.tests.capped import a_capped_run
from webapp.analysis.tests.recorded import BURST, ended, record
from webapp.plans.document import Part, PlanDocument
from webapp.plans.models import Plan
from webapp.runs.models import Run
from webapp.screens.findings import ABOVE, HEIGHT, LEFT, WIDTH, finding_list, findings_of_run, small_chart
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import Lab


def a_picture(*values: float | None, ratios: bool = False, ordered: bool = True, marked: bool = True) -> Picture:
    line = Line(name="", values=values, first=1 if marked else None, last=2 if marked else None)
    levels = tuple(map(str, range(len(values))))
    return Picture(
        metric="iops", metric_label="IOPS", x_label="Jobs", levels=levels, ordered=ordered, ratios=ratios, lines=(line,)
    )


def a_finding(key: str, kind: FindingKind = FindingKind.SATURATION) -> RunFinding:
    return RunFinding(
        run=1, title="", targets=(), at=None, key=key, kind=kind, **Sentence((key,)).texts, query="run=1",
        size=1.0, single=False, caution="", picture=None,
    )  # fmt: skip


def test_values_begin_at_zero_and_the_evidence_is_marked() -> None:
    chart = small_chart(a_picture(50.0, 100.0, 100.0))
    assert chart
    (line,) = chart.lines
    middle, top = ABOVE + HEIGHT / 2, ABOVE
    assert line.path.split() == [f"{LEFT},{middle}", f"{LEFT + WIDTH / 2},{top}", f"{LEFT + WIDTH},{top}"]
    assert line.evidence.split() == line.path.split()[1:]
    assert len(line.dots) == 2


def test_ratios_have_one_in_the_middle() -> None:
    chart = small_chart(a_picture(2.0, 2.0, 2.0, ratios=True))
    assert chart
    assert float(chart.baseline) == ABOVE + HEIGHT / 2
    assert {y for _, y in chart.lines[0].dots} == {f"{ABOVE}"}


def test_a_range_of_ratios_is_called_that_of_the_points() -> None:
    chart = small_chart(a_picture(0.96, 1.11, 1.0, ratios=True))
    assert chart
    assert chart.highest == "IOPS, points: ×0.96 to ×1.11"


def test_values_that_are_far_apart_have_a_logarithmic_axis() -> None:
    chart = small_chart(a_picture(1.0, 100.0, 10_000.0))
    assert chart
    low, middle, high = (float(point.split(",")[1]) for point in chart.lines[0].path.split())
    assert low - middle == pytest.approx(middle - high, abs=0.2)


def test_a_logarithmic_axis_says_so() -> None:
    far_apart, near = small_chart(a_picture(1.0, 100.0, 10_000.0)), small_chart(a_picture(50.0, 100.0, 100.0))
    assert far_apart
    assert near
    assert (far_apart.note, near.note) == ("log axis", "")


def test_lines_without_a_legend_are_explained() -> None:
    lines = tuple(Line(name=f"trial {place}", values=(50.0, 100.0), first=0, last=1) for place in range(5))
    picture = structs.replace(a_picture(1.0, 2.0), lines=lines)
    over_jobs, over_time = small_chart(picture), small_chart(structs.replace(picture, x_label=TIME))
    other = small_chart(structs.replace(picture, lines=(lines[0], structs.replace(lines[1], first=None, last=None))))
    assert over_jobs
    assert over_time
    assert other
    assert (over_jobs.note, over_time.note, other.note) == ("a line a series", "a line a trial", "grey: other series")


def test_a_zero_is_drawn_at_the_bottom() -> None:
    for highest in (10.0, 10_000.0):
        chart = small_chart(a_picture(5.0, 0.0, 0.0, highest))
        assert chart
        assert {y for _, y in chart.lines[0].dots} == {f"{ABOVE + HEIGHT}"}


def test_levels_without_an_order_are_bars() -> None:
    lines = (
        Line(name="write", values=(None, 300.0, 500.0), first=1, last=1),
        Line(name="read", values=(50.0, 150.0, 400.0), first=None, last=None),
    )
    picture = structs.replace(a_picture(1.0, 2.0, 3.0, ordered=False), lines=lines)
    chart = small_chart(picture)
    assert chart
    assert (chart.lines, chart.highest) == ((), "IOPS: ×2.00")
    assert [(bar.name, bar.text, bar.colour is None, bar.width) for bar in chart.bars] == [
        ("write", "300", False, f"{WIDTH}"), ("read", "150", True, f"{WIDTH / 2}"),
    ]  # fmt: skip


def test_bars_of_ratios_begin_at_one() -> None:
    chart = small_chart(a_picture(9.0, 2.0, 0.5, ordered=False, ratios=True))
    assert chart
    assert [(bar.name, float(bar.x), float(bar.width)) for bar in chart.bars] == [
        ("1", LEFT + WIDTH / 2, WIDTH / 2), ("2", LEFT, WIDTH / 2),
    ]  # fmt: skip


def test_a_bar_is_named_by_what_tells_it_from_the_others() -> None:
    levels = ("other", "h · 4 KiB · psync", "h · 4 KiB · uring")
    picture = structs.replace(a_picture(9.0, 2.0, 0.5, ordered=False), levels=levels)
    chart = small_chart(picture)
    assert chart
    assert [bar.name for bar in chart.bars] == ["psync", "uring"]


def test_bars_of_two_charts_are_named_by_the_chart() -> None:
    lines = tuple(
        Line(name=f"{chart}: db1/nvme0, psync", values=(value,), first=0, last=0)
        for chart, value in (("randread", 100.0), ("randwrite", 50.0))
    )
    chart = small_chart(structs.replace(a_picture(1.0, ordered=False), lines=lines))
    assert chart
    assert [bar.name for bar in chart.bars] == ["randread", "randwrite"]


def test_one_bar_says_nothing_and_many_are_dots() -> None:
    assert small_chart(a_picture(5.0, 2.0, None, ordered=False)) is None
    many = structs.replace(a_picture(ordered=False), lines=(Line(name="", values=(1.0,) * 5, first=0, last=4),))
    chart = small_chart(structs.replace(many, levels=tuple("abcde")))
    assert chart
    (line,) = chart.lines
    assert (line.path, line.evidence, len(line.dots), chart.bars) == ("", "", 5, ())


def test_two_series_at_one_level_are_two_bars() -> None:
    lines = tuple(Line(name=name, values=(value,), first=0, last=0) for name, value in (("a", 100.0), ("b", 50.0)))
    chart = small_chart(structs.replace(a_picture(1.0, ordered=False), lines=lines))
    assert chart
    assert [(bar.name, float(bar.width)) for bar in chart.bars] == [("a", WIDTH), ("b", WIDTH / 2)]


def test_what_was_not_measured_is_left_out() -> None:
    chart = small_chart(a_picture(50.0, None, 100.0))
    assert chart
    assert (len(chart.lines[0].path.split()), len(chart.lines[0].dots)) == (2, 1)
    assert small_chart(a_picture(None, None, 100.0)) is None


def test_a_line_without_evidence_is_grey() -> None:
    chart = small_chart(a_picture(1.0, 2.0, 3.0, marked=False))
    assert chart
    assert (chart.lines[0].colour, chart.lines[0].dots) == (None, ())


def test_two_are_shown_and_what_is_not_certain_is_folded_unless_it_comes_first() -> None:
    shown = finding_list([a_finding("u", FindingKind.UNCERTAIN), *map(a_finding, "abcd")])
    assert [each.finding.key for each in shown.first] == ["u", "a"]
    assert [each.finding.key for each in shown.more] == ["b", "c", "d"]
    shown = finding_list([a_finding("a"), a_finding("u", FindingKind.UNCERTAIN), *map(a_finding, "bc")])
    assert [each.finding.key for each in shown.first] == ["a", "b"]
    alone = finding_list([a_finding("u", FindingKind.UNCERTAIN)])
    assert [each.finding.key for each in alone.first] == ["u"]


@pytest.fixture
def run(db: None) -> Run:
    return a_capped_run()


def key_of(run: Run) -> str:
    return run_answer(run).findings[0].key


def page(client: Client, run: Run) -> str:
    return client.get(f"/runs/{run.number}/").content.decode()


def test_the_page_has_each_sentence_once_with_its_chart(viewer: Client, run: Run) -> None:
    text = page(viewer, run)
    sentence = run_answer(run).findings[0].sentence
    assert text.count(sentence.removesuffix(" (measured once).")) == 1  # the heading
    assert "IOPS: measured once" in text  # below it
    assert text.count('class="small-chart"') == 1
    assert f'href="/explore/?{run_answer(run).findings[0].query}"'.replace("&", "&amp;") in text
    assert "/review/" not in text  # viewers only read


def test_an_operator_dismisses_a_finding_and_takes_it_back(operator: Client, run: Run) -> None:
    address = f"/runs/{run.number}/findings/{key_of(run)}/review/"
    operator.post(address, {"verdict": "dismissed", "reason": "a throttled drive"})
    found = findings_of_run(run)
    assert (len(found.first), len(found.dismissed)) == (0, 1)
    text = page(operator, run)
    assert "1 dismissed" in text
    assert "a throttled drive" in text
    operator.post(address, {"verdict": ""})
    assert len(findings_of_run(run).first) == 1


def test_the_next_experiment_opens_in_the_plan_editor_unsaved(operator: Client, db: None) -> None:
    document = PlanDocument(
        title="Threads",
        common={"size": "64m", "runtime": "3"},
        parts=(Part(name="a", factors={"pattern": "randread", "numjobs": "1..32 *2"}),),
    )
    target = a_target(a_host("h"), "loop0")
    run = a_capped_run(lab=Lab(target, version=a_version(document)))
    plans = Plan.objects.count()
    answer = operator.post(f"/runs/{run.number}/findings/{key_of(run)}/plan/", follow=True)
    assert answer.redirect_chain == [("/plans/new/", 302)]
    text = answer.content.decode()
    assert 'value="4, 5, 8, 11, 16"' in text
    assert Plan.objects.count() == plans


def test_a_finding_without_a_plan_is_refused(operator: Client, run: Run) -> None:
    answer = operator.post(f"/runs/{run.number}/findings/{key_of(run)}/plan/")
    assert answer["Location"] == f"/runs/{run.number}/"


def test_an_unknown_finding_is_refused(operator: Client, run: Run) -> None:
    operator.post(f"/runs/{run.number}/findings/{'0' * 24}/review/", {"verdict": "dismissed"})
    assert [each.review for each in reviewed(run, run_answer(run).findings)] == [None]


def test_the_api_has_the_findings_and_takes_reviews(operator: Client, viewer: Client, run: Run) -> None:
    address = f"/api/v1/runs/{run.number}/findings"
    (finding,) = viewer.get(address).json()
    assert (finding["kind"], finding["review"], finding["key"]) == ("saturation", None, key_of(run))
    body = {"verdict": "confirmed"}
    review = f"{address}/{finding['key']}/review"
    assert viewer.put(review, body, content_type="application/json").status_code == 403
    (finding,) = operator.put(review, body, content_type="application/json").json()
    assert finding["review"]["verdict"] == "confirmed"
    assert viewer.get(f"/api/v1/runs/{run.number}/answer").json()["findings"] == [finding]
    assert operator.delete(review).json()[0]["review"] is None


def test_a_value_out_of_line_in_iops_and_in_bandwidth_is_one_finding(db: None) -> None:
    lab = Lab(a_target(a_host("a"), "loop0"))
    for place, iops in enumerate((100.0, 98.0, 97.0, 31.0, 96.0, 95.0, 94.0, 93.0)):
        for pattern in ("randread", "randwrite"):
            factor = 1.0 if pattern == "randread" or place != 3 else 3.0
            for result in lab.measure(1000 * iops * factor, block_size=512 << place, pattern=pattern):
                result.bytes_per_s = result.iops and result.iops * (512 << place)
                result.save(update_fields=["bytes_per_s"])
    kinds = [finding.kind for finding in run_answer(lab.run).findings]
    assert kinds.count(FindingKind.OUTLIER) == 1


def test_the_page_of_the_trial_has_the_finding_and_marks_its_seconds(operator: Client) -> None:
    lab = Lab(a_target(a_host("h1"), "loop0"))
    burst, other = lab.measure(1600.0, iodepth=1)[0], lab.measure(1000.0, iodepth=2)[0]
    record(burst, BURST)
    record(other, [1000.0] * 20)
    run = ended(lab)
    page = operator.get(f"/runs/{run.number}/trials/1/")
    assert [shown.finding.kind for shown in page.context["findings"].first] == [FindingKind.SETTLED]
    assert page.context["evidence"] == ({"from_s": 12.0, "to_s": 60.0},)
    assert page.context["findings"].first[0].url == f"/runs/{run.number}/trials/1/"
    without = operator.get(f"/runs/{run.number}/trials/2/")
    assert (without.context["findings"].first, without.context["evidence"]) == ((), ())


def test_the_charts_of_a_finding_have_it_as_their_heading(viewer: Client, run: Run) -> None:
    finding = run_answer(run).findings[0]
    charts = viewer.get(f"/explore/?{finding.query}", follow=True)
    assert charts.context["heading"] == charts.context["comparison"].findings[0].claim
