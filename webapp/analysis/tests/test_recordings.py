"""What the samples of a run say: which are read, and the findings of its answer."""

from datetime import timedelta

import pytest

from webapp.analysis import recordings
from webapp.analysis.answer import FindingKind
from webapp.analysis.evidence import RunFinding
from webapp.analysis.recordings import recorded_points
from webapp.analysis.run_answer import run_answer
from webapp.analysis.run_findings import findings_of, make_due
from webapp.analysis.tests.recorded import BURST, ended, record
from webapp.results.models import KernelLine, known
from webapp.runs.models import Run
from webapp.tests.factories.results import START, Lab

pytestmark = pytest.mark.django_db


def timed(run: Run) -> list[RunFinding]:
    return [finding for finding in run_answer(run).findings if finding.seconds]


def test_a_burst_is_a_finding_with_its_seconds_and_a_picture(lab: Lab) -> None:
    for result in lab.measure(1600.0, 1600.0):
        record(result, BURST)
    (finding,) = timed(ended(lab))
    assert finding.kind is FindingKind.SETTLED
    assert [(each.trial, each.from_s, each.to_s) for each in finding.seconds] == [(1, 12, 60), (2, 12, 60)]
    assert finding.picture
    assert [(line.name, line.first, line.last) for line in finding.picture.lines] == [
        ("Trial 1", 12, 59), ("Trial 2", 12, 59),
    ]  # fmt: skip


def test_it_is_stored_with_the_others_when_the_run_ends(lab: Lab) -> None:
    record(lab.measure(1600.0)[0], BURST)
    run = ended(lab)
    assert make_due(60) == 1
    assert [each.kind for each in findings_of([run])[1] if each.seconds] == [FindingKind.SETTLED]


def test_the_run_s_own_question_comes_first(lab: Lab) -> None:
    for jobs, iops in {1: 458.0, 2: 919.0, 4: 1820.0, 8: 2000.0, 16: 2000.0, 32: 2000.0}.items():
        record(lab.measure(iops, numjobs=jobs)[0], [iops] * 20, used=50, cpu=100.0 if jobs >= 8 else 40.0)
    kinds = [each.kind for each in run_answer(ended(lab)).findings]
    assert kinds[:2] == [FindingKind.SATURATION, FindingKind.BOTTLENECK]


def test_errors_of_the_kernel_are_beside_a_stall_of_the_same_seconds(lab: Lab) -> None:
    (result,) = lab.measure(1000.0)
    record(result, [1000.0] * 20 + [0.0] * 4 + [1000.0] * 20)
    attempt = known(result.stream_run).attempt
    for sequence, (second, elsewhere) in enumerate([(22, False), (22, True), (40, False)]):
        KernelLine.objects.create(
            attempt=attempt, sequence=sequence, at=START + timedelta(seconds=second), level=3, text="reset",
            elsewhere=elsewhere,
        )  # fmt: skip
    ((point,),) = recorded_points(ended(lab)).values()
    assert point.trials[0].errors == (22, 40)
    (finding,) = timed(lab.run)
    assert (finding.kind, finding.seconds[0].from_s, finding.seconds[0].to_s) == (FindingKind.STALLED, 20, 24)
    assert "1 error" in finding.sentence


def test_samples_of_points_without_anything_to_find_are_not_read(lab: Lab) -> None:
    record(lab.measure(1000.0)[0], [1000.0] * 20)
    assert recorded_points(ended(lab)) == {}


def test_no_more_values_are_read_than_the_limit(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    record(lab.measure(1600.0, iodepth=1)[0], BURST)
    record(lab.measure(1600.0, iodepth=2)[0], [8000.0] * 12 + [1000.0] * 48)
    monkeypatch.setattr(recordings, "MOST_VALUES", 100)
    ((point,),) = recorded_points(ended(lab)).values()
    assert point.trials[0].number == 2  # the larger fall


def test_invalid_results_are_left_out(lab: Lab) -> None:
    record(lab.measure(1600.0, invalid=True)[0], BURST)
    assert recorded_points(ended(lab)) == {}
