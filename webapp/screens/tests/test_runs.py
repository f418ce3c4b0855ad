import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from itertools import product
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.analysis.tests.orders import alternate
from webapp.core.models import AuditEntry
from webapp.hosts.services import rename_host
from webapp.results.models import known
from webapp.runs.models import Run, SettingChange, Trial
from webapp.screens.outcome import outcome_of
from webapp.screens.templatetags.times import night_of
from webapp.tests.factories.hosts import a_host, a_target, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import a_point, first_look
from webapp.tests.factories.results import Lab, finish_run, finish_trial
from webapp.tests.factories.runs import a_run, fail_trial, first_look_run, start_trial

TOKYO = ZoneInfo("Asia/Tokyo")


def run_on_storage1(**changes: object) -> Run:
    target = storage1_scratch(a_host("storage1"))
    return first_look_run(first_look(), [target], **changes)  # type: ignore[arg-type]


def test_it_says_what_to_do_while_nothing_has_run(operator: Client) -> None:
    assert "No runs yet" in operator.get("/runs/").content.decode()


def test_it_lists_runs_of_one_state(operator: Client) -> None:
    run = run_on_storage1(repeats=1, state="cancelled")
    first_look_run(run.version, list(run.targets.all()), repeats=1)
    page = operator.get("/runs/?state=cancelled").content.decode()
    assert "Run 1<" in page
    assert "Run 2<" not in page
    assert "No runs match" in operator.get("/runs/?state=failed").content.decode()


def test_a_filter_by_a_hosts_former_name_follows_the_rename(operator: Client) -> None:
    run = run_on_storage1(repeats=1)
    rename_host(host=run.targets.get().host, slug="rack4", by=None)
    page = operator.get("/runs/?host=storage1").content.decode()
    assert "Run 1<" in page
    assert '<option value="rack4" selected>rack4</option>' in page


@pytest.mark.parametrize(
    ("ended_at", "title"),
    [
        (None, "Now"),
        (datetime(2026, 11, 28, 20, 0, tzinfo=TOKYO), "Tonight"),
        (datetime(2026, 11, 28, 8, 0, tzinfo=TOKYO), "Today"),
        (datetime(2026, 11, 28, 7, 59, tzinfo=TOKYO), "Last night"),
        (datetime(2026, 11, 27, 20, 0, tzinfo=TOKYO), "Last night"),
        (datetime(2026, 11, 27, 19, 59, tzinfo=TOKYO), "Yesterday"),
        (datetime(2026, 11, 26, 23, 0, tzinfo=TOKYO), "Night to Fri 27 Nov"),
        (datetime(2026, 11, 25, 12, 0, tzinfo=TOKYO), "Wed 25 Nov"),
        (datetime(2025, 12, 31, 22, 0, tzinfo=TOKYO), "Night to Thu 1 Jan"),
        (datetime(2025, 6, 1, 12, 0, tzinfo=TOKYO), "Sun 1 Jun 2025"),
    ],
)
def test_runs_are_grouped_by_the_night_or_day_in_which_they_ended(ended_at: datetime | None, title: str) -> None:
    with timezone.override(TOKYO), patch.object(timezone, "now", return_value=datetime(2026, 11, 28, 12, tzinfo=TOKYO)):
        assert night_of(ended_at) == title


def test_a_run_without_a_person_is_started_by_the_system(operator: Client) -> None:
    run = run_on_storage1(repeats=1, state="done", ended_at=timezone.now())
    Run.objects.filter(pk=run.pk).update(created_by=None)
    assert re.search(r'data-label="Started by">\s*system', operator.get("/runs/").content.decode())


