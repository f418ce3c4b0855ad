import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from webapp.analysis import run_findings
from webapp.analysis.answer import FindingKind
from webapp.analysis.reviews import review_finding
from webapp.analysis.run_answer import run_answer
from webapp.core import health
from webapp.core.models import Role
from webapp.hosts.models import Host
from webapp.imports.references import reading
from webapp.imports.references.reading import load_references
from webapp.plans.models import PlanVersion
from webapp.results.models import Import, KernelLine, Result, known
from webapp.results.validity import mark_run, mark_trial, trust_trial
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence
from webapp.screens.outcome import outcome_of
from webapp.screens.overview.drives import MOST_TILES
from webapp.tests.factories.hosts import a_drive, a_host, a_target, storage1_scratch
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version, first_look
from webapp.tests.factories.results import FACTS, Lab, finish_run
from webapp.tests.factories.runs import first_look_run, start_trial
from webapp.tests.factories.schedules import a_schedule
from webapp.trends.models import TrendSummary
from webapp.trends.services import set_baseline
from webapp.trends.summaries import make_due
from webapp.trends.tests.measuring import Nights

COMPARED = 'id="compared"'


def test_it_says_how_to_begin_while_there_is_no_host(operator: Client) -> None:
    first_look()
    page = operator.get("/").content.decode()
    assert 'id="first-steps"' in page
    assert "/plans/first-look/" in page


def test_it_shows_what_runs_and_what_has_finished(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    version = first_look()
    finished = first_look_run(version, [target], repeats=1)
    finish_run(finished)
    running = first_look_run(version, [target], repeats=1)
    start_trial(running.trials.get(index=4))
    page = operator.get("/").content.decode()
    assert 'id="first-steps"' not in page
    assert "Trial 5 of 12" in page
    assert 'data-host="storage1"' in page
    assert 'data-live-url="/runs/2/live/"' in page
    assert 'data-live-url="/runs/1/live/"' not in page


def test_it_takes_as_many_queries_for_many_runs_as_for_one(queries_of: Callable[[str], int]) -> None:
    target = storage1_scratch(a_host("storage1"))
    version = first_look()
    first_look_run(version, [target], repeats=1)
    first_look_run(version, [target], repeats=1, state="done")
    queries_of("/")  # what came of a finished run is computed once
    one = queries_of("/")
    for _ in range(3):
        first_look_run(version, [target], repeats=1)
        first_look_run(version, [target], repeats=1, state="done")
    queries_of("/")
    assert queries_of("/") == one


def test_it_says_what_the_numbers_of_a_finished_run_say(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target])
    finish_run(run)
    page = operator.get("/runs/1/").content.decode()
    assert "than io_uring" in page or "of io_uring" in page or "against io_uring" in page
    assert "/explore/?run=1" in page


def test_what_a_run_says_follows_which_trial_is_marked_and_not_how_many(operator: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=2)
    finish_run(run)
    run.results.exclude(point__pattern="read", point__ioengine="psync").delete()
    slow, fast = run.results.order_by("repeat")
    run.results.filter(pk=slow.pk).update(iops=1000)
    run.results.filter(pk=fast.pk).update(iops=9000)
    mark_trial(trial=known(fast.trial), reason="x", by=None)
    assert "IOPS 1.00k (n = 1)." in operator.get("/runs/1/").content.decode()
    trust_trial(trial=known(fast.trial), by=None)
    mark_trial(trial=known(slow.trial), reason="x", by=None)
    assert "IOPS 9.00k (n = 1)." in operator.get("/runs/1/").content.decode()


def test_reads_and_writes_are_told_separately_and_those_with_one_claim_together(db: None) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    for result in run.results.select_related("trial"):
        wild = result.point["pattern"] == "randwrite"
        more = 1.3 if wild and result.point["ioengine"] == "psync" else 1
        up = 1 if result.point["ioengine"] == "psync" else -1
        result.iops = 1000 * more * (1 + (0.5 if wild else 0.001) * up * (known(result.trial).repeat - 2))
        result.save(update_fields=["iops"])
    says = run_answer(run).headline
    together, alone = re.split(r"(?<=\.) ", says)
    assert together == "randread, read and write: psync differs from io_uring by less than 5 % in IOPS (n = 3)."
    assert alone.startswith("randwrite: psync and io_uring showed no certain difference in IOPS (")
    assert alone.endswith("n = 3), 2 points.")


