"""The number of words on the first screen of a page, in a window of 1440 × 900."""

import random
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page

from webapp.analysis import run_findings
from webapp.bench.picking import offered
from webapp.hosts.models import Host, Target
from webapp.imports.references.reading import load_references
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.services import load_builtin_plans
from webapp.results.models import Import, Result
from webapp.runs.models import Run
from webapp.screens.overview.views import SERVER_PROBLEMS, compared
from webapp.tests.factories.hosts import a_drive, a_host, an_inventory, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import a_version
from webapp.tests.factories.results import FACTS, Lab
from webapp.tests.first_screen import (
    MOST,
    MOST_ON_HOST,
    MOST_ON_OVERVIEW,
    MOST_ON_PLANS,
    words_on_first_screen,
)
from webapp.tests.visits import WATCH, visit
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
REFERENCES = ("x25-m-lvm-stripe", "mtron-raid0-12", "mtron-raid5-4")


@pytest.fixture
def drive() -> Target:
    return a_drive(a_host("storage1", last_seen_at=timezone.now()), "nvme0", model="SAMSUNG MZQL2", serial="S1")


def two_runs(drive: Target) -> None:
    """The second one has half the rates."""
    version = a_version(slug="schedulers")
    for number in (1, 2):
        a_run(drive, version, number, 1.0 / number)


def a_run(drive: Target, version: PlanVersion, number: int, factor: float) -> None:
    """Two patterns, four depths and two schedulers, measured three times in a random order; it has just ended."""
    lab = Lab(drive, version=version, number=number)
    noise = random.Random(number)
    for pattern, direction in (("randread", "read"), ("randwrite", "write")):
        for depth, gain in ((1, 1.0), (4, 0.6), (16, 1.4), (64, 1.0)):
            for scheduler, speed in (("none", factor), ("mq-deadline", factor * gain)):
                rates = [min(1000.0 * depth, 20_000.0) * speed * noise.uniform(0.98, 1.02) for _ in range(3)]
                facts = FACTS | {"device.scheduler": scheduler}
                lab.measure(
                    *rates, pattern=pattern, direction=direction, scheduler=scheduler, iodepth=depth, facts=facts
                )
    results = list(Result.objects.filter(run=lab.run))
    noise.shuffle(results)
    ended_at = timezone.now() - timedelta(hours=3 * max(0, 2 - number))
    for place, result in enumerate(results):
        at = ended_at - timedelta(minutes=len(results) - place)
        Result.objects.filter(pk=result.pk).update(measured_at=at)
    Run.objects.filter(pk=lab.run.pk).update(ended_at=ended_at, trial_count=lab.run.trials.count())


def words(page: Page, path: str, *names: str) -> list[str]:
    page.goto(path)
    page.wait_for_timeout(300)  # for scripts that add text
    return words_on_first_screen(page, ["A plan", "storage1", "SAMSUNG MZQL2", *names])


def test_overview(page: Page, drive: Target) -> None:
    """Three regressions, findings of two runs, and comparisons of references: about as much as there can be."""
    load_references()
    count = 10
    nightly = a_version(slug="nightly")
    for number in range(1, 5):
        nights = Nights(nightly, a_drive(drive.host, f"nvme{number}", model=f"M{number}", serial=f"S{number}0"), count)
        for level in (1000.0,) * 8 + ((700.0,) * 6 if number < 4 else (1000.0,) * 6):
            nights.run(level)
        count = nights.count
    two_runs(drive)
    make_due(60)
    run_findings.make_due(60)
    assert len(compared()) == 3
    names = [offer.text for group in offered() for offer in group.offers]
    names.append(SERVER_PROBLEMS["tasks"])  # no periodic task runs beside this test
    found = words(page, "/", *names, *(f"storage1/nvme{number}" for number in range(9)), "nightly")
    assert page.locator(".news li > a").count() == 3
    assert page.locator(".pair-tiles a").count() == 3
    assert len(found) <= MOST_ON_OVERVIEW, " ".join(found)


@pytest.mark.parametrize("count", [2, 3])
def test_bench(page: Page, count: int) -> None:
    load_references()
    imports = {imported.slug: imported for imported in Import.objects.filter(slug__in=REFERENCES)}
    chosen = [imports[slug] for slug in REFERENCES[:count]]
    query = "&".join(f"product=import:{imported.number}" for imported in chosen)
    address = f"/bench/?{query}"
    found = words(page, address, *(imported.title for imported in chosen))
    assert page.locator(".forest").count() == 1
    assert len(found) <= MOST, " ".join(found)
    page.set_viewport_size({"width": 390, "height": 844})
    page.add_init_script(WATCH)
    assert visit(page, address).problems == ()


def test_products_to_choose_from(page: Page, drive: Target) -> None:
    load_references()
    two_runs(drive)
    names = [offer.text for group in offered() for offer in group.offers]
    found = words(page, "/bench/", *names)
    assert page.locator(".bench-offer:visible").count() > 20
    assert len(found) <= MOST, " ".join(found)


def test_a_run_that_has_ended(page: Page, drive: Target) -> None:
    two_runs(drive)
    found = words(page, "/runs/2/", "storage1/nvme0", "Run 2", "run 1", "run 2")
    assert page.locator("#findings .finding:visible").count() >= 2
    assert len(found) <= MOST, " ".join(found)


def eight_targets() -> Host:
    """Six drives, a directory and a slot. Four drives have nights behind them, and one of these became slower."""
    host = a_host("storage1", settings_allowed=["scheduler"])
    an_inventory(host)
    drives = [storage1_drive(host, f"nvme{number}", stable_id=f"nvme-{number}", serial=f"S64GNE0R80012{number}",
                             path=f"/dev/nvme{number}n1") for number in range(6)]  # fmt: skip
    shared = drives[5].lock_keys
    storage1_scratch(host, lock_keys=shared)
    storage1_drive(host, "slot3", kind="slot", stable_id="slot3", path="c0/e252/s3", present=False,
                   problem="The slot is empty.")  # fmt: skip
    version, count = a_version(slug="nightly"), 0
    for number, drive in enumerate(drives[:4]):
        nights = Nights(version, drive, count)
        for level in (1000.0,) * 8 + ((700.0,) * 6 if number == 0 else (1000.0,) * 6):
            nights.run(level)
        count = nights.count
    make_due(60)
    run_findings.make_due(60)
    return host


def test_a_host_with_eight_targets(page: Page) -> None:
    host = eight_targets()
    names = {name for target in host.targets.all() for name in (target.slug, str(target), target.model, target.serial)}
    found = words(page, "/hosts/storage1/", *names, *(f"Run {number}" for number in range(57)))
    assert page.locator("#targets tbody tr").count() == 8
    assert len(found) <= MOST_ON_HOST, " ".join(found)


def test_the_built_in_plans(page: Page, drive: Target) -> None:
    """Some were run, so they have an answer."""
    load_builtin_plans()
    for number, plan in enumerate(Plan.objects.order_by("slug")[:12], start=1):
        a_run(drive, plan.versions.get(), number, 1.0)
    run_findings.make_due(60)
    found = words(page, "/plans/", *Plan.objects.values_list("title", flat=True))
    assert page.locator(".plan-name").count() == 47
    assert page.locator(".plan-answer a").count() == 12
    assert len(found) <= MOST_ON_PLANS, " ".join(found)
