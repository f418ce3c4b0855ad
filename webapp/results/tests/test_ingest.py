"""Every way in which batches can arrive, and what each does to an attempt."""

import msgspec
import pytest

from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.results.models import Configuration, Result, Sample, StreamRun
from webapp.results.tests.ingesting import BEGUN, state
from webapp.runs.models import Attempt, SettingChange, TargetLock
from webapp.runs.selectors import phase_sentence
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.reports import (
    ACCEPTED,
    DONE,
    RESULT,
    STARTED,
    failed,
    run_to_the_end,
    sample,
    say,
)
from worker.contract.base import encode
from worker.contract.items import (
    Direction,
    Item,
    Observed,
    Phase,
    PhaseName,
    SettingRecord,
)
from worker.contract.packing import Histogram, pack, unpack
from worker.contract.reports import Batch, Report
from worker.contract.tests.examples import AT, BINS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


NO_HISTOGRAM = msgspec.structs.replace(
    sample(1), directions=(msgspec.structs.replace(sample(1).directions[0], latency=b"packed by nobody"),)
)


NO_RESULT = msgspec.structs.replace(RESULT.directions[0], latency=b"packed by nobody")


def test_it_keeps_everything_that_a_good_attempt_says(attempt: Attempt) -> None:
    observed = Observed(at=AT, facts={"kernel.release": "6.1.0"})
    setting = SettingRecord(at=AT, name="scheduler", device="sda", before="none", asked="none", observed="none")
    say(attempt.host, attempt, (1, (ACCEPTED, setting, observed, STARTED)), (2, (sample(0), sample(1))))
    assert state(attempt) == ("running", "running")
    say(attempt.host, attempt, (3, (Phase(at=AT, name=PhaseName.RUN, percent=50.4), RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    stream, result = StreamRun.objects.get(), Result.objects.get()
    assert stream.configuration == Configuration.objects.get()
    assert (stream.engine_version, stream.exit_code, bytes(stream.directions)) == ("fio-3.33", 0, b"")
    assert attempt.phase["name"] == "run"
    assert phase_sentence(attempt) == "measuring, 50 %"
    assert SettingChange.objects.get().asked == "none"
    assert unpack(result.latency) == BINS
    assert (result.p50_ns, result.p999_ns) == (79_360, 80_384)
    assert result.trial == attempt.trial
    assert Sample.objects.count() == 2


def test_a_direction_of_a_mix_without_io_is_a_result_of_zero_without_latencies(attempt: Attempt) -> None:
    read = RESULT.directions[0]
    nothing = msgspec.structs.replace(
        read, direction=Direction.WRITE, ios=0, bytes=0, iops=0, bytes_per_s=0, latency_min_ns=0, latency_mean_ns=0,
        latency_max_ns=0, latency_stddev_ns=0, latency=pack(Histogram()),
    )  # fmt: skip
    mixed = msgspec.structs.replace(RESULT, directions=(read, nothing))
    say(attempt.host, attempt, (1, (ACCEPTED, STARTED)), (2, (sample(0),)), (3, (mixed, DONE)))
    assert state(attempt) == ("done", "done")
    written = Result.objects.get(direction="write")
    assert (written.ios, written.iops, written.bytes_per_s, written.runtime_ms) == (0, 0, 0, read.runtime_ms)
    assert (written.latency_kind, written.latency_mean_ns, written.latency_max_ns, written.p99_ns) == (
        "",
        None,
        None,
        None,
    )


def test_it_links_a_configuration_observed_in_an_earlier_report(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, (ACCEPTED, Observed(at=AT, facts={"a": "b"}))))
    say(attempt.host, attempt, (2, (STARTED,)))
    assert StreamRun.objects.get().configuration


def test_it_ignores_a_known_batch(attempt: Attempt) -> None:
    for _ in range(2):
        reply = say(attempt.host, attempt, (1, BEGUN), (2, (sample(),)))
        assert (reply.confirmed_seq, reply.refusal) == (2, None)
    assert Sample.objects.count() == 1


def test_the_reply_to_a_gap_has_the_last_committed_number(attempt: Attempt) -> None:
    reply = say(attempt.host, attempt, (1, BEGUN), (3, (sample(1),)))
    assert (reply.confirmed_seq, reply.refusal) == (1, None)
    assert not Sample.objects.exists()
    reply = say(attempt.host, attempt, (2, (sample(0),)), (3, (sample(1),)))
    assert reply.confirmed_seq == 3


def test_it_accepts_no_batch_out_of_order(attempt: Attempt) -> None:
    assert say(attempt.host, attempt, (2, (sample(),)), (1, BEGUN)).confirmed_seq == 1
    assert not Sample.objects.exists()


def test_it_tells_another_host_no_more_than_of_an_unknown_attempt(attempt: Attempt) -> None:
    stranger = a_host()
    theirs = say(stranger, attempt, (1, BEGUN)).refusal
    nobodys = say(stranger, "6a0f3f0e-94cf-4f46-9a3d-6d7c3f0b8a01", (1, BEGUN)).refusal
    malformed = say(stranger, "not-a-uuid", (1, BEGUN)).refusal
    assert theirs == nobodys == malformed
    assert theirs
    assert theirs.code == "unknown_attempt"
    assert state(attempt) == ("dispatched", "dispatched")


def test_after_the_end_it_accepts_nothing_but_confirms_known_batches(attempt: Attempt) -> None:
    run_to_the_end(attempt.host, attempt)
    again = run_to_the_end(attempt.host, attempt)
    assert (again.confirmed_seq, again.refusal, again.cancel) == (3, None, True)
    late = say(attempt.host, attempt, (4, (sample(9),))).refusal
    assert late
    assert late.code == "attempt_closed"
    assert Result.objects.count() == 1


def test_it_keeps_samples_but_no_results_of_a_failed_attempt(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(), RESULT, failed("fio_error", "fio said no"))))
    assert state(attempt) == ("failed", "failed")
    assert attempt.trial
    assert (attempt.trial.reason_code, attempt.trial.reason) == ("fio_error", "fio said no")
    assert Sample.objects.count() == 1
    assert not Result.objects.exists()


