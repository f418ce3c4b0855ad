"""Shares of the load: their rates follow from the results of the `max` trials of the same run."""

import msgspec
import pytest

from webapp.hosts.models import Host
from webapp.plans.document import Part, PartStream, PlanDocument, read
from webapp.plans.load import MAX, asked_iops, fio_workload
from webapp.results.metrics import LOAD_ASKED, LOAD_DELAYED, LOAD_REACHED
from webapp.results.models import Result
from webapp.results.reading.doubts import doubts
from webapp.results.reading.rows import read_rows
from webapp.runs.actions.run_actions import run_again
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Attempt, AttemptKind, Run, TrialState
from webapp.runs.services import start_run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, failed, queued_orders, run_to_the_end, say
from worker.contract.orders import TrialOrder
from worker.contract.workload import FioWorkload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def run() -> Run:
    """Shares of 10 % and 90 %, with two repeats: two trials at the maximum, then four shares."""
    document = PlanDocument(
        title="Loads", repeats=2, retries=1,
        common={"size": "64M", "runtime": "10s", "pattern": "randread", "iodepth": "8"},
        parts=(Part(name="one", factors={"load": "10%, 90%"}),),
    )  # fmt: skip
    return start_run(version=a_version(document), targets=[a_target()], by=None)


def under_way(host: Host) -> Attempt:
    dispatch_host(host.pk)
    return Attempt.objects.filter(host=host, ended_at=None).get()


def measure(host: Host, iops: float, latency_ms: float = 1.0) -> Attempt:
    attempt = under_way(host)
    (read,) = RESULT.directions
    read = msgspec.structs.replace(read, iops=iops, latency_mean_ns=latency_ms * 1e6)
    run_to_the_end(host, attempt, result=msgspec.structs.replace(RESULT, directions=(read,)))
    return attempt


def fail(host: Host) -> None:
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (failed(),)))


def states(run: Run) -> list[tuple[int, str]]:
    return [(trial.point["load"], trial.state) for trial in run.trials.order_by("index")]


def order_of(host: Host, attempt: Attempt) -> FioWorkload:
    (order,) = (order for order in queued_orders(host) if order.attempt == str(attempt.pk))
    assert isinstance(order, TrialOrder)
    (stream,) = order.streams
    assert isinstance(stream.workload, FioWorkload)
    return stream.workload


def test_a_share_is_of_the_mean_maximum_and_is_what_the_worker_gets(run: Run) -> None:
    host = run.targets.get().host
    measure(host, 4_000)
    measure(host, 9_000)
    attempt = under_way(host)
    assert attempt.trial is not None
    percent, work = attempt.trial.point["load"], order_of(host, attempt)
    assert asked_iops(work) == pytest.approx(6_000 * percent / 100, rel=0.01)  # the geometric mean, as shown
    assert attempt.trial.workloads == (work,)
    assert (work.iodepth, work.ramp_s) == (1, 2)


def test_invalid_trials_do_not_count(run: Run) -> None:
    host = run.targets.get().host
    measure(host, 4_000)
    Result.objects.filter(run=run).update(invalid=True)
    measure(host, 6_000)
    attempt = under_way(host)
    assert attempt.trial is not None
    assert asked_iops(order_of(host, attempt)) == pytest.approx(60 * attempt.trial.point["load"], rel=0.01)


def test_a_new_attempt_of_a_share_has_the_same_rate(run: Run) -> None:
    host = run.targets.get().host
    measure(host, 5_000)
    measure(host, 5_000)
    first = under_way(host)
    work = order_of(host, first)
    say(host, first, (1, (ACCEPTED,)), (2, (failed(code="worker_died"),)))
    second = under_way(host)
    assert second.trial_id == first.trial_id
    assert order_of(host, second) == work


