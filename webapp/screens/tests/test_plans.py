from collections.abc import Callable

import pytest
from django.test import Client

from webapp.hosts.models import Target
from webapp.runs.models import Run
from webapp.screens.tests import factories


@pytest.fixture
def target(db: None) -> Target:
    factories.make_version()
    return factories.make_target(factories.make_host())


def test_it_says_what_to_do_while_there_is_no_plan(operator: Client) -> None:
    assert "There is no plan" in operator.get("/plans/").content.decode()


def test_it_reads_plans_out_as_sentences(operator: Client) -> None:
    factories.make_version()
    page = operator.get("/plans/").content.decode()
    assert "random read, random write · 4 KiB · io_uring, psync · queue depth 1, 32 · 3 s each" in page


def test_it_takes_as_many_queries_for_many_plans_as_for_one(queries_of: Callable[[str], int]) -> None:
    factories.make_version()
    one = queries_of("/plans/")
    for number in range(4):
        factories.make_version(slug=f"plan-{number}")
    assert queries_of("/plans/") == one


def test_it_shows_a_plan_without_any_usable_target(operator: Client) -> None:
    factories.make_version()
    page = operator.get("/plans/first-look/").content.decode()
    assert "No target is usable now" in page
    assert "What would happen" not in page


def test_it_shows_an_older_version_and_knows_no_later_one(operator: Client, target: Target) -> None:
    factories.make_version(number=2)
    assert "version 1," in operator.get("/plans/first-look/?version=1").content.decode()
    assert "version 2," in operator.get("/plans/first-look/").content.decode()
    assert operator.get("/plans/first-look/?version=3").status_code == 404


def test_it_previews_trials_bytes_and_the_fio_job_of_the_one_looked_at(operator: Client, target: Target) -> None:
    page = operator.get(f"/plans/first-look/?target={target.id}&trial=30").content.decode()
    assert '<span class="figure-value">36</span>' in page
    assert "fio job of trial #31" in page
    assert "filename=sweetspot." in page
    assert "Start 36 trials" in page
    assert "26–36 of 36" in page


def test_it_asks_for_the_serial_of_a_drive_that_would_be_overwritten(operator: Client, target: Target) -> None:
    drive = factories.make_drive(target.host)
    page = operator.get(f"/plans/first-look/?target={drive.id}").content.decode()
    assert "type its serial: <code>S64GNE0R800123</code>" in page
    assert "Overwrite storage1/nvme0 and start" in page


def test_it_offers_a_viewer_no_start(viewer: Client, target: Target) -> None:
    page = viewer.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert "Starting needs the role operator" in page
    assert "/start/" not in page


def test_it_starts_a_run_of_the_version_that_was_shown(operator: Client, target: Target) -> None:
    factories.make_version(number=2)
    response = operator.post("/plans/first-look/start/", {"version": "1", "target": str(target.id), "note": "first"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.number}/"
    assert (run.version.number, run.note, list(run.targets.all())) == (1, "first", [target])


@pytest.mark.parametrize("data", [{}, {"target": "nonsense"}, {"target": "00000000-0000-0000-0000-000000000000"}])
def test_it_starts_nothing_without_a_usable_target(operator: Client, target: Target, data: dict[str, str]) -> None:
    operator.post("/plans/first-look/start/", {"version": "1", **data})
    assert not Run.objects.exists()
    assert "Choose at least one target" in operator.get("/plans/first-look/").content.decode()


@pytest.mark.parametrize(("serial", "started"), [("S64GNE0R800123", True), ("S64GNE0R800124", False), ("", False)])
def test_it_starts_a_destructive_run_only_with_the_serial_typed(
    operator: Client, target: Target, serial: str, started: bool
) -> None:
    drive = factories.make_drive(target.host)
    data = {"version": "1", "target": str(drive.id), "serial": serial}
    response = operator.post("/plans/first-look/start/", data, follow=True)
    assert Run.objects.exists() is started
    assert ("Not started" in response.content.decode()) is not started
