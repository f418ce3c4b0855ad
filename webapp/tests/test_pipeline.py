"""From a plan to numbers in PostgreSQL, with nothing in between replaced."""

import http.client
import json
import time
import urllib.request
from urllib.parse import urlsplit

import pytest

from webapp.core.services import create_api_token
from webapp.results.models import Result, StreamRun, known
from webapp.runs.models import Attempt, AttemptKind, RunState, SettingChange, TargetLock, Trial
from webapp.tests.factories.people import operator
from webapp.tests.system import StorageHost, System
from webapp.tests.whole_runs import assert_whole, plan, samples_of, scratch

pytestmark = [pytest.mark.pipeline]


def test_connections_on_which_nothing_is_said_hold_nobody_up(system: System) -> None:
    """A thread would wait five seconds for the first byte of each, and there are sixteen threads."""
    before = system.web.connections()
    idle = [system.web.idle() for _ in range(60)]
    for _ in range(20):
        with urllib.request.urlopen(f"{system.web.url}/healthz/live", timeout=60) as answer:
            assert answer.status == 200
    assert system.web.connections() < before + 20
    for connection in idle:
        connection.close()


def test_connections_of_clients_that_poll_stay_open_and_hold_nobody_up(system: System) -> None:
    """More of them than there are threads; gunicorn's own limit is two seconds."""
    polling = [http.client.HTTPConnection("127.0.0.1", urlsplit(system.web.url).port, timeout=60) for _ in range(20)]
    for connection in polling:
        connection.connect()
        connection.auto_open = 0  # a closed connection is an error, not opened again
    for _ in range(2):
        for connection in polling:
            connection.request("GET", "/healthz/live")
            assert connection.getresponse().read()
        time.sleep(3.5)  # longer than gunicorn's own limit
    with urllib.request.urlopen(f"{system.web.url}/healthz/live", timeout=60) as answer:
        assert answer.status == 200
    for connection in polling:
        connection.request("GET", "/healthz/live")
        assert connection.getresponse().read()
        connection.close()


def test_it_turns_a_plan_into_results(system: System, storage: StorageHost) -> None:
    run = system.start_run(plan(pattern="randread, randrw", read_percent="70", repeats=2), scratch(storage))
    system.until_ended(run, limit_s=60)

    trials = list(run.trials.all())
    assert run.state == RunState.DONE, [(t.state, t.reason) for t in trials]
    assert [t.state for t in trials] == ["done"] * 4
    assert_whole(run)
    for result in Result.objects.filter(run=run):
        assert result.iops == pytest.approx(known(result.ios) * 1000 / known(result.runtime_ms), rel=0.01)
        assert result.bytes == known(result.ios) * 4096
        assert result.p50_ns is not None
        assert 0 < known(result.latency_min_ns) <= known(result.p50_ns) <= known(result.latency_max_ns) * 1.01
        assert result.latency_kind == "lat"
    stream = StreamRun.objects.filter(attempt__run=run).first()
    assert stream is not None
    final = json.loads(stream.attachments.get().content)
    assert final["fio version"] == stream.engine_version
    assert "ioengine=io_uring" in stream.job_text
    assert stream.configuration is not None
    assert stream.configuration.facts
    assert not TargetLock.objects.exists()
    assert run.attempts.get(kind=AttemptKind.CLOSE_RUN).state == "done"


def test_it_says_by_name_what_this_host_cannot_do(system: System, storage: StorageHost) -> None:
    """hipri needs poll queues, which no target here has: the trial fails by name or is refused before it starts."""
    run = system.start_run(plan(hipri="true", pattern="randread"), scratch(storage))
    system.until_ended(run, limit_s=60)
    trial = run.trials.get()
    assert trial.state == "failed"
    assert trial.reason_code == "uring_feature_missing"
    assert "hipri" in trial.reason
    assert not run.results.exists()
    assert run.state == RunState.FAILED


def test_it_cancels_a_running_trial(system: System, storage: StorageHost) -> None:
    from webapp.runs.services import cancel_run

    run = system.start_run(plan(runtime="60s", repeats=3), scratch(storage))
    system.until(lambda: samples_of(run).exists(), limit_s=30, what="samples stream")
    cancel_run(run=run, by=None)
    system.until_ended(run, limit_s=20)
    assert run.state == RunState.CANCELLED
    assert {t.state for t in run.trials.all()} == {"cancelled"}
    assert not Attempt.objects.filter(state__in=["dispatched", "accepted", "running"]).exists()


def test_its_api_shows_the_run_to_a_token_and_to_nobody_else(system: System, storage: StorageHost) -> None:
    import urllib.error

    run = system.start_run(plan(), scratch(storage))
    system.until_ended(run, limit_s=60)
    token = create_api_token(user=operator(), name="test")
    trials = system.get(f"/api/v1/runs/{run.number}/trials", token=token)
    assert json.dumps(trials).count('"done"') >= 1
    with pytest.raises(urllib.error.HTTPError) as refused:
        system.get(f"/api/v1/runs/{run.number}")
    assert refused.value.code == 401
    assert system.get("/api/v1/openapi.json")["paths"]


def test_it_removes_nothing_of_a_failed_attempt(system: System, storage: StorageHost) -> None:
    """A trial whose worker is killed keeps the samples it had sent, and is tried again."""
    run = system.start_run(plan(runtime="6s", retries=1), scratch(storage))
    system.until(lambda: samples_of(run).count() >= 2, limit_s=30, what="two samples")
    storage.kill()
    before = samples_of(run).count()
    storage.start()
    system.until_ended(run, limit_s=60)
    assert samples_of(run).count() >= before
    assert Trial.objects.get(run=run).attempts.count() >= 1
    assert not SettingChange.objects.filter(restoring=True, restored=False).exists()