def test_where_only_axes_of_load_vary_it_names_the_highest_value_and_where_it_is(db: None) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    run.results.exclude(point__pattern="randread").delete()
    run.results.exclude(point__ioengine="io_uring").delete()
    says = outcome_of(run).says
    assert re.fullmatch(
        r"The run reached \d+k IOPS at queue depth 32, its highest value \(95 % CI .+, n = 3\)\.", says
    ), says


def test_it_names_the_levels_at_which_a_series_is_faster_and_slower(db: None) -> None:
    """At queue depth 32, the other series is the faster one. Three blocks sizes each."""
    lab = Lab(a_target(a_host("a"), "scratch"))
    for depth, scheduler, speed in ((1, "none", 1.3), (1, "kyber", 1.0), (32, "none", 0.7), (32, "kyber", 1.0)):
        for block in (4096, 65536, 2**20):
            values = (1000.0 * speed * noise for noise in (0.999, 1.0, 1.001, 1.0))
            lab.measure(*values, block_size=block, iodepth=depth, scheduler=scheduler)
    found = outcome_of(lab.run)
    assert "x=matched" in found.url
    assert found.says.startswith(
        "I/O scheduler none is faster than kyber at Queue depth 1 (+30 %), but slower at Queue depth 32 (−30 %)."
    )


def test_it_says_what_comes_next_and_why_it_waits(operator: Client) -> None:
    host = a_host("storage1", state="maintenance", maintenance_note="new drives")
    first_look_run(first_look(), [storage1_scratch(host)], repeats=1, state="queued")
    page = operator.get("/").content.decode()
    assert "storage1 is in maintenance" in page
    assert "Nothing is running" in page


def test_it_says_what_the_product_is_while_there_is_no_host(operator: Client, admin: Client) -> None:
    assert "measures drives and controllers in your servers" in operator.get("/").content.decode()
    assert "Ask an admin to add the first host" in operator.get("/").content.decode()
    assert "/hosts/add/" in admin.get("/").content.decode()


def test_it_says_that_a_part_of_the_server_does_not_work(operator: Client) -> None:
    assert "The background tasks do not run." in operator.get("/").content.decode()
    for name in (*health.NEEDED, health.BEAT):
        health.note(name)
    assert "The background tasks do not run." not in operator.get("/").content.decode()


def table(title: str, drive: str, iops: int) -> Import:
    """A published table of two workloads."""
    text = f"pattern,block_size,iodepth,iops\nrandread,4k,1,{iops}\nrandread,4k,32,{10 * iops}\n"
    made = an_import(title=title, drive=drive, text=text)
    Import.objects.filter(pk=made.pk).update(slug=f"table-{made.number}")
    Result.objects.filter(origin__imported=made).update(reference=True)
    return made


def test_it_compares_the_first_pairs_of_published_tables(operator: Client, queries_of: Callable[[str], int]) -> None:
    assert COMPARED not in operator.get("/").content.decode()
    first = table("Old array", "X25-M", 1000)
    assert COMPARED not in operator.get("/").content.decode()  # one alone
    second = table("New array", "Vertex", 2500)
    page = unescape(operator.get("/").content.decode())
    card = page[page.index(COMPARED) :].partition("</section>")[0]
    assert "Old array" in card
    assert "New array" in card
    assert "Random read, lowest load" in card
    assert "×2.50" in card or "×0.40" in card
    assert "n = 1" in card
    address = re.findall(r'href="(/bench/[^"]+)"', card)[-1]
    assert {f"import:{first.number}", f"import:{second.number}"} == set(parse_qs(urlsplit(address).query)["product"])
    Import.objects.get(pk=second.pk).delete()
    assert COMPARED not in operator.get("/").content.decode()


@pytest.mark.parametrize("hosts", [1, 2])
def test_drives_are_compared_only_in_one_host(operator: Client, hosts: int) -> None:
    version, made = None, [a_host(f"h{number}") for number in range(hosts)]
    for number in (1, 2):
        lab = Lab(a_drive(made[-number % hosts], f"nvme{number}", model=f"M{number}"), version=version, number=number)
        version = lab.run.version
        lab.measure(*(1000.0 * 4**number + place for place in range(3)), iodepth=1)
        Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    page = unescape(operator.get("/").content.decode())
    card = page.partition(COMPARED)[2].partition("</section>")[0]
    assert ("worse" in card or "better" in card) is (hosts == 1)
    assert ("IOPS · " in card) is (hosts == 1)


