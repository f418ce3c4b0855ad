"""The server is killed in the middle of a trial that people look at: the chart has every second afterwards."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from webapp.plans.document import Part, PlanDocument
from webapp.results.models import Sample
from webapp.runs.models import Run, RunState
from webapp.runs.services import cancel_run
from webapp.tests.factories.people import PASSWORD, operator
from webapp.tests.system import StorageHost, System

pytestmark = [pytest.mark.pipeline, pytest.mark.browser]

OUTAGE_MS = 5_000
HELD = """() => [...document.querySelectorAll("#seconds-table tr[data-sample]")].map((row) => row.dataset.sample)"""


def open_run(page: Page, run: Run) -> None:
    page.goto(f"/runs/{run.number}/")
    page.get_by_label("Name").fill(operator().username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Table, newest first").click()


def stored(run: Run) -> list[str]:
    rows = Sample.objects.filter(attempt__run=run).order_by("offset_ms").select_related("attempt__trial")
    return [f"{row.attempt.trial.number}/{row.attempt.number}/{row.offset_ms}/{row.direction}" for row in rows]  # type: ignore[union-attr]


def test_the_chart_catches_up_after_the_server_was_gone(system: System, storage: StorageHost, page: Page) -> None:
    factors = {"pattern": "randread", "iodepth": "1", "size": "16M", "runtime": "90s"}
    document = PlanDocument(title="Catch up", parts=(Part(name="main", factors=factors),), repeats=1)
    run = system.start_run(document, storage.target("scratch"))
    open_run(page, run)
    rows = page.locator("#seconds-table tr[data-sample]")
    expect(rows.nth(2)).to_be_attached()

    system.web.kill()
    expect(page.locator("#page-problem")).to_contain_text("No live data")
    before = rows.count()
    page.wait_for_timeout(OUTAGE_MS)  # the outage itself
    assert rows.count() == before
    system.web.start()

    expect(rows.nth(before + OUTAGE_MS // 1000)).to_be_attached()
    expect(page.locator("#page-problem")).to_be_hidden()
    held = sorted(page.evaluate(HELD), key=lambda name: int(name.split("/")[2]))
    assert held == stored(run)[: len(held)], "a second is missing, doubled or of another trial"
    offsets_ms = [int(name.split("/")[2]) for name in held]
    assert max(b - a for a, b in pairwise([0, *offsets_ms])) < 3000

    cancel_run(run=run, by=None)
    assert system.until_ended(run, limit_s=90).state == RunState.CANCELLED
    expect(page.get_by_role("button", name="Run again")).to_be_visible()  # it has reloaded
    page.get_by_text("Samples and telemetry").click()
    page.get_by_text("Table, newest first").click()
    expect(rows).to_have_count(len(stored(run)))


def test_an_operator_pauses_skips_and_runs_again(system: System, storage: StorageHost, page: Page) -> None:
    factors = {"pattern": "randread", "iodepth": "1", "size": "16M", "runtime": "60s"}
    document = PlanDocument(title="Hands on", parts=(Part(name="main", factors=factors),), repeats=2)
    run = system.start_run(document, storage.target("scratch"))
    open_run(page, run)
    expect(page.locator("#now-iops")).to_contain_text(re.compile(r"\d"))

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused by operator")).to_be_visible()
    page.get_by_role("button", name="Skip this trial").click()
    page.get_by_label("Reason (optional)").fill("takes too long")
    page.get_by_role("button", name="Skip trial 1").click()
    expect(page.locator('[data-trial="1"]')).to_have_text("Cancelled")
    expect(page.locator("#failures")).to_contain_text("Skipped by operator: takes too long")
    system.until(lambda: not run.attempts.filter(ended_at=None).exists(), limit_s=30, what="the host is free")
    assert run.trials.get(index=1).state == "planned"

    page.goto("/queue/")
    expect(page.get_by_text("Paused by operator")).to_be_visible()
    page.get_by_role("link", name=f"Run {run.number}").click()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#now-title")).to_have_text("Trial 2 of 2")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("#cancel-now")).to_contain_text("Trial 2 on storage1 will be stopped.")
    page.get_by_role("button", name=f"Cancel run {run.number}").click()
    assert system.until_ended(run, limit_s=60).state == RunState.CANCELLED
    expect(page.get_by_role("button", name="Run again")).to_be_visible()

    page.get_by_role("button", name="Run again").click()
    page.get_by_label("Same order").check()
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url(re.compile(rf"/runs/{run.number + 1}/$"))
    again = Run.objects.get(number=run.number + 1)
    assert (again.again_of, again.seed) == (run, run.seed)
    system.until(lambda: again.attempts.exists(), limit_s=30, what="the new run begins")
    page.get_by_role("button", name="Cancel run").first.click()
    page.get_by_role("button", name=f"Cancel run {again.number}").click()
    system.until_ended(again, limit_s=60)
