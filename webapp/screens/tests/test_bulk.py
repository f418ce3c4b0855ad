"""Actions on the selected runs of a list."""

import pytest
from django.test import Client

from webapp.core.models import AuditEntry
from webapp.runs.actions.annotations import MAX_TAGS
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run
from webapp.tests.undoing import undo


@pytest.fixture(autouse=True)
def runs(db: None) -> None:
    """Runs 1 and 2 are done, run 3 is running."""
    target, version = storage1_scratch(a_host("storage1")), first_look()
    for _ in range(2):
        finish_run(first_look_run(version, [target], repeats=1))
    first_look_run(version, [target], repeats=1)


def said(client: Client, action: str, *numbers: int, text: str = "", back: str = "") -> str:
    form = {"run": [str(number) for number in numbers], "text": text, "back": back}
    answer = client.post(f"/runs/bulk/{action}/", form, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def tags_of(number: int) -> list[str]:
    return Run.objects.get(number=number).tags


def test_it_cancels_open_runs_and_leaves_out_the_others(operator: Client) -> None:
    page = said(operator, "cancel", 1, 3)
    assert "Run 3 is being cancelled." in page
    assert "Not changed. Run 1: It has already ended" in page
    assert Run.objects.get(number=3).cancel_requested_at
    assert not Run.objects.get(number=1).cancel_requested_at


def test_it_marks_runs_as_invalid_and_takes_it_back(operator: Client) -> None:
    page = said(operator, "invalid", 1, 2, text="wrong cable")
    assert "2 runs are marked as invalid." in page
    assert 'action="/runs/bulk/valid/"' in page
    assert set(Run.objects.values_list("invalid_reason", flat=True)) == {"wrong cable", ""}
    said(operator, "valid", 1, 2)
    assert set(Run.objects.values_list("invalid_reason", flat=True)) == {""}


def test_a_mark_needs_a_reason(operator: Client) -> None:
    assert "Enter a reason." in said(operator, "invalid", 1)
    assert Run.objects.get(number=1).invalid_reason == ""


def test_it_adds_and_removes_tags_each_once(operator: Client) -> None:
    said(operator, "tag", 1, 2, text="Night, firmware-2.1 night")
    said(operator, "tag", 1, text="night")
    assert tags_of(1) == tags_of(2) == ["firmware-2.1", "night"]
    said(operator, "untag", 1, text="night other")
    assert (tags_of(1), tags_of(2)) == (["firmware-2.1"], ["firmware-2.1", "night"])
    assert AuditEntry.objects.filter(action="run.tag").count() == 3


@pytest.mark.parametrize(("action", "left"), [("untag", [["a"], []]), ("tag", [["a", "b", "night"], ["b", "night"]])])
def test_undo_gives_each_run_the_tags_that_it_had(operator: Client, action: str, left: list[list[str]]) -> None:
    said(operator, "tag", 1, text="a b")
    said(operator, "tag", 2, text="b")
    page = said(operator, action, 1, 2, text="b night")
    assert [tags_of(1), tags_of(2)] == left
    undo(operator, page)
    assert [tags_of(1), tags_of(2)] == [["a", "b"], ["b"]]


def test_an_action_that_changed_no_run_has_no_undo(operator: Client) -> None:
    assert ">Undo<" not in said(operator, "untag", 1, text="night")


def test_it_refuses_bad_tags_and_too_many(operator: Client) -> None:
    assert "Enter a tag" in said(operator, "tag", 1, text=" ")
    assert "is not a valid tag" in said(operator, "tag", 1, text="<b>")
    many = " ".join(f"t{number}" for number in range(MAX_TAGS + 1))
    assert f"at most {MAX_TAGS} tags" in said(operator, "tag", 1, text=many)
    assert tags_of(1) == []


def test_a_tag_is_a_filter(operator: Client) -> None:
    said(operator, "tag", 1, text="night")
    page = operator.get("/runs/?tag=night").content.decode()
    assert ("Run 1<" in page, "Run 2<" in page) == (True, False)
    assert '<option value="night" selected>night</option>' in page
    assert "?tag=night" in operator.get("/runs/1/").content.decode()


def test_only_admins_delete_runs(operator: Client, admin: Client) -> None:
    assert "Only admins delete runs." in said(operator, "delete", 1)
    assert "bulk-delete" not in operator.get("/runs/").content.decode()
    page = said(admin, "delete", 1, 3)
    assert "Run 1 is deleted." in page
    assert "Run 3 has not ended." in page
    assert sorted(Run.objects.values_list("number", flat=True)) == [2, 3]


def test_viewers_select_runs_and_change_nothing(viewer: Client) -> None:
    page = viewer.get("/runs/").content.decode()
    assert 'aria-label="Select run 1"' in page
    assert "/runs/bulk/" not in page
    assert viewer.post("/runs/bulk/tag/", {"run": "1", "text": "night"}).status_code == 403
    assert tags_of(1) == []


def test_it_returns_to_the_page_of_the_form_and_nowhere_else(operator: Client) -> None:
    form = {"run": "1", "text": "night"}
    inside = operator.post("/runs/bulk/tag/", {**form, "back": "/runs/?state=done"})
    assert inside.headers["Location"] == "/runs/?state=done"
    outside = operator.post("/runs/bulk/tag/", {**form, "back": "https://evil.example/"})
    assert outside.headers["Location"] == "/runs/"


def test_without_a_selection_it_says_so_and_unknown_actions_are_not_found(operator: Client) -> None:
    assert "No run is selected." in said(operator, "cancel")
    assert operator.post("/runs/bulk/burn/", {"run": "1"}).status_code == 404


def test_a_deleted_note_is_restored(operator: Client) -> None:
    operator.post("/runs/1/notes/", {"text": "The fan was off"})
    note = Run.objects.get(number=1).notes.get()
    page = operator.post(f"/runs/1/notes/{note.pk}/delete/", follow=True).content.decode()
    assert "The fan was off" not in page
    assert f'action="/runs/1/notes/{note.pk}/restore/"' in page
    assert "The fan was off" in operator.post(f"/runs/1/notes/{note.pk}/restore/", follow=True).content.decode()


def test_a_deleted_note_goes_with_its_run(operator: Client, admin: Client) -> None:
    operator.post("/runs/1/notes/", {"text": "The fan was off"})
    operator.post(f"/runs/1/notes/{Run.objects.get(number=1).notes.get().pk}/delete/")
    assert "Run 1 is deleted." in said(admin, "delete", 1)


def test_a_mark_offers_to_be_taken_back(operator: Client) -> None:
    page = operator.post("/runs/1/invalid/", {"reason": "wrong cable"}, follow=True).content.decode()
    assert 'action="/runs/1/valid/" class="d-inline"' in page
