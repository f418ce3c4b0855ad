"""A host's token is changed and its name and state are changed while a real worker measures: nothing is lost."""

import json
from itertools import accumulate
from pathlib import Path

import pytest
import redis

from webapp.hosts.credentials import request_rotation
from webapp.hosts.models import Host, WorkerLogLine
from webapp.hosts.services import begin_maintenance, end_maintenance, rename_host
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Sample, StreamRun
from webapp.runs.models import Attempt, AttemptState, Run, RunState, TrialState
from webapp.tests.system import StorageHost, System

pytestmark = pytest.mark.pipeline
RUNTIME_S = 6


def plan(title: str, *, runtime_s: int = RUNTIME_S, repeats: int = 1) -> PlanDocument:
    factors = {
        "pattern": "randread",
        "ioengine": "io_uring",
        "rate_iops": "1000",
        "size": "16M",
        "runtime": f"{runtime_s}s",
    }
    return PlanDocument(title=title, parts=(Part(name="main", factors=factors),), repeats=repeats)


def seconds_there(run: Run) -> bool:
    return Sample.objects.filter(attempt__run=run).exists()


def token_on_disk(system: System, slug: str) -> str:
    return str(json.loads((Path(system.folder) / slug / "worker.json").read_text())["host_token"])


def opens(broker_url: str) -> bool:
    try:
        with redis.Redis.from_url(broker_url, socket_timeout=3) as client:
            return bool(client.ping())
    except redis.AuthenticationError:
        return False


def test_it_changes_token_and_password_while_a_trial_streams_and_loses_nothing(
    system: System, storage: StorageHost
) -> None:
    """The trials after the first are ordered through the broker with the new password; nobody starts the worker."""
    before, old = token_on_disk(system, storage.slug), storage.host.token_hash
    old_url = storage.enrolment["broker_url"]
    run = system.start_run(plan("Rotate", repeats=2), storage.target("scratch"))
    system.until(lambda: seconds_there(run), limit_s=30, what="the trial streams")
    assert request_rotation(host=storage.host, by=None)
    system.until(lambda: storage.host.token_hash != old, limit_s=15, what="the new token was used")
    assert Attempt.objects.get(run=run, kind="trial").state == AttemptState.RUNNING
    assert not opens(old_url)
    assert opens(storage.enrolment["broker_url"])
    assert storage.host.next_token_hash is None
    assert token_on_disk(system, storage.slug) != before
    assert system.until_ended(run, limit_s=60).state == RunState.DONE
    streams = list(StreamRun.objects.filter(attempt__run=run))
    assert len(streams) == 2
    for stream in streams:
        samples = Sample.objects.filter(attempt=stream.attempt).order_by("offset_ms")
        lengths = dict(samples.values_list("offset_ms", "length_ms"))
        assert list(lengths) == list(accumulate(lengths.values())), "a sample is missing"
        assert len(lengths) == stream.samples_sent
    storage.stop()
    storage.start()  # with the token from its disk
    assert before not in storage.log


def test_it_goes_on_when_it_is_renamed_and_rests_when_it_is_told_to(system: System, storage: StorageHost) -> None:
    run = system.start_run(plan("Rename", runtime_s=3, repeats=2), storage.target("scratch"))
    system.until(lambda: seconds_there(run), limit_s=30, what="the first trial streams")
    rename_host(host=storage.host, slug="rack4", by=None)
    storage.slug = "rack4"
    begin_maintenance(host=storage.host, note="cabling", by=None)
    ended = run.trials.filter(state=TrialState.DONE)
    system.until(ended.exists, limit_s=30, what="the trial under way ends")
    for _ in range(2):  # two looks of the dispatcher
        system.until(lambda: True, limit_s=5, what="a tick")
    assert Attempt.objects.filter(run=run, kind="trial").count() == 1
    end_maintenance(host=storage.host, by=None)
    assert system.until_ended(run, limit_s=60).state == RunState.DONE
    assert ended.count() == 2


def test_it_shows_what_the_worker_wrote_to_its_log_without_its_secrets(system: System, storage: StorageHost) -> None:
    run = system.start_run(plan("Log", runtime_s=2), storage.target("scratch"))
    system.until_ended(run, limit_s=60)
    attempt = Attempt.objects.get(run=run, kind="trial")
    lines = WorkerLogLine.objects.filter(host=storage.host)
    system.until(
        lambda: lines.filter(attempt=attempt.pk, text__contains="Ended: done").exists(), limit_s=10, what="log"
    )
    assert lines.filter(text__contains="is ready").exists()
    secret = token_on_disk(system, Host.objects.get().slug if (system.folder / "rack4").exists() else "storage1")
    assert not lines.filter(text__contains=secret).exists()
    numbers = list(lines.values_list("session", "number"))  # at one time: the worker goes on writing
    assert len(numbers) == len(set(numbers))
