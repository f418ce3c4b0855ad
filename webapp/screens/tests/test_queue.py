from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import Host, HostState, Target
from webapp.runs.dispatch.host_queues import queues
from webapp.runs.dispatch.queue import queued_runs
from webapp.runs.models import Run, RunState, TargetLock
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_trial
from webapp.tests.factories.runs import first_look_run, start_trial


@pytest.fixture
def target(db: None) -> Target:
    return storage1_scratch(a_host("storage1"))


@pytest.fixture
def runs(target: Target) -> list[Run]:
    """One that runs, two that wait."""
    version = first_look()
    made = [
        first_look_run(version, [target], repeats=1, state=state, queue_position=place, started_at=None)
        for place, state in enumerate(("running", "queued", "queued"), start=1)
    ]
    finish_trial(made[0].trials.get(index=0))
    start_trial(made[0].trials.get(index=1))
    return made


def reasons() -> list[str]:
    return [entry.waits_for for queue in queues() for entry in queue.entries]


def test_it_says_what_to_do_while_nothing_waits(operator: Client) -> None:
    assert "No run is active or waiting" in operator.get("/queue/").content.decode()


def test_it_shows_what_runs_and_what_waits_in_order_with_times(operator: Client, runs: list[Run]) -> None:
    (queue,) = queues()
    assert [entry.run.number for entry in queue.entries] == [1, 2, 3]
    assert [entry.working for entry in queue.entries] == [True, False, False]
    assert reasons() == ["", "run 1 goes first", "run 1 goes first"]
    first, second, third = queue.entries
    assert first.load.left == 11
    assert second.starts_at == first.ends_at
    assert third.starts_at == second.ends_at
    assert second.load.seconds == pytest.approx(12 * 3.4)
    assert [(entry.before, entry.after) for entry in queue.entries] == [(None, None), (None, 3), (2, None)]
    page = operator.get("/queue/").content.decode()
    assert "Run 2" in page
    assert 'aria-label="Move run 3 up">' in page


def test_the_heading_names_the_run_at_work_and_when_the_next_starts(operator: Client, runs: list[Run]) -> None:
    context = operator.get("/queue/").context
    assert context["heading"].startswith("Run 1 ")
    assert "two" in context["heading"]
    (queue,) = context["queues"]
    assert context["next_start"] == queue.entries[1].starts_at
    Host.objects.update(state=HostState.MAINTENANCE)
    assert operator.get("/queue/").context["next_start"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda run: Run.objects.filter(pk=run.pk).update(state="paused", paused_at=timezone.now()), "paused"),
        (lambda run: Run.objects.filter(pk=run.pk).update(cancel_requested_at=timezone.now()), "being cancelled"),
        (
            lambda run: (
                Run.objects.filter(pk=run.pk).update(armed_serials=["x"], armed_until=timezone.now() - timedelta(1)),
                run.trials.update(destructive=True),
            ),
            "its arming has expired",
        ),
    ],
)
def test_it_says_what_keeps_a_run_from_going_on(runs: list[Run], change: Callable[[Run], object], words: str) -> None:
    change(runs[1])
    assert words in reasons()[1]
    assert "run 1 goes first" in reasons()[2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": HostState.MAINTENANCE}, "maintenance"),
        ({"last_seen_at": timezone.now() - timedelta(hours=1)}, "offline"),
    ],
)
def test_it_says_that_nothing_goes_on_on_a_host(
    operator: Client, runs: list[Run], changes: dict[str, object], words: str
) -> None:
    Host.objects.update(**changes)
    assert words in queues()[0].trouble
    assert f"{words}: no run continues here" in operator.get("/queue/").content.decode()


def test_it_names_the_run_that_uses_the_drive_on_another_host(runs: list[Run], target: Target) -> None:
    other = storage1_scratch(a_host("storage2"), lock_keys=target.lock_keys)
    version = runs[0].version
    waiting = first_look_run(version, [other], repeats=1, state="queued", queue_position=9, started_at=None)
    attempt = runs[0].attempts.get(state="running")
    TargetLock.objects.create(lock_key=target.lock_keys[0], attempt=attempt)
    entry = next(entry for queue in queues() for entry in queue.entries if entry.run == waiting)
    assert entry.waits_for == "its drive is in use by run 1 on storage1"


def test_an_operator_changes_the_order_and_twice_is_once(operator: Client, runs: list[Run]) -> None:
    for _ in range(2):
        answer = operator.post("/queue/3/move/", {"before": "2", "button": "up-storage1-3"})
        assert answer["Location"] == "/queue/#up-storage1-3"
    assert list(queued_runs().values_list("number", flat=True)) == [1, 3, 2]
    operator.post("/queue/3/move/", {"after": "2"})
    assert list(queued_runs().values_list("number", flat=True)) == [1, 2, 3]


def test_it_says_why_a_run_cannot_be_moved(operator: Client, runs: list[Run]) -> None:
    Run.objects.filter(number=2).update(state=RunState.DONE, queue_position=None)
    assert "Run 2 is not in the queue" in operator.post("/queue/3/move/", {"before": "2"}, follow=True).content.decode()
    assert operator.post("/queue/3/move/", {"before": "99"}).status_code == 404


def test_a_viewer_sees_the_queue_and_no_buttons(viewer: Client, runs: list[Run]) -> None:
    page = viewer.get("/queue/").content.decode()
    assert "Run 3" in page
    assert "<button" not in page.partition('id="queue"')[2]


def test_cancelling_from_the_queue_leads_back_to_it(operator: Client, runs: list[Run]) -> None:
    assert operator.post("/runs/3/cancel/", {"back": "queue"})["Location"] == "/queue/"
    assert Run.objects.get(number=3).state == RunState.CANCELLED


def test_it_takes_as_many_queries_for_many_runs_as_for_few(
    queries_of: Callable[[str], int], runs: list[Run], target: Target
) -> None:
    few = queries_of("/queue/")
    for place in range(4, 9):
        first_look_run(runs[0].version, [target], repeats=1, state="queued", queue_position=place, started_at=None)
    assert queries_of("/queue/") == few
