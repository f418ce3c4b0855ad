import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from webapp.core import heartbeats
from webapp.core.models import Role
from webapp.imports.references import reading
from webapp.imports.references.reading import load_references
from webapp.results.models import Import, KernelLine, Result, known
from webapp.results.validity import mark_trial, trust_trial
from webapp.runs.models import Run
from webapp.schedules.models import Occurrence
from webapp.screens.outcome import outcome
from webapp.screens.overview.views import HOSTS_SHOWN
from webapp.tests.factories.hosts import a_drive, a_host, a_target, storage1_scratch
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_run
from webapp.tests.factories.runs import fail_trial, first_look_run, start_trial
from webapp.tests.factories.schedules import a_schedule


def test_it_says_how_to_begin_while_there_is_no_host(operator: Client) -> None:
    first_look()
    page = operator.get("/").content.decode()
    assert "First steps" in page
    assert "/plans/first-look/" in page
    assert "Nothing is running" in page


def test_it_shows_what_runs_and_what_has_finished(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    version = first_look()
    finished = first_look_run(version, [target], repeats=1)
    finish_run(finished)
    running = first_look_run(version, [target], repeats=1)
    start_trial(running.trials.get(index=4))
    page = operator.get("/").content.decode()
    assert "First steps" not in page
    assert "Trial 5 of 12" in page
    assert 'data-host="storage1"' in page
    assert 'data-live-url="/runs/2/live/"' in page
    assert 'data-live-url="/runs/1/live/"' not in page
    assert "12 of 12" in page


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
    page = operator.get("/").content.decode()
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
    assert "IOPS 1.00k (n = 1)." in operator.get("/").content.decode()
    trust_trial(trial=known(fast.trial), by=None)
    mark_trial(trial=known(slow.trial), reason="x", by=None)
    for page in ("/", "/runs/1/"):
        assert "IOPS 9.00k (n = 1)." in operator.get(page).content.decode()


def test_reads_and_writes_are_told_separately_and_those_with_one_claim_together(db: None) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    for result in run.results.select_related("trial"):
        wild = result.point["pattern"] == "randwrite"
        more = 1.3 if wild and result.point["ioengine"] == "psync" else 1
        up = 1 if result.point["ioengine"] == "psync" else -1
        result.iops = 1000 * more * (1 + (0.5 if wild else 0.001) * up * (known(result.trial).repeat - 2))
        result.save(update_fields=["iops"])
    says = outcome(run, marks=0).says
    together, alone = re.split(r"(?<=\.) ", says)
    assert together == "randread, read and write: psync differs from io_uring by less than 5 % in IOPS (n = 3)."
    assert alone.startswith("randwrite: psync showed ")
    assert alone.endswith("n = 3), 2 points; not certain.")


def test_where_only_axes_of_load_vary_it_names_the_highest_value_and_where_it_is(db: None) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    run.results.exclude(point__pattern="randread").delete()
    run.results.exclude(point__ioengine="io_uring").delete()
    says = outcome(run, marks=0).says
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
    found = outcome(lab.run, marks=0)
    assert "x=matched" in found.url
    assert found.says.startswith(
        "I/O scheduler none is faster than kyber at Queue depth 1 (+30 %), but slower at Queue depth 32 (−30 %)."
    )


def test_it_gives_the_reason_where_trials_failed(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target], repeats=1, state="failed", reason_code="no_trial_done")
    fail_trial(run.trials.get(index=0))
    page = operator.get("/").content.decode()
    assert "No trial of the run was completed." in page
    assert "1 of 12 trials failed. First reason: fio 3.33 on storage1 has no psync." in page


def test_it_says_what_comes_next_and_why_it_waits(operator: Client) -> None:
    host = a_host("storage1", state="maintenance", maintenance_note="new drives")
    first_look_run(first_look(), [storage1_scratch(host)], repeats=1, state="queued")
    page = operator.get("/").content.decode()
    assert "storage1 is in maintenance" in page
    assert "12 trials" in page
    assert "Nothing is running" in page


