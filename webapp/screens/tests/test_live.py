"""What a run's page is told: everything once the cursor has moved over it, whatever happens in between."""

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import patch

import msgspec
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.hosts.models import Host
from webapp.results.models import Sample
from webapp.runs.models import Attempt, Run, Transition, Trial
from webapp.screens.payloads import LiveRun
from webapp.screens.runs import live
from webapp.screens.runs.live import SharedAnswers
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import add_seconds, finish_run, finish_trial
from webapp.tests.factories.runs import fail_trial, first_look_run, start_trial


@pytest.fixture
def run(db: None) -> Run:
    target = storage1_scratch(a_host("storage1"))
    return first_look_run(first_look(), [target], repeats=1)


def trial(run: Run, index: int) -> Trial:
    return run.trials.select_related("run", "host", "target").get(index=index)


def seconds(payload: LiveRun) -> list[tuple[int, int]]:
    return [(sample.trial, sample.offset_ms // 1000 - 1) for sample in payload.samples]


def test_it_answers_with_the_payload_that_the_script_checks(operator: Client, run: Run) -> None:
    finish_trial(trial(run, 0))
    response = operator.get("/runs/1/live/")
    payload = msgspec.json.decode(response.content, type=LiveRun)
    assert seconds(payload) == [(1, 0), (1, 1), (1, 2)]
    assert payload.cells[0].state == "done"
    assert payload.cells[0].values[0].direction == "read"
    assert "no-store" in response["Cache-Control"]


def test_it_gives_each_second_once_as_the_cursor_moves(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    noise = random.Random(1)
    add_seconds(attempt, 2, noise)
    first = live.live_run(run)
    assert seconds(first) == [(1, 0), (1, 1)]
    assert live.live_run(run, first.cursor).samples == ()
    add_seconds(attempt, 2, noise, first=2)
    assert seconds(live.live_run(run, first.cursor)) == [(1, 2), (1, 3)]


def test_it_says_when_nothing_is_heard_of_a_host_any_more(run: Run) -> None:
    finish_trial(trial(run, 1), timezone.now() - timedelta(minutes=10), seconds=2)
    attempt = start_trial(trial(run, 0))
    heard = live.live_run(run)
    assert heard.now[0].phase == "measuring"
    assert heard.seconds_left is not None
    assert re.fullmatch(r"1 of 12 trials, [\dminsh ]+ left", heard.heading), heard.heading
    now = timezone.now()
    long_ago = now - timedelta(minutes=9)
    Attempt.objects.filter(pk=attempt.pk).update(created_at=long_ago, lease_until=now + timedelta(seconds=700.5))
    Host.objects.update(last_seen_at=now - timedelta(seconds=200.5))
    with patch.object(timezone, "now", return_value=now):
        silent = live.live_run(run)
    assert silent.now[0].phase == "nothing heard of storage1 for 3 min 20 s, lost in 11 min 40 s"
    assert (silent.seconds_left, silent.heading) == (None, "1 of 12 trials")


def test_it_catches_up_over_several_trials_after_a_lost_connection(run: Run) -> None:
    began = timezone.now() - timedelta(minutes=1)
    finish_trial(trial(run, 0), began, seconds=2)
    before = live.live_run(run)
    finish_trial(trial(run, 1), began + timedelta(seconds=5), seconds=2)
    finish_trial(trial(run, 2), began + timedelta(seconds=10), seconds=2)
    after = live.live_run(run, before.cursor)
    assert seconds(after) == [(2, 0), (2, 1), (3, 0), (3, 1)]


def test_it_hands_out_whole_seconds_in_pages_and_loses_none(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    add_seconds(attempt, 7, random.Random(1))
    Sample.objects.bulk_create(_other_direction(sample) for sample in Sample.objects.all())
    got, cursor, pages, more = [], "", 0, True
    with patch.object(live, "SAMPLES_AT_ONCE", 5):
        while more:
            page = live.live_run(run, cursor)
            got += [(sample.offset_ms, sample.direction) for sample in page.samples]
            cursor, more, pages = page.cursor, page.more, pages + 1
    assert got == [(1000 * n, direction) for n in range(1, 8) for direction in ("read", "write")]
    assert pages > 2


def _other_direction(sample: Sample) -> Sample:
    return Sample(
        attempt_id=sample.attempt_id, stream=0, offset_ms=sample.offset_ms, length_ms=1000, direction="write",
        at=sample.at, ios=1, bytes=4096, latency=b"",
    )  # fmt: skip


def test_it_follows_two_hosts_whose_reports_come_at_different_times(db: None) -> None:
    targets = [storage1_scratch(a_host(slug)) for slug in ("a", "b")]
    run = first_look_run(first_look(), targets, repeats=1)
    noise = random.Random(1)
    early = start_trial(trial(run, 0), timezone.now() - timedelta(seconds=30))
    add_seconds(early, 1, noise)
    on_b = run.trials.filter(target=targets[1]).select_related("run", "host", "target").first()
    assert on_b is not None
    late = start_trial(on_b, timezone.now() - timedelta(seconds=20))
    add_seconds(late, 2, noise)
    first = live.live_run(run)
    add_seconds(early, 2, noise, first=1)
    assert {(s.host, s.offset_ms // 1000 - 1) for s in live.live_run(run, first.cursor).samples} == {("a", 1), ("a", 2)}


def test_it_starts_far_back_but_not_without_end(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    add_seconds(attempt, 10, random.Random(1))
    with patch.object(live, "SAMPLES_AT_FIRST", 4):
        assert seconds(live.live_run(run)) == [(1, 6), (1, 7), (1, 8), (1, 9)]


def test_it_tells_only_cells_that_may_have_changed(run: Run) -> None:
    first = live.live_run(run)
    assert len(first.cells) == run.trial_count
    finish_trial(trial(run, 3), timezone.now())
    assert [cell.trial for cell in live.live_run(run, first.cursor).cells] == [4]


def test_it_repeats_changes_whose_transaction_may_have_been_late(run: Run) -> None:
    finish_trial(trial(run, 0), timezone.now() - timedelta(seconds=10))
    cursor = live.live_run(run).cursor
    assert [cell.trial for cell in live.live_run(run, cursor).cells] == [1]
    Transition.objects.update(at=timezone.now() - timedelta(hours=1))
    assert live.live_run(run, cursor).cells == ()


def test_it_says_what_runs_now_and_why_a_trial_failed(run: Run) -> None:
    fail_trial(trial(run, 0), reason="fio said nothing for 60 s.")
    start_trial(trial(run, 1))
    payload = live.live_run(run)
    assert [(now.host, now.trial, now.phase) for now in payload.now] == [("storage1", 2, "measuring")]
    assert payload.cells[0].reason == "fio said nothing for 60 s."
    assert payload.failed == 1


def test_it_knows_when_a_run_has_ended(run: Run) -> None:
    assert not live.live_run(run).ended
    finish_run(run)
    payload = live.live_run(run)
    assert payload.ended
    assert payload.done == run.trial_count


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "a.b.c@1",
        "0f.0.0@1",
        "@",
        "@99999999999999999999",
        "é@1",
        "@-62135596800000",
        "@٣",
        f"{'0' * 32}.0.99999999999@1",
    ],
)
def test_it_refuses_a_cursor_that_is_not_its_own(operator: Client, run: Run, cursor: str) -> None:
    response = operator.get("/runs/1/live/", {"after": cursor})
    assert response.status_code == 422
    assert response.json()["code"] == "bad_cursor"


def test_it_survives_a_cursor_of_an_attempt_that_is_not_there(run: Run) -> None:
    finish_trial(trial(run, 0))
    assert len(live.live_run(run, f"{'0' * 32}.0.5@1700000000000").samples) == 3


def test_late_seconds_of_an_attempt_that_was_lost_and_heard_again_are_given_too(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    noise = random.Random(1)
    add_seconds(attempt, 2, noise)
    first = live.live_run(run)
    Attempt.objects.update(state="lost")
    second = live.live_run(run, first.cursor)
    Attempt.objects.update(state="running")
    add_seconds(attempt, 2, noise, first=2)
    assert seconds(live.live_run(run, second.cursor)) == [(1, 2), (1, 3)]


def test_a_clock_that_runs_back_hides_no_second(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    noise = random.Random(1)
    add_seconds(attempt, 2, noise)
    cursor = live.live_run(run).cursor
    attempt.started_at = timezone.now() - timedelta(days=1)
    add_seconds(attempt, 2, noise, first=2)
    assert seconds(live.live_run(run, cursor)) == [(1, 2), (1, 3)]


@pytest.mark.parametrize(("offset_ms", "shift_s"), [(None, 0), (900, 0), (-900, 0), (3_600_000, 3600), (-5_000, -5)])
def test_a_workers_wrong_clock_does_not_bend_the_axis(run: Run, offset_ms: int | None, shift_s: float) -> None:
    attempt = start_trial(trial(run, 0))
    add_seconds(attempt, 1, random.Random(1))
    before = live.live_run(run).samples[0].at_s
    Attempt.objects.update(clock_offset_ms=offset_ms)
    assert live.live_run(run).samples[0].at_s == pytest.approx(before + shift_s, abs=0.01)


def test_readers_that_are_up_to_date_hold_the_same_cursor(run: Run) -> None:
    attempt = start_trial(trial(run, 0))
    add_seconds(attempt, 3, random.Random(1))
    early = live.live_run(run).cursor
    assert live.live_run(run, early).cursor.partition("@")[0] == live.live_run(run).cursor.partition("@")[0]


def test_it_asks_the_database_alike_for_a_long_run_and_a_short_one(run: Run) -> None:
    finish_trial(trial(run, 0), timezone.now() - timedelta(minutes=5))
    few = queries_for(run, live.live_run(run).cursor)
    for index in range(1, 6):
        finish_trial(trial(run, index), timezone.now() - timedelta(minutes=4 - index / 2))
    assert queries_for(run, live.live_run(run).cursor) == few


def queries_for(run: Run, cursor: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        live.live_run(run, cursor)
    return len(captured)


def test_fifty_who_ask_the_same_at_once_cost_one_answer() -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        time.sleep(0.05)  # long enough that all of them wait for it
        return b"answer"

    answers = SharedAnswers()
    with ThreadPoolExecutor(50) as people:
        assert set(people.map(lambda _: answers.get("same", make), range(50))) == {b"answer"}
    assert len(made) == 1
    answers.get("another", make)
    assert len(made) == 2


def test_an_answer_is_shared_for_a_moment_only_and_trouble_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = SharedAnswers()
    with pytest.raises(live.BadCursor):
        answers.get("key", lambda: live.Cursor.read("nonsense") and b"")  # type: ignore[arg-type, return-value]
    assert answers.get("key", lambda: b"first") == b"first"
    assert answers.get("key", lambda: b"second") == b"first"
    monkeypatch.setattr(live, "SHARED_S", 0.0)
    assert answers.get("key", lambda: b"second") == b"second"
