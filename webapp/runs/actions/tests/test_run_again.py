"""The same run once more, and what people write about it."""

import uuid

import pytest

from webapp.core.models import AuditEntry
from webapp.runs.actions.annotations import add_note, delete_note
from webapp.runs.actions.run_actions import run_again
from webapp.runs.models import Note, Run, TrialState
from webapp.runs.services import StartRefused, start_run
from webapp.runs.tests.documents import a_document
from webapp.tests.factories.hosts import a_drive, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import a_version
from webapp.tests.refusals import refuses
from webapp.tests.threads import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture
def run() -> Run:
    return start_run(version=a_version(), targets=[a_target()], by=None, seed=5)


def points(run: Run) -> list[tuple[str, int]]:
    return list(run.trials.order_by("index").values_list("point_key", "repeat"))


def test_it_runs_the_same_plan_on_the_same_targets_in_the_same_order(run: Run) -> None:
    again = run_again(run=run, by=a_user("olga"), same_seed=True)
    assert (again.number, again.again_of, again.version) == (2, run, run.version)
    assert list(again.targets.all()) == list(run.targets.all())
    assert points(again) == points(run)
    assert run_again(run=run, by=None).seed != run.seed


def test_it_keeps_the_label_of_its_host_in_a_group(run: Run) -> None:
    Run.objects.update(label="H730")
    run.refresh_from_db()
    assert run_again(run=run, by=None).label == "H730"


def test_it_runs_only_what_failed(run: Run) -> None:
    with refuses("nothing_failed"):
        run_again(run=run, by=None, only_failed=True)
    failed = run.trials.filter(index__in=[1, 3])
    failed.update(state=TrialState.FAILED, reason_code="fio_error")
    again = run_again(run=run, by=None, only_failed=True)
    assert again.trial_count == 2
    assert list(again.trials.order_by("index").values_list("index", flat=True)) == [0, 1]
    assert sorted(points(again)) == sorted(failed.values_list("point_key", "repeat"))


def test_what_destroys_must_be_armed_again() -> None:
    drive = a_drive()
    run = start_run(version=a_version(a_document(pattern="randwrite")), targets=[drive], by=None, armed=[drive.serial])
    with pytest.raises(StartRefused, match=drive.serial):
        run_again(run=run, by=None)
    assert run_again(run=run, by=None, armed=[drive.serial]).armed_serials == [drive.serial]


def test_the_same_request_starts_one_run(run: Run) -> None:
    request = uuid.uuid4()
    found = at_once(*[lambda: run_again(run=run, by=None, request_id=request).number] * 4)
    assert found == [2, 2, 2, 2]
    assert Run.objects.count() == 2


def test_notes_are_added_and_taken_away_and_the_log_keeps_them(run: Run) -> None:
    olga, trial = a_user("olga"), run.trials.get(index=0)
    for _ in range(2):
        note = add_note(run=run, text=" fan failed\nat noon ", by=olga)
    on_trial = add_note(run=run, trial=trial, text="fan failed\nat noon", by=olga)
    add_note(run=run, text="fan failed\nat noon", by=None)
    assert Note.objects.count() == 3
    assert (note.text, on_trial.trial) == ("fan failed\nat noon", trial)
    for _ in range(2):
        delete_note(run=run, note_id=on_trial.pk, by=olga)
    entry = AuditEntry.objects.get(action="note.delete")
    assert (entry.label, entry.detail) == ("run 1 trial 1", {"text": "fan failed\nat noon"})


def test_a_note_is_neither_empty_nor_a_book(run: Run) -> None:
    with refuses("note_empty"):
        add_note(run=run, text=" \n ", by=None)
    with refuses("note_too_long"):
        add_note(run=run, text="x" * 4001, by=None)