def test_it_says_what_the_product_is_while_there_is_no_host(operator: Client, admin: Client) -> None:
    assert "measures the storage of your servers" in operator.get("/").content.decode()
    assert "Ask an admin to add the first host" in operator.get("/").content.decode()
    assert "/hosts/add/" in admin.get("/").content.decode()


def test_it_shows_hosts_with_problems_first(operator: Client) -> None:
    for number in range(HOSTS_SHOWN):
        a_host(f"a{number}", capabilities={"engines": {"fio": {}}}, last_seen_at=timezone.now())
    a_host("z-silent", last_seen_at=timezone.now() - timedelta(hours=1), capabilities={"engines": {"fio": {}}})
    page = operator.get("/").content.decode()
    hosts = page[page.index('id="health"') : page.index('id="due-next"')]
    assert hosts.index("z-silent") < hosts.index("/hosts/a0/")
    assert "The host is offline." in hosts
    assert "1 more host" in hosts


def test_it_says_that_a_part_of_the_server_does_not_work(operator: Client) -> None:
    assert "The background tasks do not run." in operator.get("/").content.decode()
    for name in (*heartbeats.NEEDED, heartbeats.BEAT):
        heartbeats.note(name)
    assert "The background tasks do not run." not in operator.get("/").content.decode()


