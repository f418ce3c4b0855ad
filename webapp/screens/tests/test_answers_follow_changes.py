"""No page shows an old answer: whoever writes what, each page is the same as one that is computed anew."""

import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import zip_longest
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from msgspec import structs

from webapp.analysis.seals import WATCHED
from webapp.analysis.services import remove_price, set_price
from webapp.celery import app
from webapp.core import answers, changes
from webapp.core.answers import Question, _is_being_renewed
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.hosts.models import Host, Target
from webapp.hosts.services import begin_maintenance, end_maintenance, rename_host
from webapp.imports.files import FileRead, read_files
from webapp.imports.reading.limits import Read
from webapp.imports.services import Published, remove_references, store_reference, undo_import
from webapp.plans.document import read
from webapp.plans.models import Plan
from webapp.plans.services import save_version
from webapp.results.models import Import, KernelLine, StreamRun
from webapp.results.retention import delete_run
from webapp.results.validity import mark_run, trust_run, trust_trial
from webapp.runs.models import Run, RunState, SettingChange, Trial, TrialState
from webapp.screens.overview.views import compared
from webapp.screens.runs import grid
from webapp.screens.tasks import renew_bench
from webapp.tests.factories.hosts import a_drive, a_host, an_inventory
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.results import FACTS, Lab, a_configuration
from webapp.tests.sampling import part_of
from webapp.trends.services import remove_baseline, set_baseline

pytestmark = pytest.mark.django_db
PAGES = (
    "/explore/", "/explore/?run=1,2&x=iodepth&series=run&lines=baseline",
    "/explore/?run=1&x=iodepth&series=ioengine&view=latency",
    "/explore/?run=1&x=iodepth&metric=bytes_per_s&ceilings=on", "/explore/?import=1",
    "/explore/?x=iodepth&series=target&lines=published", "/bench/?product=run:1&product=run:2",
    "/bench/?product=model:M1&product=model:M2", "/trends/?plan=grid&target=storage1/nvme0", "/runs/1/", "/runs/2/",
    "/imports/1/", "/explore.json?run=1,2&x=iodepth&series=run", "/explore.json?import=1",
    "/api/v1/compare?run=1&x=iodepth&series=ioengine", "/bench.json?product=run:1&product=run:2",
    "/api/v1/bench?product=model:M1&product=model:M2", "/bench/shares.json?product=model:M1",
)  # fmt: skip


@dataclass
class World:
    """Two runs of one plan at two drives of one host, and an import."""

    by: User
    host: Host
    labs: tuple[Lab, Lab]
    chance: random.Random

    @property
    def run(self) -> Run:
        """One that has not been deleted."""
        return self.chance.choice(list(Run.objects.filter(number__in=(1, 2))))

    @property
    def trial(self) -> Trial:
        found = Trial.objects.filter(run__number__in=(1, 2), state=TrialState.DONE).select_related("run")
        return self.chance.choice(list(found))


@pytest.fixture
def world() -> World:
    host = a_host("storage1")
    first = Lab(a_drive(host, "nvme0", model="M1", serial="S1"), number=1)
    second = Lab(a_drive(host, "nvme1", model="M2", serial="S2"), version=first.run.version, number=2)
    Plan.objects.update(slug="grid")
    for lab in (first, second):
        for depth in (1, 32):
            lab.measure(
                100.0 * lab.number,
                101.0 * lab.number,
                103.0,
                iodepth=depth,
            )
            lab.measure(80.0, 82.0, 81.0, iodepth=depth, ioengine="psync")
    an_import()
    Run.objects.update(ended_at=datetime(2024, 5, 2, tzinfo=UTC))
    return World(a_user("petra"), host, (first, second), random.Random(0))


def _measure(world: World) -> None:
    lab = world.chance.choice(world.labs)
    lab.measure(float(world.chance.randrange(100, 200)), iodepth=world.chance.choice((1, 2, 32)))


def _new_run(world: World) -> None:
    number = Run.objects.order_by("-number")[0].number + 1
    lab = Lab(world.labs[0].target, version=world.labs[0].run.version, number=number)
    lab.measure(120.0, 121.0, iodepth=1)


def _delete_newest_run(world: World) -> None:
    run = Run.objects.filter(number__gt=2).order_by("-number").first()
    if run:
        delete_run(run=run, by=world.by)


def _observe_another_configuration(world: World) -> None:
    observed = a_configuration(FACTS | {"kernel.release": f"6.{world.chance.randrange(99)}"})
    StreamRun.objects.filter(attempt__run=world.run).update(configuration=observed)


