"""The page of a trial: large figures first, the chart, and the rest folded."""

import re
from datetime import timedelta

from django.test import Client

from webapp.plans.points import point_key
from webapp.plans.streams import result_point
from webapp.results.models import KernelLine, Result, StreamRun, known
from webapp.runs.models import Run, Trial
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_trial
from webapp.tests.factories.runs import first_look_run
from worker.contract.steadiness import steadiness


def finished() -> Run:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    finish_trial(run.trials.get(index=0))
    return run


def page_of(client: Client) -> str:
    return client.get("/runs/1/trials/1/").content.decode()


def test_it_leads_with_the_figures_and_the_chart(viewer: Client) -> None:
    finished()
    Result.objects.update(iops=12_345, latency_mean_ns=80_000, p99_ns=250_000)
    page = page_of(viewer)
    tiles = page[page.index('class="tiles"') : page.index("</dl>")]
    assert [label in tiles for label in ("IOPS", "Bandwidth", "Mean latency", "p99 latency")] == [True] * 4
    assert "12.3k" in tiles
    assert "80.0 µs" in tiles
    assert page.index('class="tiles"') < page.index('id="seconds"') < page.index("All figures")


def test_it_names_the_direction_only_if_there_are_several(viewer: Client) -> None:
    run = finished()
    assert 'class="tile-direction"' not in page_of(viewer)
    result = run.results.get()
    result.pk, result.direction = None, "write"
    result.save()
    assert '<span class="tile-direction">write</span>' in page_of(viewer)


def test_it_says_how_a_stop_rule_ended_it_and_what_the_results_cover(viewer: Client) -> None:
    finished()
    assert "stop rule" not in page_of(viewer)
    stopped = {
        "rule": {"rule": "settled", "hold_s": 60},
        "reached": True,
        "at_ms": 272_000,
        "from_ms": 212_000,
        "to_ms": 272_000,
    }
    StreamRun.objects.update(stopped=stopped)
    words = "Settled after 212 s, by the stop rule settled 60s. The results are from 212 s to 272 s."
    assert words in page_of(viewer)


def test_it_folds_what_is_not_needed_at_first_sight(viewer: Client) -> None:
    finished()
    page = page_of(viewer)
    assert page.count('<details class="card"') == 5
    assert '<details class="card" id="kernel-log" open>' not in page


def test_storage_errors_are_open(viewer: Client) -> None:
    run = finished()
    attempt = run.attempts.get()
    KernelLine.objects.create(attempt=attempt, sequence=1, at=attempt.created_at, level=3, text="nvme0: timeout")
    assert '<details class="card" id="kernel-log" open>' in page_of(viewer)


def test_a_trial_that_has_not_started_says_so(viewer: Client) -> None:
    first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    assert "This trial has not started." in page_of(viewer)


def test_streams_have_verdicts_and_kinds_of_latency_of_their_own(viewer: Client) -> None:
    """The reader is steady and the writer halves its rate; only the writer has completion latency."""
    lab = Lab(storage1_scratch(a_host("storage1")))
    (reader,) = lab.measure(1000.0)
    trial = known(reader.trial)
    point = {**trial.point, "streams": "reader + writer"}
    Trial.objects.filter(pk=trial.pk).update(
        point=point, point_key=point_key(point), further_workloads=[trial.workload]
    )
    stream = known(reader.stream_run)
    StreamRun.objects.update(ended_at=stream.started_at + timedelta(seconds=60))
    writer = StreamRun.objects.create(
        attempt=stream.attempt, stream=1, job_text="[job]", command=[], started_at=stream.started_at,
        ended_at=stream.started_at + timedelta(seconds=60), configuration=stream.configuration,
    )  # fmt: skip
    for name, own, kind, last in (("reader", stream, "lat", 1000), ("writer", writer, "clat", 500)):
        found = steadiness([(1000 * n, 1000, 1000 if n <= 30 else last) for n in range(1, 61)])
        levels = result_point(point, name)
        reader.pk = reader.pk if name == "reader" else None
        reader.stream_run, reader.point, reader.point_key, reader.latency_kind = own, levels, point_key(levels), kind
        reader.steadiness, reader.steadiness_numbers = found.verdict.value, found.numbers
        reader.save()
    page = page_of(viewer)
    assert re.findall(r"<dt>Steadiness of (\w+)</dt><dd[^>]*>(\w+)", page) == [
        ("reader", "steady"),
        ("writer", "stepped"),
    ]
    assert "reader: read: latency is the total latency, submission to completion." in page
    assert "writer: read: latency is completion latency: with this engine option" in page
