"""Runs through a whole system: their plan, and what must be true of them when they end."""

from itertools import accumulate

from django.db.models import QuerySet

from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Result, Sample, StreamRun
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, Run, TargetLock
from webapp.tests.system import StorageHost


def samples_of(run: Run) -> QuerySet[Sample]:
    return Sample.objects.filter(attempt__run=run)


SMALL = {
    "size": "16M", "runtime": "2s", "pattern": "randread", "block_size": "4k", "iodepth": "4",
    "rate_iops": "1000",  # without a limit, fio uses much of a core
}  # fmt: skip


def plan(*, repeats: int = 1, retries: int = 1, drop_caches: bool = False, **factors: str) -> PlanDocument:
    return PlanDocument(
        title="Pipeline",
        parts=(Part(name="main", factors={**SMALL, **factors}),),
        repeats=repeats,
        retries=retries,
        drop_caches=drop_caches,
    )


def scratch(storage: StorageHost) -> Target:
    return storage.target("scratch")


def assert_whole(run: Run) -> None:
    """Every trial has exactly one result a direction, and its samples add up to it."""
    for trial in run.trials.all():
        streams = StreamRun.objects.filter(attempt__trial=trial, attempt__state="done")
        assert streams.count() == 1, trial
        stream = streams.get()
        samples = Sample.objects.filter(attempt=stream.attempt).order_by("offset_ms")
        lengths = {sample.offset_ms: sample.length_ms for sample in samples}
        assert list(lengths) == list(accumulate(lengths.values())), "a sample is missing"
        assert len(lengths) == stream.samples_sent
        for result in Result.objects.filter(stream_run=stream):
            assert sum(s.ios for s in samples if s.direction == result.direction) == result.ios
            assert sum(s.bytes for s in samples if s.direction == result.direction) == result.bytes


def assert_nothing_open() -> None:
    assert not Attempt.objects.filter(state__in=ACTIVE_ATTEMPT_STATES).exists()
    assert not TargetLock.objects.exists()