def test_it_lists_runs_whose_results_need_a_second_look(operator: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    finish_run(run)
    assert "Results to check" not in operator.get("/").content.decode()
    results = list(run.results.order_by("pk")[:3])
    for result, verdict in zip(results, ("stalled", "drifting", "drifting"), strict=True):
        result.steadiness = verdict
        result.save(update_fields=["steadiness"])
    attempt = run.attempts.filter(trial=run.trials.get(index=0)).get()
    KernelLine.objects.create(attempt=attempt, sequence=1, at=timezone.now(), level=3, text="nvme0: timeout")
    page = operator.get("/").content.decode()
    assert "1 trial stalled, 2 trials drifting, 1 trial with storage errors in the kernel log." in page


def test_it_suggests_the_next_step(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    assert "Start a plan</a>. " in operator.get("/").content.decode()
    run = first_look_run(first_look(), [target], repeats=1)
    fail_trial(run.trials.get(index=0))
    finish_run(run)
    page = operator.get("/").content.decode()
    assert "Repeat the 1 failed trial of run 1" in page
    assert "/explore/?run=1" in page
    assert "Schedule a plan" in page
    finish_run(first_look_run(run.version, [target], repeats=1, again_of=run))
    assert "Repeat the 1 failed trial" not in operator.get("/").content.decode()


def test_it_shows_what_is_due_missed_and_changed(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    schedule = a_schedule(a_user("sam", Role.OPERATOR), name="nightly", version=first_look(), targets=[target])
    for days in (3, 2, 1):
        run = first_look_run(schedule.version, [target], repeats=1)
        finish_run(run)
        Occurrence.objects.create(
            schedule=schedule, due_at=timezone.now() - timedelta(days=days), state="ended", run=run, position=0
        )
    Result.objects.filter(run__number=1, trial__index=0).delete()
    page = operator.get("/").content.decode()
    assert 'id="trends"' in page
    assert "since the first of 2 complete runs" in page


def table(title: str, drive: str, iops: int) -> Import:
    """A published table of two workloads."""
    text = f"pattern,block_size,iodepth,iops\nrandread,4k,1,{iops}\nrandread,4k,32,{10 * iops}\n"
    made = an_import(title=title, drive=drive, text=text)
    Import.objects.filter(pk=made.pk).update(slug=f"table-{made.number}")
    Result.objects.filter(origin__imported=made).update(reference=True)
    return made


def test_it_compares_the_first_pairs_of_published_tables(operator: Client, queries_of: Callable[[str], int]) -> None:
    assert "Hardware compared" not in operator.get("/").content.decode()
    first = table("Old array", "X25-M", 1000)
    assert "Hardware compared" not in operator.get("/").content.decode()  # one alone
    second = table("New array", "Vertex", 2500)
    page = unescape(operator.get("/").content.decode())
    card = page[page.index("Hardware compared") :].partition("</section>")[0]
    assert card.count("<tr>") == 2  # the head and one pair
    assert {"Old array", "New array"} <= set(re.split(r"[<>]| and ", card))
    assert "Random read" in card
    assert "Random read, lowest load" in card
    assert "1,000 IOPS" in card
    assert "2,500 IOPS" in card
    assert "×2.50" in card or "×0.40" in card
    assert "n = 1: too few repeats for a conclusion." in card
    address = re.findall(r'href="(/bench/[^"]+)"', card)[-1]
    assert {f"import:{first.number}", f"import:{second.number}"} == set(parse_qs(urlsplit(address).query)["product"])
    Import.objects.get(pk=second.pk).delete()
    assert "Hardware compared" not in operator.get("/").content.decode()


@pytest.mark.parametrize("hosts", [1, 2])
def test_drives_are_compared_only_in_one_host(operator: Client, hosts: int) -> None:
    version, made = None, [a_host(f"h{number}") for number in range(hosts)]
    for number in (1, 2):
        lab = Lab(a_drive(made[-number % hosts], f"nvme{number}", model=f"M{number}"), version=version, number=number)
        version = lab.run.version
        lab.measure(*(1000.0 * number + place for place in range(3)), iodepth=1)
        Run.objects.filter(pk=lab.run.pk).update(ended_at=timezone.now())
    page = unescape(operator.get("/").content.decode())
    card = page.partition("Hardware compared")[2].partition("</section>")[0]
    assert ("% worse" in card or "% better" in card) is (hosts == 1)


def test_hardware_compared_names_what_is_assumed_of_an_import(operator: Client) -> None:
    table("Old array", "X25-M", 1000)
    text = "pattern,block_size,iodepth,iops\nrandread,4k,32,25000\nrandread,4k,,2500\n"
    made = an_import(title="New array", drive="Vertex", text=text)
    Import.objects.filter(pk=made.pk).update(slug="table-new")
    Result.objects.filter(origin__imported=made).update(reference=True)
    page = unescape(operator.get("/").content.decode())
    card = page[page.index("Hardware compared") :].partition("</section>")[0]
    assert "2,500 IOPS" in card
    assert "1 factor not stated; matched with QD 1" in card


def test_pairs_are_not_compared_again_for_each_request(operator: Client, queries_of: Callable[[str], int]) -> None:
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
    assert "Hardware compared" not in operator.get("/").content.decode()
    results.update(invalid=False)
    Import.objects.filter(pk=other.pk).update(results_made=made)
    assert "Hardware compared" in operator.get("/").content.decode()


def test_a_pair_without_a_common_headline_is_left_out(operator: Client) -> None:
    table("Old array", "X25-M", 1000)
    other = table("New array", "Vertex", 2500)
    Result.objects.filter(origin__imported=other).update(iops=None, bytes_per_s=None)
    assert "Hardware compared" not in operator.get("/").content.decode()


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


def test_compared_hardware_follows_a_reference_that_is_loaded_again(
    operator: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "DATA", tmp_path)
    for drive in ("D1", "D2"):
        (tmp_path / drive).mkdir()
        (tmp_path / drive / "reference.toml").write_text(REFERENCE.format(drive=drive))
        (tmp_path / drive / "figures.csv").write_text("table,pattern,block_size,iodepth,iops\nT1,randread,4k,1,10000\n")
    load_references()
    assert operator.get("/").content.decode().count("10.0 kIOPS") == 2
    (tmp_path / "D1" / "figures.csv").write_text("table,pattern,block_size,iodepth,iops\nT1,randread,4k,1,15000\n")
    load_references()  # as many results as before
    assert "15.0 kIOPS" in operator.get("/").content.decode()