def _change_a_setting(world: World) -> None:
    attempt = world.run.attempts.order_by("pk")[0]
    SettingChange.objects.create(
        attempt=attempt, at=datetime.now(UTC), name="scheduler", before="none", asked="kyber", observed="kyber"
    )


def _change_state(world: World) -> None:
    state = world.chance.choice((RunState.DONE, RunState.FAILED, RunState.CANCELLED))
    Run.objects.filter(pk=world.run.pk).update(state=state)


def _label(world: World) -> None:
    Run.objects.filter(pk=world.run.pk).update(label=f"host {world.chance.randrange(9)}")


def _title(world: World) -> None:
    version = world.labs[0].run.version
    document = structs.replace(read(version.document), title=f"Grid {world.chance.randrange(99)}")
    save_version(plan=version.plan, document=document, by=None)


def _set_price(world: World) -> None:
    amount = str(world.chance.randrange(1, 999))
    set_price(kind="model", name="M1", amount=amount, currency="EUR", priced_on=str(date(2024, 5, 1)), by=world.by)


def _store_reference(world: World) -> None:
    text = PLAIN.replace("10200", str(world.chance.randrange(9000, 9999)))
    published = Published(
        slug="table", title="A table", source="somebody", date="2010", note="", digest=text[-9:] + text[60:90],
        measured_at=datetime(2010, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    files = read_files([Read("table.csv", text)], "", {}, {})
    store_reference(published, [each for each in files if isinstance(each, FileRead)])


def _undo_newest_import(world: World) -> None:
    imported = Import.objects.filter(slug=None, number__gt=1).first()
    if imported:
        undo_import(imported, by=None)


def _set_baseline(world: World) -> None:
    set_baseline(run=world.labs[0].run, target=world.labs[0].target, tolerances={"iops": 5.0}, by=world.by)


def _remove_baseline(world: World) -> None:
    for baseline in world.labs[0].run.version.plan.baselines.all():
        remove_baseline(baseline=baseline, by=world.by)


def _trust_trial(world: World) -> None:
    with suppress(Refusal):  # its whole run may be marked
        trust_trial(trial=world.trial, by=None)


def _rename(world: World) -> None:
    slug = "storage1" if Host.objects.filter(slug="other").exists() else "other"
    rename_host(host=world.host, slug=slug, by=None)


def _log_a_line_of_the_kernel(world: World) -> None:
    attempt = world.run.attempts.order_by("pk")[0]
    sequence = KernelLine.objects.count() + 1
    line = KernelLine(attempt=attempt, sequence=sequence, at=datetime.now(UTC), level=3, text="I/O error")
    line.save(force_insert=True)


def _skip_a_trial(world: World) -> None:
    """And rename who skipped it."""
    Trial.objects.filter(pk=world.trial.pk).update(
        state=TrialState.CANCELLED, reason_code="skipped", skipped_by=world.by, ended_at=datetime.now(UTC)
    )


def _rename_a_person(world: World) -> None:
    User.objects.filter(pk=world.by.pk).update(username=f"petra{world.chance.randrange(99)}")


CHANGES: Sequence[Callable[[World], Any]] = (
    _measure, _new_run, _delete_newest_run, _observe_another_configuration, _change_a_setting, _change_state, _label,
    _title, _set_price, _store_reference, _set_baseline, _remove_baseline, _rename,
    _trust_trial, _log_a_line_of_the_kernel, _skip_a_trial, _rename_a_person,
    lambda world: mark_run(run=world.run, reason="all of it", by=None),
    lambda world: trust_run(run=world.run, by=None),
    lambda world: remove_price(kind="model", name="M1", by=world.by),
    lambda world: an_import(title="More", drive="M1"),
    _undo_newest_import,
    lambda world: remove_references(keep=()),
    lambda world: Target.objects.filter(slug="nvme1").update(model=world.chance.choice(("M2", "M3"))),
    lambda world: an_inventory(world.host),
    lambda world: begin_maintenance(host=world.host, note="", by=None),
    lambda world: end_maintenance(host=world.host, by=None),
)  # fmt: skip


# What differs each time: tokens of forms, the time up to which a page has heard of a run, when a picture was drawn.
_EACH_TIME = re.compile(
    r'(csrfmiddlewaretoken" value=|request_id" value=|"cursor": )"[^"]*"|Sweetspot, [-\d]+ [\d:]+ UTC'
)


def _words(client: Client, address: str) -> list[str]:
    return _EACH_TIME.sub("", client.get(address, follow=True).content.decode()).split()


@pytest.mark.slow
def test_no_page_shows_an_old_answer(operator: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each change, the answers of all pages are stored, so the next change outdates them."""
    for change in (None, *part_of(CHANGES, 0, 4)):
        if change:
            change(world)
        for address in PAGES:
            kept, pairs = _words(operator, address), compared()
            with monkeypatch.context() as patch:
                patch.setattr(answers, "_silent_until_s", float("inf"))  # without Redis
                anew = _words(operator, address)
                assert pairs == compared(), change
            place = next((n for n, (one, other) in enumerate(zip_longest(kept, anew)) if one != other), None)
            differ = place is not None and (kept[place - 9 : place + 3], anew[place - 9 : place + 3])
            assert not differ, (address, change)


def test_the_tables_of_a_run_are_drawn_again_only_if_they_change(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, draw = list[object](), grid._trial_tables

    def counted(run_id: UUID) -> grid.TrialTables:
        drawn.append(run_id)
        return draw(run_id)

    monkeypatch.setattr(grid, "_trial_tables", counted)
    monkeypatch.setattr(World, "run", world.labs[0].run)
    operator.get("/runs/1/")
    for change, is_drawn in (
        (_set_price, False), (_set_baseline, False), (lambda world: an_inventory(world.host), False),
        (_rename, True), (_log_a_line_of_the_kernel, True), (_change_state, True),
    ):  # fmt: skip
        drawn.clear()
        change(world)
        operator.get("/runs/1/")
        assert bool(drawn) is is_drawn, change


@pytest.mark.slow
def test_a_row_that_was_read_before_the_seal_is_not_part_of_an_answer(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows change after the page has read its objects, and before it reads the seal."""
    read = changes.seals

    def late(several: Sequence[Any]) -> list[int]:
        if pending:
            pending.pop()(world)
        return read(several)

    monkeypatch.setattr(changes, "seals", late)
    for change in part_of((_label, _title, _rename, _change_state, _log_a_line_of_the_kernel), 0, 2):
        for address in PAGES:
            pending = [change]
            _words(operator, address)
            kept = _words(operator, address)
            with monkeypatch.context() as patch:
                patch.setattr(answers, "_silent_until_s", float("inf"))  # without Redis
                assert kept == _words(operator, address), (address, change)


def test_an_earlier_page_of_bench_says_so_until_the_task_has_run(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each change, what the page shows is either computed anew, or says as of when it is."""
    monkeypatch.setattr(answers, "_is_being_renewed", _is_being_renewed)
    due: list[tuple[str, str]] = []
    monkeypatch.setattr(app, "send_task", lambda _, task_args, **__: due.append(task_args))
    address, mark = "/bench/?product=model:M1&product=model:M2", "data-as-of"
    _words(operator, address)
    entered = (_set_price, _rename)  # what a person enters is never shown late
    for change in (_measure, _label, *entered, lambda world: mark_run(run=world.run, reason="all", by=None)):
        change(world)
        assert (mark in operator.get(address).content.decode()) == (change not in entered)
        while due:
            renew_bench(*due.pop())
        renewed = _words(operator, address)
        assert mark not in " ".join(renewed)
        with monkeypatch.context() as patch:
            patch.setattr(answers, "_silent_until_s", float("inf"))  # without Redis
            assert renewed == _words(operator, address)


# Tables that answers read without a trigger, with the reason.
UNWATCHED = {
    "results_configuration": "its content is its name",
    "plans_planversion": "a version never changes",
    "runs_attempt": "its results are written with its end",
    "results_sample": "core.changes.note, when a partition is thinned",
    "runs_run_targets": "written with the run",
    "hosts_inventorycontent": "its content is its name",
    "hosts_formername": "written with the name of the host",
    "core_change": "seals",
}


def test_all_tables_that_answers_read_are_watched(world: World, operator: Client) -> None:
    _store_reference(world)
    _set_baseline(world)
    watched = {apps.get_model(name)._meta.db_table for name in WATCHED}
    tables: set[str] = set()

    def recorded(question: Question[Any], _key: bytes) -> Any:
        with CaptureQueriesContext(connection) as queries:
            found = question.compute()
        for query in queries:
            tables.update(re.findall(r'(?:FROM|JOIN) "(\w+)"', query["sql"]))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "_computed", recorded)
        for address in PAGES:
            operator.get(address, follow=True)
    assert "results_result" in tables
    assert tables - watched - UNWATCHED.keys() == set()
