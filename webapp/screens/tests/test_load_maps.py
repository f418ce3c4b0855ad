"""The page of a run with shares of the load of two streams at once: its heading and its maps of latency."""

import msgspec
import pytest
from django.db.models import QuerySet
from django.test import Client

from webapp.analysis.run_answer import load_maps, run_answer
from webapp.hosts.models import Host
from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.plans.load import asked_iops, fio_workload
from webapp.results.metrics import LOAD_BESIDE, LOAD_REACHED
from webapp.results.models import Result
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptKind, Run, Trial
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, say
from worker.contract.packing import Histogram, pack

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]

READS, WRITES = (25, 50, 75), (10, 50, 90)
DOCUMENT = PlanDocument(
    title="Map", repeats=1, common={"size": "64M", "runtime": "10s", "iodepth": "8"},
    parts=(Part(name="one", factors={}, streams=(
        PartStream(name="reader", factors={"pattern": "randread", "load": ", ".join(map(str, READS))}),
        PartStream(name="writer", factors={"pattern": "randwrite", "load": ", ".join(map(str, WRITES))}),
    )),),
)  # fmt: skip


def latency_us(trial: Trial, stream: str) -> int:
    """Of reads below 1 ms beside writes at 10 % and 50 %, beside 90 % above it; of writes always below."""
    reads, writes = (int(trial.point.get(f"{name}.load") or 0) for name in ("reader", "writer"))
    return 100 + reads + 9 * writes + (300 if writes == 90 else 0) if stream == "reader" else 200 + writes


def measure(host: Host, attempt: Attempt) -> None:
    assert attempt.trial is not None
    started, results = [], []
    for number, name in enumerate(attempt.trial.stream_names):
        (direction,) = RESULT.directions
        iops = asked_iops(fio_workload(attempt.trial.workloads[number])) or 5_000
        latency_ns = 1000 * latency_us(attempt.trial, name)
        direction = msgspec.structs.replace(
            direction, direction="read" if name == "reader" else "write", iops=iops, latency_mean_ns=latency_ns,
            latency=pack(Histogram(latency_ns=(latency_ns,), counts=(direction.ios,))),
        )  # fmt: skip
        started.append(msgspec.structs.replace(STARTED, stream=number))
        results.append(msgspec.structs.replace(RESULT, stream=number, directions=(direction,)))
    say(host, attempt, (1, (ACCEPTED,)), (2, tuple(started)), (3, (*results, DONE)))


@pytest.fixture
def run() -> Run:
    run = start_run(version=a_version(DOCUMENT), targets=[a_target()], by=None)
    host = run.targets.get().host
    while dispatch_host(host.pk) is None and (attempt := Attempt.objects.get(host=host, ended_at=None)):
        if attempt.kind == AttemptKind.CLOSE_RUN:
            say(host, attempt, (1, (ACCEPTED, DONE)))
            break
        measure(host, attempt)
    run.refresh_from_db()
    return run


def test_the_maps_have_a_row_for_each_load_of_one_stream_and_a_column_for_each_of_the_other(run: Run) -> None:
    p95, p99 = load_maps(run)
    assert [made.metric for made in (p95, p99)] == ["latency_p95", "latency_p99"]
    assert [panel.name for panel in p95.panels] == ["reader", "writer"]
    assert [level.number for level in p95.levels] == list(WRITES)
    reader = p95.panels[0]
    assert len(reader.series) == len(READS)
    means = [[cell.summary.mean / 1000 for cell in series.cells] for series in reader.series]
    wanted = [[100 + reads + 9 * writes + (300 if writes == 90 else 0) for writes in WRITES] for reads in READS]
    assert means == [pytest.approx(row, rel=0.02) for row in wanted]


def test_the_heading_says_beside_which_load_the_latency_stays_low(run: Run) -> None:
    headline = run_answer(run).headline
    assert headline.index("50 %") < headline.index("625 µs") < headline.index("90 %") < headline.index("1.28 ms")


def of_reader(run: Run, reads: int, writes: int) -> QuerySet[Result]:
    return Result.objects.filter(
        run=run, **{"point__stream": "reader", "point__load": reads, "point__writer.load": writes}
    )


def test_the_heading_ends_at_a_load_without_a_result_beside_each_other_load(run: Run) -> None:
    of_reader(run, 50, 50).update(invalid=True)
    of_reader(run, 75, 50).update(invalid=True)
    sentence, _ = run_answer(run).headline.split("writer: p95")
    assert "up to writer: load 10 %" in sentence
    assert "50 %" not in sentence
    assert "90 %" not in sentence


def test_the_heading_ends_at_a_load_that_could_not_keep_up(run: Run) -> None:
    results = of_reader(run, 25, 50)
    (result,) = results
    results.update(metrics=result.metrics | {LOAD_REACHED: 80.0})
    headline = run_answer(run).headline
    assert "up to writer: load 10 %" in headline
    assert "at writer: load 50 %, the storage could not keep up (1 of 1 results)" in headline


def test_the_heading_ends_at_a_load_that_the_other_stream_did_not_reach(run: Run) -> None:
    """The reader's latency is then that beside a smaller load of the writer."""
    results = of_reader(run, 25, 50)
    (result,) = results
    results.update(metrics=result.metrics | {LOAD_BESIDE: 80.0})
    sentence, _ = run_answer(run).headline.split("writer: p95")
    assert "up to writer: load 10 %" in sentence
    assert "at writer: load 50 %, the stream beside it could not keep up (1 of 1 results)" in sentence


def test_the_page_shows_the_maps(run: Run, viewer: Client) -> None:
    page = viewer.get(f"/runs/{run.number}/").content.decode()
    assert page.count('<table class="table heat') == 4  # p95 and p99 of each stream