def test_open_runs_come_first_then_those_that_ended_last(operator: Client) -> None:
    first = run_on_storage1(repeats=1, state="done", ended_at=timezone.now())
    targets = list(first.targets.all())
    for ended_at, state in ((timezone.now() - timedelta(days=9), "done"), (None, "running")):
        first_look_run(first.version, targets, repeats=1, state=state, ended_at=ended_at)
    page = operator.get("/runs/").content.decode()
    assert re.findall(r">Run (\d)<", page) == ["3", "1", "2"]
    assert page.count('scope="rowgroup"') == 3
    assert 'scope="rowgroup"' not in operator.get("/hosts/storage1/").content.decode()


def test_a_page_of_runs_is_read_from_the_index_of_its_order(operator: Client) -> None:
    """PostgreSQL sorts the few rows of a test faster than it reads an index, so it may not."""
    run_on_storage1(repeats=1)
    with CaptureQueriesContext(connection) as queries:
        operator.get("/runs/")
    (listed,) = [query["sql"] for query in queries.captured_queries if "NULLS FIRST" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {listed}")
        assert "run_list" in str(cursor.fetchall())


def test_it_takes_as_many_queries_for_many_runs_as_for_one(queries_of: Callable[[str], int]) -> None:
    run = run_on_storage1(repeats=1)
    one = queries_of("/runs/")
    for _ in range(4):
        first_look_run(run.version, list(run.targets.all()), repeats=1)
    assert queries_of("/runs/") == one


def test_it_shows_a_run_that_has_not_started(operator: Client) -> None:
    run_on_storage1(repeats=1, state="queued", started_at=None)
    page = operator.get("/runs/1/").content.decode()
    assert "Queued" in page
    assert '<h1 id="run-heading">12 trials wait to start</h1>' in page
    assert "No samples yet" in page
    assert "The run has changed no settings so far" in page


def test_only_trials_in_directories_say_that_files_are_written_first(operator: Client) -> None:
    """Nothing is written first on a block device; the factor stays in the stored point."""
    host = a_host("storage1")
    for target in (storage1_scratch(host), storage1_drive(host)):
        a_run(target)
    Trial.objects.update(point=a_point(prefill=True))
    for address, written in (("/runs/1/", True), ("/runs/2/", False)):
        for page in (address, f"{address}trials/1/"):
            assert ("written first" in operator.get(page).content.decode().lower()) is written, page


def test_a_finished_run_has_a_headline(operator: Client) -> None:
    finish_run(run_on_storage1())
    page = operator.get("/runs/1/").content.decode()
    assert "36 trials in" in page
    assert "than io_uring" in page or "of io_uring" in page or "against io_uring" in page
    assert "No samples yet" not in page


def test_a_setting_that_the_kernel_changed_is_not_shown_as_requested(operator: Client) -> None:
    run = run_on_storage1(repeats=1)
    finish_run(run)
    attempt = run.attempts.all()[0]
    SettingChange.objects.create(
        attempt=attempt, at=attempt.created_at, name="nr_requests", device="sda", before="256", observed="100",
        restoring=True, restored=True,
    )  # fmt: skip
    page = operator.get("/runs/1/").content.decode()
    assert "<td>–</td><td>changed along with another setting</td><td>to 100</td>" in page


def test_it_shows_the_grid_with_numbers_reasons_and_what_is_still_planned(operator: Client) -> None:
    run = run_on_storage1(repeats=2)
    finish_trial(run.trials.get(index=0))
    fail_trial(run.trials.get(index=1), reason="fio 3.33 on storage1 has no psync.")
    page = operator.get("/runs/1/").content.decode()
    result = run.results.get()
    assert (
        f'data-trial="1"><a href="/runs/1/trials/1/" title="Trial 1: Done">{known(result.iops) / 1000:.1f}k</a>' in page
    )
    assert 'class="trial state-failed" data-trial="2"' in page
    assert "fio 3.33 on storage1 has no psync." in page
    assert page.count('class="trial state-planned"') == 22
    assert "Cancel run 1?" in page


def test_it_takes_as_many_queries_for_a_large_run_as_for_a_small_one(
    operator: Client, queries_of: Callable[[str], int]
) -> None:
    before = run_on_storage1(repeats=1)  # so that both have a run before them there
    run, large = (first_look_run(before.version, list(before.targets.all()), repeats=n) for n in (1, 4))
    for one in (before, run, large):
        finish_run(one)
    assert queries_of("/runs/2/") == queries_of("/runs/3/")


def test_it_offers_cancelling_only_to_operators_and_only_while_the_run_is_open(
    operator: Client, viewer: Client
) -> None:
    run = run_on_storage1(repeats=1)
    assert "/runs/1/cancel/" in operator.get("/runs/1/").content.decode()
    assert "/runs/1/cancel/" not in viewer.get("/runs/1/").content.decode()
    Run.objects.filter(pk=run.pk).update(state="done")
    assert "/runs/1/cancel/" not in operator.get("/runs/1/").content.decode()


def test_it_cancels_a_run(operator: Client) -> None:
    run_on_storage1(repeats=1)
    assert operator.post("/runs/1/cancel/")["Location"] == "/runs/1/"
    assert Run.objects.get().cancel_requested_at is not None or Run.objects.get().state == "cancelled"
    page = operator.get("/runs/1/").content.decode()
    assert "being cancelled. Changed settings will be restored" in page
    assert 'action="/runs/1/cancel/"' not in page


def test_it_says_so_when_a_run_has_ended_before_it_could_be_cancelled(operator: Client) -> None:
    run_on_storage1(repeats=1, state="done")
    operator.post("/runs/1/cancel/")
    assert "has already ended" in operator.get("/runs/1/").content.decode()
    assert Run.objects.get().cancel_requested_at is None


def test_it_shows_requested_and_observed_settings_of_a_trial(operator: Client) -> None:
    run = run_on_storage1(repeats=3)
    finish_trial(run.trials.get(index=0))
    page = operator.get("/runs/1/trials/1/").content.decode()
    for text in ("rw=randread", "cpu affinity is not set", "mq-deadline", "kernel.release", "Repeat 3", "exit code 0"):
        assert text in page


def test_it_shows_a_failed_trial_with_its_reason_and_a_planned_one_without_numbers(operator: Client) -> None:
    run = run_on_storage1(repeats=1)
    fail_trial(run.trials.get(index=0), code="fio_silent", reason="fio said nothing for 60 s.")
    failed = operator.get("/runs/1/trials/1/").content.decode()
    assert "fio_silent" in failed
    assert "fio said nothing for 60 s." in failed
    assert "This trial has not started" in operator.get("/runs/1/trials/2/").content.decode()


def test_a_trial_has_one_number_on_its_page_in_its_address_and_in_the_api(operator: Client) -> None:
    run = run_on_storage1(repeats=1)
    fail_trial(run.trials.get(index=0), reason="fio said nothing for 60 s.")
    start_trial(run.trials.get(index=1))
    links = re.findall(r'href="/runs/1/trials/(\d+)/">(?:trial )?#(\d+)<', operator.get("/runs/1/").content.decode())
    assert len(links) > 1
    assert all(address == number for address, number in links)
    assert operator.get("/runs/1/trials/0/").status_code == 404
    assert "<h1>Trial 1: " in operator.get("/runs/1/trials/1/").content.decode()
    assert "<h1>Trial 12: " in operator.get("/runs/1/trials/12/").content.decode()
    assert operator.get("/runs/1/trials/13/").status_code == 404
    live = operator.get("/runs/1/live/").json()
    assert [now["trial"] for now in live["now"]] == [2]
    assert sorted(cell["trial"] for cell in live["cells"]) == list(range(1, 13))
    listed = operator.get("/api/v1/runs/1/trials").json()["items"]
    assert [trial["number"] for trial in listed] == list(range(1, 13))
    assert operator.get("/api/v1/runs/1").json()["progress"]["running"] == 2


def test_trials_are_skipped_and_noted_by_their_number(operator: Client) -> None:
    run = run_on_storage1(repeats=1)
    sent = {"content_type": "application/json"}
    assert operator.post("/api/v1/runs/1/skip", {"trials": [12]}, **sent).status_code == 200  # type: ignore[arg-type]
    assert [trial.index for trial in run.trials.filter(state="cancelled")] == [11]
    assert operator.post("/api/v1/runs/1/skip", {"trials": [0]}, **sent).json()["code"] == "trial_unknown"  # type: ignore[arg-type]
    made = operator.post("/api/v1/runs/1/notes", {"text": "loud", "trial": 12}, **sent).json()  # type: ignore[arg-type]
    assert made["trial"] == 12
    operator.post("/runs/1/skip/", {"trial": "11"})
    operator.post("/runs/1/notes/", {"text": "hot", "back": "12"})
    assert [note.trial and note.trial.index for note in run.notes.all()] == [11, 11]
    told = [(entry.action, entry.label, entry.detail.get("trials")) for entry in AuditEntry.objects.order_by("id")]
    assert told == [
        ("run.skip", "run 1", [12]), ("note.add", "run 1 trial 12", None), ("run.skip", "run 1", [11]),
        ("note.add", "run 1 trial 12", None),
    ]  # fmt: skip


def test_the_headline_is_about_the_factors_that_the_plan_varies_over_all_targets(operator: Client) -> None:
    """Two targets at two queue depths: targets differ by 50 %, schedulers by 10 % at each of these points."""
    lab = Lab(a_target(a_host("a"), "scratch"))
    slow = a_target(lab.target.host, "slow")
    for scheduler, factor in (("none", 1.0), ("mq-deadline", 0.9)):
        for target, speed in ((lab.target, 1000.0), (slow, 500.0)):
            for depth in (1, 32):
                values = [factor * speed * depth * (1 + 0.001 * noise) for noise in (0, 1, 2, 1, 0)]
                lab.measure(*values, target=target, scheduler=scheduler, iodepth=depth)
    lab.run.targets.add(slow)
    alternate(lab.run)
    made = outcome_of(lab.run)
    assert "none is 11 % faster than mq-deadline" in made.says
    assert ", 4 points" in made.says
    assert "slow" not in made.says.replace("slower", "")
    page = operator.get(made.url)
    assert page.status_code == 200
    assert "none is 11 % faster than mq-deadline" in page.content.decode()
    api = operator.get(made.url.replace("/explore/", "/api/v1/compare"))
    assert [level["text"] for level in api.json()["levels"]] == [
        "a/scratch · Queue depth 1", "a/scratch · Queue depth 32", "a/slow · Queue depth 1", "a/slow · Queue depth 32",
    ]  # fmt: skip
    assert api.json()["single_factor"] is True


def test_what_is_matched_is_only_an_x_axis(operator: Client) -> None:
    assert operator.get("/api/v1/compare?x=iodepth&series=matched").json()["code"] == "compare_matched_not_x"


def test_each_factor_of_the_plan_has_a_line_and_a_comparison(operator: Client) -> None:
    lab = Lab(a_target(a_host("a"), "scratch"))
    for scheduler, engine, depth in product(("none", "kyber"), ("io_uring", "psync"), (1, 8)):
        lab.measure(*(1000.0 + place for place in range(4)), scheduler=scheduler, ioengine=engine, iodepth=depth)
    page = unescape(operator.get("/runs/1/").content.decode())
    addresses = [f"/explore/?run=1&x=matched&series={name}" for name in ("scheduler", "ioengine")]
    assert [page.count(f'href="{address}"') for address in addresses] == [1, 1]
    assert operator.get("/explore/?run=1")["Location"] == addresses[0]
    explored = unescape(operator.get(addresses[0]).content.decode())
    links = re.search(r'<nav class="table-links" aria-label="Factors">.*?</nav>', explored, re.DOTALL)
    assert links
    assert re.findall(r'href="([^"]+)"', links[0]) == addresses
    assert re.findall(r'aria-current="true">([^<]+)<', links[0]) == ["I/O scheduler"]