def test_without_a_maximum_the_shares_are_not_started(run: Run) -> None:
    host = run.targets.get().host
    fail(host)
    fail(host)
    closing = under_way(host)
    assert closing.kind == AttemptKind.CLOSE_RUN
    shares = run.trials.exclude(point__load=MAX)
    assert set(shares.values_list("state", "reason_code")) == {(TrialState.CANCELLED, "no_maximum")}
    assert shares[0].reason


def test_a_share_below_one_io_per_second_is_not_started(run: Run) -> None:
    host = run.targets.get().host
    measure(host, 8)
    measure(host, 8)
    while (attempt := under_way(host)).kind == AttemptKind.TRIAL:
        run_to_the_end(host, attempt)
    assert set(run.trials.filter(point__load=10).values_list("reason_code", flat=True)) == {"rate_too_low"}
    assert set(run.trials.filter(point__load=90).values_list("state", flat=True)) == {TrialState.DONE}


def test_failed_shares_run_again_with_their_maximum(run: Run) -> None:
    host = run.targets.get().host
    for _ in range(5):
        measure(host, 5_000)
    fail(host)
    say(host, under_way(host), (1, (ACCEPTED,)), (2, (DONE,)))
    again = run_again(run=run, by=None, only_failed=True)
    (share,) = again.trials.exclude(point__load=MAX)
    assert share.point_key == run.trials.get(state=TrialState.FAILED).point_key
    assert again.trials.filter(point__load=MAX).count() == 2


@pytest.mark.parametrize(
    ("reached", "latency_ms", "expected"),
    [(4_500, 0.1, []), (4_000, 0.1, ["could not keep up"]), (4_500, 5.0, ["latencies too low"])],
)
def test_a_result_says_whether_the_load_was_as_asked(
    run: Run, reached: float, latency_ms: float, expected: list[str]
) -> None:
    host = run.targets.get().host
    measure(host, 5_000)
    measure(host, 5_000)
    while Result.objects.filter(run=run, point__load=90).count() < 1:
        measure(host, reached, latency_ms)
    (row,) = read_rows(Result.objects.filter(run=run, point__load=90))
    assert row.metrics[LOAD_ASKED] == pytest.approx(4_500, rel=0.01)
    assert row.metrics[LOAD_REACHED] == pytest.approx(100 * reached / row.metrics[LOAD_ASKED])
    assert row.metrics[LOAD_DELAYED] > 0
    shorts = [doubt.short for doubt in doubts(row)]
    assert [short for short in ("could not keep up", "latencies too low") if short in shorts] == expected


@pytest.fixture
def map_run() -> Run:
    """Reads at 20 % and writes at 50 % of their maxima: the two maxima alone, then both at once."""
    streams = (
        PartStream(name="reader", factors={"pattern": "randread", "load": "20%"}),
        PartStream(name="writer", factors={"pattern": "randwrite", "load": "50%"}),
    )
    document = PlanDocument(
        title="Map", repeats=1, retries=1, common={"size": "64M", "runtime": "10s", "iodepth": "8"},
        parts=(Part(name="one", factors={}, streams=streams),),
    )  # fmt: skip
    return start_run(version=a_version(document), targets=[a_target()], by=None)


def measure_streams(host: Host, iops: dict[str, float]) -> Attempt:
    attempt = under_way(host)
    assert attempt.trial is not None
    started, results = [], []
    for number, name in enumerate(attempt.trial.stream_names):
        (read,) = RESULT.directions
        way = "read" if name == "reader" else "write"
        read = msgspec.structs.replace(read, direction=way, iops=iops[name])
        started.append(msgspec.structs.replace(STARTED, stream=number))
        results.append(msgspec.structs.replace(RESULT, stream=number, directions=(read,)))
    say(host, attempt, (1, (ACCEPTED,)), (2, tuple(started)), (3, (*results, DONE)))
    return attempt