def test_the_next_trial_starts_after_a_failure(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (failed(),)))
    following = Attempt.objects.latest("created_at")
    assert following.trial
    assert following.trial.index == 1
    assert TargetLock.objects.get().attempt == following


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ((ACCEPTED, sample()), "not started"),
        ((ACCEPTED, RESULT), "not started"),
        ((*BEGUN, sample(stream=3)), "stream 3"),
        ((*BEGUN, sample(), sample()), "already exists"),
        ((*BEGUN, sample(), msgspec.structs.replace(sample(), at=AT + 0.5)), "already exists"),
        ((*BEGUN, STARTED), "started before"),
        ((*BEGUN, RESULT, RESULT), "second result"),
        ((*BEGUN, DONE), "no result"),
        ((*BEGUN, RESULT, DONE, sample()), "after the item"),
        ((*BEGUN, msgspec.structs.replace(sample(), at=1e300)), "not a valid Unix time"),
        ((*BEGUN, msgspec.structs.replace(sample(), telemetry=(1e300,))), "out of range"),
        ((*BEGUN, sample(0), NO_HISTOGRAM, sample(2)), "histogram"),
        ((*BEGUN, msgspec.structs.replace(RESULT, directions=(NO_RESULT,)), DONE), "histogram"),
        ((ACCEPTED, Phase(at=AT, name=PhaseName.PURGE, target="a\x00b")), "NUL"),
        ((*BEGUN, failed(code="")), "without a code"),
    ],
)
def test_an_implausible_item_fails_its_attempt_with_a_code(
    attempt: Attempt, items: tuple[Item, ...], words: str
) -> None:
    reply = say(attempt.host, attempt, (1, items))
    assert reply.refusal
    assert reply.refusal.code == "bad_item"
    assert words in reply.refusal.message
    assert reply.confirmed_seq == 0
    assert state(attempt) == ("failed", "failed")
    assert attempt.outcome_code == "bad_item"
    assert not Sample.objects.exists()


def test_a_bad_attempt_does_not_affect_the_others_in_its_report(attempt: Attempt) -> None:
    run_to_the_end(attempt.host, attempt)
    second = Attempt.objects.latest("created_at")
    bad = Batch(attempt=str(attempt.pk), seq=4, items=(sample(5),))
    good = Batch(attempt=str(second.pk), seq=1, items=BEGUN)
    report = parse_report(encode(Report(batches=(bad, good))))
    replies = take_report(host=attempt.host, parsed=report).attempts
    assert [reply.refusal is None for reply in replies] == [False, True]
    assert replies[1].confirmed_seq == 1