def test_a_compared_pair_names_the_controller_if_others_have_values(operator: Client) -> None:
    host, version = a_host("h1"), None
    places = [(1, 1000.0, "HBA 1"), (1, 2000.0, "HBA 2"), (2, 3000.0, "HBA 2"), (2, 6000.0, "HBA 1")]
    drives = {number: a_drive(host, f"nvme{number}", model=f"M{number}") for number in (1, 2)}
    for run, (number, speed, controller) in enumerate(places, 1):
        lab = Lab(drives[number], version=version, number=run)
        version = lab.run.version
        facts = FACTS | {f"device.nvme{number}.controller.model": controller}
        lab.measure(*(speed + place for place in range(3)), iodepth=1, facts=facts)
        Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    page = unescape(operator.get("/").content.decode())
    card = page.partition(COMPARED)[2].partition("</section>")[0]
    assert "4 KiB · Controller HBA 1" in card


def test_pairs_are_not_compared_again_for_each_request(operator: Client, queries_of: Callable[[str], int]) -> None:
    queries_of("/")
    before = queries_of("/")
    table("Old array", "X25-M", 1000)
    table("New array", "Vertex", 2500)
    queries_of("/")  # compares them
    assert queries_of("/") == before


def test_an_import_that_is_still_read_is_compared_when_it_is_complete(operator: Client) -> None:
    table("Old array", "X25-M", 1000)
    other = table("New array", "Vertex", 2500)
    results, made = Result.objects.filter(origin__imported=other), other.results_made
    results.update(invalid=True)
    Import.objects.filter(pk=other.pk).update(results_made=0)
    assert COMPARED not in operator.get("/").content.decode()
    results.update(invalid=False)
    Import.objects.filter(pk=other.pk).update(results_made=made)
    assert COMPARED in operator.get("/").content.decode()


def test_a_pair_without_a_common_headline_is_left_out(operator: Client) -> None:
    table("Old array", "X25-M", 1000)
    other = table("New array", "Vertex", 2500)
    Result.objects.filter(origin__imported=other).update(iops=None, bytes_per_s=None)
    assert COMPARED not in operator.get("/").content.decode()


REFERENCE = """\
title = "Published {drive}"
source = "A. Author, “A page”"
date = "2020-07"
[labels]
drive = "{drive}"
[[files]]
name = "figures.csv"
tool = "a tool"
"""


def ratio_of_pair(person: Client) -> str:
    return person.get("/").content.decode().split('class="first-pair">')[1].split("<")[0].rpartition(": ")[2]