def test_the_streams_of_a_trial_have_shares_of_their_maxima_alone(map_run: Run) -> None:
    host, maxima = map_run.targets.get().host, {"reader": 5_000.0, "writer": 2_000.0}
    measure_streams(host, maxima)
    measure_streams(host, maxima)
    attempt = under_way(host)
    assert attempt.trial is not None
    works = map(fio_workload, attempt.trial.workloads)
    assert [asked_iops(work) for work in works] == [pytest.approx(1_000, rel=0.01), pytest.approx(1_000, rel=0.01)]
    measure_streams(host, {"reader": 1_000, "writer": 800})
    rows = read_rows(Result.objects.filter(run=map_run, point__beside__in=("reader", "writer")))
    reached = {row.point["stream"]: row.metrics[LOAD_REACHED] for row in rows}
    assert reached == pytest.approx({"reader": 100, "writer": 80}, rel=0.01)
    said = {str(row.point["stream"]): [doubt.words for doubt in doubts(row)] for row in rows}
    assert "the stream beside it could not keep up: it reached 80.0 % of its load" in said["reader"]
    assert not [words for words in said["writer"] if "beside" in words]


def test_without_the_maximum_of_a_stream_its_shares_are_not_started(map_run: Run) -> None:
    host = map_run.targets.get().host
    lost = map_run.trials.order_by("index").first()
    assert lost is not None
    while (attempt := under_way(host)).kind == AttemptKind.TRIAL:
        if attempt.trial == lost:
            fail(host)
        else:
            measure_streams(host, {"reader": 5_000, "writer": 2_000})
    together = map_run.trials.get(point__streams="reader + writer")
    assert (together.state, together.reason_code) == (TrialState.CANCELLED, "no_maximum")


@pytest.fixture
def run_on_two(map_run: Run) -> Run:
    """The same map, with the reader on one target and the writer on another one."""
    document = msgspec.structs.replace(read(map_run.version.document), title="Two")
    (part,) = document.parts
    part = msgspec.structs.replace(part, factors={"streams_on": "each"})
    document = msgspec.structs.replace(document, parts=(part,))
    host = a_host()
    return start_run(version=a_version(document, slug="two"), targets=[a_target(host), a_target(host)], by=None)


def test_a_share_is_of_the_maximum_on_the_target_of_its_stream(run_on_two: Run) -> None:
    first, second = (run_on_two.targets.get(pk=pk) for pk in run_on_two.target_order)
    for _ in range(4):
        trial = under_way(first.host).trial
        assert trial is not None
        measure_streams(first.host, dict.fromkeys(("reader", "writer"), 5_000 if trial.target == first else 2_000))
    attempt = under_way(first.host)
    assert attempt.trial is not None
    assert attempt.trial.stream_targets == [first, second]
    works = map(fio_workload, attempt.trial.workloads)
    assert [asked_iops(work) for work in works] == [pytest.approx(1_000, rel=0.01), pytest.approx(1_000, rel=0.01)]


def test_without_the_maximum_on_the_second_target_only_its_shares_end_and_run_again(run_on_two: Run) -> None:
    host, (_, second) = run_on_two.targets.all()[0].host, run_on_two.target_order
    while (attempt := under_way(host)).kind == AttemptKind.TRIAL:
        assert attempt.trial is not None
        if attempt.trial.point["streams"] == "writer" and str(attempt.trial.target_id) == second:
            fail(host)
        else:
            measure_streams(host, {"reader": 5_000, "writer": 5_000})
    say(host, attempt, (1, (ACCEPTED,)), (2, (DONE,)))
    together = run_on_two.trials.get(point__streams="reader + writer")
    assert (together.state, together.reason_code) == (TrialState.CANCELLED, "no_maximum")
    again = run_again(run=run_on_two, by=None, only_failed=True)
    targets = {(trial.point["streams"], trial.target_id == together.target_id) for trial in again.trials.all()}
    assert targets == {("reader", True), ("writer", False), ("reader + writer", True)}