def test_compared_hardware_follows_a_reference_that_is_loaded_again(
    operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DATA", tmp_path)
    for drive in ("D1", "D2"):
        (tmp_path / drive).mkdir()
        (tmp_path / drive / "reference.toml").write_text(REFERENCE.format(drive=drive))
        (tmp_path / drive / "figures.csv").write_text("table,pattern,block_size,iodepth,iops\nT1,randread,4k,1,10000\n")
    load_references()
    assert ratio_of_pair(operator) == "0.0 %"
    (tmp_path / "D1" / "figures.csv").write_text("table,pattern,block_size,iodepth,iops\nT1,randread,4k,1,15000\n")
    load_references()  # as many results as before
    assert ratio_of_pair(operator) in ("+50 %", "+50.0 %", "−33.3 %", "−33 %", "×1.50", "×0.67", "×0.667")


def nightly(operator_host: str, slug: str, *levels: float) -> Nights:
    """A plan that measured each level in one night."""
    host = Host.objects.filter(slug=operator_host).first() or a_host(operator_host, last_seen_at=timezone.now())
    version = PlanVersion.objects.filter(plan__slug="nightly").first() or a_version(slug="nightly")
    nights = Nights(version, a_drive(host, slug), count=Run.objects.count())
    for level in levels:
        nights.run(level)
    return nights


STEADY = (1000.0,) * 14
SLOWER = (1000.0,) * 8 + (800.0,) * 6


def heading(page: str) -> str:
    return page.split("<h1>")[1].split("</h1>")[0]


def test_it_says_what_needs_a_person_and_agrees_with_trends(operator: Client) -> None:
    nightly("db1", "nvme0", *STEADY)
    nightly("db1", "nvme1", *SLOWER)
    make_due(60)
    page = operator.get("/").content.decode()
    assert heading(page) == "One drive got slower"
    assert heading(page) == heading(operator.get("/trends/").content.decode())
    assert "db1/nvme1 −20 %" in page
    assert "The other is as fast as before" in page
    assert page.count('class="spark-line tone-slower"') == 2  # its card and its tile
    assert page.count('class="spark-line tone-steady"') == 1


def test_a_gradual_loss_needs_a_person_and_noise_is_not_called_steady(operator: Client) -> None:
    nightly("storage1", "scratch", *(100_000 * 0.98**night for night in range(30)))
    nightly("storage2", "noisy", *(1000.0 * (1.2 if night % 3 else 0.8) for night in range(20)))
    make_due(60)
    page = operator.get("/").content.decode()
    assert heading(page) == "One drive got slower"
    assert "gradually over 30 runs" in page
    assert "storage1/scratch −44 %" in page
    assert "as fast as before" not in page
    response = operator.get("/trends/")
    listed = response.content.decode()
    assert heading(listed) == "One drive got slower"
    assert [row.at for row in response.context["changed"]] == [None]
    assert "1 without a certain change" in listed
    trend = operator.get("/trends/?plan=nightly&target=storage1/scratch").content.decode()
    assert "−44 % gradually over 30 runs" in " ".join(heading(trend).split())


def test_a_drive_that_became_worse_last_night_is_not_as_fast_as_before(operator: Client) -> None:
    nights = nightly("db1", "nvme0", *STEADY)
    nights.run(700.0, facts=FACTS | {"kernel.release": "6.12"})
    make_due(60)
    page = operator.get("/").content.decode()
    assert heading(page) == "One drive became worse in the newest run"
    assert heading(page) == heading(operator.get("/trends/").content.decode())
    card = page.partition('aria-label="Needs attention"')[2].partition("</section>")[0]
    number = nights.count
    assert f'href="/runs/{number}/"' in card
    assert "db1/nvme0 −30 %" in card
    assert f"in run {number}: Kernel changed" in " ".join(card.split())
    assert page.count('class="spark-line tone-slower"') == 2  # its card and its tile
    trend = heading(operator.get("/trends/?plan=nightly&target=db1/nvme0").content.decode())
    assert trend.strip().startswith(f"IOPS −30 % in run {number} alone")


@pytest.mark.parametrize(("newest", "said"), [
    (800.0, "One run was worse than the run before it"), (1250.0, "Nothing needs you"), (1000.0, "Nothing needs you"),
])  # fmt: skip
def test_a_run_that_is_worse_than_the_one_before_needs_a_person(operator: Client, newest: float, said: str) -> None:
    nights = nightly("db1", "nvme0")
    nights.run(1000.0, 2000.0, 4000.0)
    nights.run(newest, 2 * newest, 4 * newest)
    Run.objects.filter(number=nights.count).update(ended_at=timezone.now())
    make_due(60)
    run_findings.make_due(60)
    page = operator.get("/").content.decode()
    assert heading(page) == said
    card = page.partition('aria-label="Needs attention"')[2].partition("</section>")[0]
    assert ("Run 2 is 20 % slower" in card and "may be chance" in card) is (newest < 1000)
    Run.objects.filter(number=nights.count).update(ended_at=timezone.now() - timedelta(days=8))
    assert heading(operator.get("/").content.decode()) == "Nothing needs you"


def short_trend(*levels: float) -> list[Run]:
    """A run in each hour of the last hours, with findings."""
    nights = nightly("storage1", "nvme0")
    runs = [nights.run(level, 2 * level, 4 * level) for level in levels]
    start = timezone.now() - timedelta(hours=len(runs))
    for place, run in enumerate(runs):
        at = start + timedelta(hours=place)
        Run.objects.filter(pk=run.pk).update(started_at=at, ended_at=at + timedelta(minutes=30))
    make_due(60)
    run_findings.make_due(60)
    return runs


def needed(client: Client) -> str:
    """The cards, in one line."""
    page = client.get("/").content.decode()
    return " ".join(page.partition('aria-label="Needs attention"')[2].partition("</section>")[0].split())


def test_a_drive_that_stays_slower_needs_a_look(operator: Client) -> None:
    runs = short_trend(1000.0, 250.0, 250.0)
    assert heading(operator.get("/").content.decode()) == "One drive is still slower than before"
    assert "storage1/nvme0" in needed(operator)
    assert "75 % slower since run 2" in needed(operator)
    (finding,) = [each for each in run_findings.findings_of(runs)[2] if each.kind is FindingKind.CHANGED]
    review_finding(of=runs[1], key=finding.key, verdict="dismissed", reason="", by=a_user("ann"))
    assert heading(operator.get("/").content.decode()) == "Nothing needs you"


def test_a_loss_that_a_later_run_took_back_needs_nobody(operator: Client) -> None:
    short_trend(1000.0, 250.0, 1000.0)
    assert heading(operator.get("/").content.decode()) == "Nothing needs you"


def test_a_loss_that_was_taken_back_in_part_is_what_is_left(operator: Client) -> None:
    short_trend(1000.0, 250.0, 500.0)
    assert "50 % slower since run 2" in needed(operator)


def test_a_run_that_fails_against_its_baseline_needs_a_person(operator: Client) -> None:
    runs = short_trend(1000.0, 800.0)
    target = runs[0].targets.get()
    set_baseline(run=runs[0], target=target, tolerances={"iops": 5.0}, by=a_user("ann"))
    run_findings.make(runs[1])
    assert heading(operator.get("/").content.decode()) == "One run fails against its baseline"
    assert "run 2 fails against its baseline" in needed(operator)


def test_the_runs_of_the_last_day_are_as_many_as_on_the_page_runs(operator: Client) -> None:
    runs = short_trend(1000.0, 1000.0)
    mark_run(run=runs[1], reason="wrong cable", by=a_user("ann"))
    assert ">2 runs</a>" in operator.get("/").content.decode()
    assert heading(operator.get("/runs/").content.decode()) == "Two runs ended in the last 24 hours"


def test_a_host_that_is_away_is_named_and_its_drives_are_not_steady(operator: Client) -> None:
    nightly("db1", "nvme0", *STEADY)
    Host.objects.update(last_seen_at=timezone.now() - timedelta(hours=1))
    make_due(60)
    page = operator.get("/").content.decode()
    assert heading(page) == "One host is away"
    assert page.count('class="spark-line tone-away"') == 1
    assert 'class="spark-line tone-steady"' not in page


def test_missed_and_failed_runs_need_a_person(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1", last_seen_at=timezone.now()))
    schedule = a_schedule(a_user("sam", Role.OPERATOR), name="nightly", version=first_look(), targets=[target])
    Occurrence.objects.create(
        schedule=schedule, due_at=timezone.now() - timedelta(hours=2), state="missed", reason_code="late", position=0
    )
    run = first_look_run(schedule.version, [target], repeats=1, state="failed", reason_code="no_trial_done")
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now())
    page = operator.get("/").content.decode()
    assert heading(page) == "One run failed, one run was missed"
    assert f'href="/runs/{run.number}/"' in page
    assert f'href="/schedules/{schedule.pk}/"' in page


def test_storage_errors_in_the_kernel_log_need_a_person(operator: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1", last_seen_at=timezone.now()))], repeats=1)
    finish_run(run)
    attempt = run.attempts.filter(trial=run.trials.get(index=0)).get()
    Run.objects.filter(pk=run.pk).update(ended_at=timezone.now())
    assert "storage errors" not in heading(operator.get("/").content.decode())
    KernelLine.objects.create(attempt=attempt, sequence=1, at=timezone.now(), level=3, text="nvme0: timeout")
    assert heading(operator.get("/").content.decode()) == "One run had storage errors"


def test_of_many_drives_only_the_changed_ones_have_a_tile(operator: Client, queries_of: Callable[[str], int]) -> None:
    nightly("db1", "nvme0", *SLOWER)
    make_due(60)
    queries_of("/")
    before = queries_of("/")
    stored = TrendSummary.objects.get()
    host = a_host("z", last_seen_at=timezone.now())
    for number in range(MOST_TILES):
        content = {**stored.content, "state": "steady", "step": None}
        target = a_drive(host, f"sd{number}")
        TrendSummary.objects.create(
            plan=stored.plan, target=target, newest_run=1, version=stored.version, marks=0, content=content
        )
    queries_of("/")  # compares pairs anew
    assert queries_of("/") == before
    page = operator.get("/").content.decode()
    assert page.count('class="spark-line') == 2  # the card and the tile of nvme0
    assert f"{MOST_TILES} steady" in page
    assert "Mean over the points of the last run" in page
    assert re.search(r"scale −\d+ to \+\d+ %", page)


def test_own_pairs_come_before_references(operator: Client) -> None:
    table("Old array", "X25-M", 1000)
    table("New array", "Vertex", 2500)
    for drive, iops in (("M1", 1000), ("M2", 3000)):
        an_import(title=drive, drive=drive, text=f"pattern,block_size,iodepth,iops\nrandread,4k,1,{iops}\n")
    names = re.findall(r'class="name">([^<]+) against', unescape(operator.get("/").content.decode()))
    assert names[0] in ("M1", "M2")
    assert {"Old array", "New array"} & set(names[1:])
