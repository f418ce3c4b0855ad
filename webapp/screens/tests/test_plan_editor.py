"""The editor without script: making, changing, refusing, previewing; nothing typed is lost."""

import re
from typing import Any

import msgspec
import pytest
from django.http import QueryDict
from django.test import Client

from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument, export_plan, read, write
from webapp.plans.factors import CHANGE, FACTORS, OTHERS, STREAM
from webapp.plans.models import Plan, PlanVersion
from webapp.runs.models import Run
from webapp.screens.plans.draft import data_of, draft_of
from webapp.screens.plans.editor_views import picker
from webapp.screens.plans.previewing import PlanAnswer
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.people import PASSWORD
from webapp.tests.factories.plans import FIRST_LOOK, first_look
from webapp.tests.factories.runs import first_look_run
from webapp.tests.pages import without_line_breaks

PLAN = PlanDocument(
    title="Depths",
    common={"size": "64M", "runtime": "3s"},
    parts=(Part(name="a", factors={"pattern": "randread", "iodepth": "1, 32"}),),
)


def form(plan: PlanDocument = PLAN, **changes: str) -> dict[str, Any]:
    data: QueryDict = data_of(draft_of(plan))
    return dict(data.lists()) | changes


@pytest.fixture
def target(db: None) -> Target:
    return storage1_scratch(a_host("storage1"))


def test_a_new_plan_begins_with_something_that_can_run(operator: Client, target: Target) -> None:
    page = operator.get("/plans/new/").content.decode()
    assert "Save plan" in page
    assert 'id="cost-trials">12</span>' in page
    assert "ioengine=io_uring" in page


def test_every_factor_can_be_picked() -> None:
    assert sorted(name for _, group in picker() for name, _, _ in group) == sorted(
        {*FACTORS} - {CHANGE, STREAM, OTHERS}  # those of results
    )


def test_it_makes_a_plan(operator: Client) -> None:
    response = operator.post("/plans/new/", form(), follow=True)
    assert response.redirect_chain == [("/plans/depths/", 302)]
    assert "Depths is saved" in response.content.decode()
    assert read(PlanVersion.objects.get().document) == PLAN


def test_a_saved_plan_is_ready_to_start_where_it_was_tried(operator: Client, target: Target) -> None:
    asked = form() | {"targets-asked": "1", "target": str(target.id)}
    response = operator.post("/plans/new/", asked, follow=True)
    assert response.redirect_chain == [(f"/plans/depths/?target={target.id}", 302)]
    assert "Start 6 trials" in response.content.decode()


def test_it_refuses_at_the_field_and_keeps_what_was_typed(operator: Client) -> None:
    page = operator.post("/plans/new/", form() | {"title": "", "p0.levels": ["randread", "a lot"]}).content.decode()
    assert "Correct 2 fields." in page
    assert "Queue depth: <code>a lot</code> is not a whole number." in page
    assert 'value="a lot"' in page
    assert "Give the plan a title." in page
    assert "data-unsaved" in page
    assert not Plan.objects.exists()


POINTLESS = msgspec.structs.replace(PLAN, common=PLAN.common | {"read_ahead_kb": "0, 128"})
WARNING = "Read-ahead has no effect here: it applies only to reads through the page cache"


def test_it_warns_at_the_factor_and_saves(operator: Client) -> None:
    answer = msgspec.json.decode(operator.post("/plans/preview/", form(POINTLESS)).content, type=PlanAnswer)
    assert answer.problems == ()
    assert [(one.place, one.message.startswith(WARNING)) for one in answer.warnings] == [("common.read_ahead_kb", True)]
    page = operator.post("/plans/new/", form(POINTLESS) | {"do": "refresh"}).content.decode()
    assert re.search(r'data-warnings="common.read_ahead_kb"><span>Read-ahead has no effect here', page)
    assert "has no effect here" in operator.post("/plans/new/", form(POINTLESS), follow=True).content.decode()
    assert Plan.objects.count() == 1


def test_a_warning_about_one_part_is_shown_at_that_part(operator: Client) -> None:
    buffered = Part(name="b", factors={"pattern": "randread", "direct": "off"})
    both = msgspec.structs.replace(POINTLESS, parts=(*POINTLESS.parts, buffered))
    page = operator.post("/plans/new/", form(both) | {"do": "refresh"}).content.decode()
    assert re.search(r'data-warnings="parts.0"><span>Read-ahead has no effect here', page)
    operator.post("/plans/new/", form(both))
    assert f"Part a: {WARNING}" in operator.get("/plans/depths/").content.decode()


def test_it_saves_changes_as_the_next_version(operator: Client) -> None:
    first_look()
    changed = msgspec.structs.replace(FIRST_LOOK, repeats=9)
    page = operator.post("/plans/first-look/edit/", form(changed, base="1"), follow=True).content.decode()
    assert "Saved as version 2." in page
    assert read(PlanVersion.objects.get(number=2).document) == changed


def test_saving_an_unchanged_plan_creates_no_version(operator: Client) -> None:
    first_look()
    page = operator.post("/plans/first-look/edit/", form(FIRST_LOOK, base="1"), follow=True).content.decode()
    assert "Nothing was changed" in page
    assert PlanVersion.objects.count() == 1


def test_it_does_not_overwrite_unseen_changes_of_another_person(operator: Client) -> None:
    first_look()
    first_look(msgspec.structs.replace(FIRST_LOOK, repeats=4))
    mine = form(msgspec.structs.replace(FIRST_LOOK, repeats=9), base="1")
    page = operator.post("/plans/first-look/edit/", mine).content.decode()
    assert "somebody saved version 2" in page
    assert 'name="base" value="2"' in page
    assert PlanVersion.objects.count() == 2
    operator.post("/plans/first-look/edit/", mine | {"base": "2"})
    assert read(PlanVersion.objects.get(number=3).document).repeats == 9


def test_built_in_plans_are_not_opened(operator: Client) -> None:
    first_look()
    Plan.objects.update(builtin="first-look")
    page = operator.get("/plans/first-look/edit/", follow=True).content.decode()
    assert "is built in and cannot be changed" in page
    refused = operator.post("/plans/first-look/edit/", form(msgspec.structs.replace(FIRST_LOOK, repeats=9)))
    assert "Copy it and change the copy" in refused.content.decode()
    assert PlanVersion.objects.count() == 1


def test_buttons_change_the_form_and_save_nothing(operator: Client) -> None:
    page = operator.post("/plans/new/", form() | {"do": "add:0", "add-0": "scheduler"}).content.decode()
    assert "none, mq-deadline" in page
    by_button = operator.post("/plans/new/", form() | {"do": "add:0:scheduler"}).content.decode()
    assert "none, mq-deadline" in by_button
    assert 'value="Depths"' in page
    assert "Part 2" in operator.post("/plans/new/", form() | {"do": "add-part"}).content.decode()
    assert not Plan.objects.exists()


def test_it_shows_trials_and_the_job_of_one_without_script(operator: Client, target: Target) -> None:
    asked = {"target": str(target.id), "seed": "3", "targets-asked": "1"}
    page = operator.post("/plans/new/", form() | asked | {"do": "trial:6"}).content.decode()
    assert 'Job of trial <span id="job-title">#6' in page
    many = msgspec.structs.replace(PLAN, repeats=30)
    page = operator.post("/plans/new/", form(many) | asked | {"do": "page:2"}).content.decode()
    assert "26–50 of 60" in page
    assert "in the order of seed 3" in page


def test_it_opens_with_the_targets_of_the_last_run(operator: Client, target: Target) -> None:
    other = storage1_scratch(target.host, "other")
    version = first_look()
    run = first_look_run(version, [other])
    Run.objects.filter(pk=run.pk).update(state="done")
    page = operator.get("/plans/first-look/edit/").content.decode()
    assert re.search(rf'value="{other.id}" data-preview checked', page)
    assert not re.search(rf'value="{target.id}" data-preview checked', page)


def test_the_default_target_is_one_that_the_plan_can_run_on(operator: Client, target: Target) -> None:
    storage1_drive(target.host)
    plan = msgspec.structs.replace(PLAN, parts=(msgspec.structs.replace(PLAN.parts[0], on=("block",)),))
    data = {"kind": "yaml", "text": export_plan(plan)}
    page = operator.post("/plans/import/", data, follow=True).content.decode()
    assert 'id="cost-trials">6</span>' in page
    assert "No part of this plan runs on the chosen targets" not in page


def answer_to(client: Client, data: dict[str, Any]) -> PlanAnswer:
    response = client.post("/plans/preview/", data)
    assert response.status_code == 200
    answer = msgspec.json.decode(response.content, type=PlanAnswer)
    return msgspec.structs.replace(answer, html=without_line_breaks(answer.html))


def test_the_preview_says_what_would_happen(viewer: Client, target: Target) -> None:
    drive = storage1_drive(target.host)
    part = Part(name="a", factors={"pattern": "randwrite", "scheduler": "none, mq-deadline"})
    plan = msgspec.structs.replace(PLAN, parts=(part,))
    answer = answer_to(viewer, form(plan) | {"target": [str(drive.id)]})
    assert (answer.problems, answer.said) == ((), "6 trials")
    for words in (
        "storage1/nvme0: I/O scheduler",
        "all data on storage1/nvme0",
        "serial S64GNE0R800123",
        "rw=randwrite",
    ):
        assert words in answer.html
    assert not Plan.objects.exists()


def test_the_preview_says_what_is_skipped_and_what_cannot_run(viewer: Client, target: Target) -> None:
    parts = (Part(name="d", factors={"pattern": "read"}, on=("block",)), Part(name="a", factors={"pattern": "read"}))
    plan = msgspec.structs.replace(PLAN, parts=parts, common={"size": "64T"})
    html = answer_to(viewer, form(plan) | {"target": str(target.id)}).html
    assert "Left out: Part d runs on block devices only" in html
    assert "64 TiB are needed on storage1/scratch" in html


def test_the_preview_names_fields_and_leaves_the_last_picture(viewer: Client, target: Target) -> None:
    answer = answer_to(viewer, form() | {"common.levels": ["64Q", "3s"], "target": str(target.id)})
    assert [problem.place for problem in answer.problems] == ["common.size"]
    assert (answer.html, answer.said) == ("", "Correct 1 field")


def test_the_preview_asks_for_a_target(viewer: Client, target: Target) -> None:
    assert "Choose a target" in answer_to(viewer, form() | {"targets-asked": "1"}).html
    assert "Choose a target" in answer_to(viewer, form() | {"targets-asked": "1", "target": "nonsense"}).html


def test_input_is_kept_over_a_log_in(client: Client, operator: Client) -> None:
    typed = form(title="Typed for an hour")
    operator.logout()
    assert operator.post("/plans/new/", typed, headers={"Referer": "http://testserver/plans/new/"})["Location"] == (
        "/login/?next=/plans/new/"
    )
    operator.post("/login/?next=/plans/new/", {"username": "olga", "password": PASSWORD})
    page = operator.get("/plans/new/").content.decode()
    assert 'value="Typed for an hour"' in page
    assert "Your entries were restored" in page
    assert "Typed for an hour" not in operator.get("/plans/new/").content.decode()
    assert not Plan.objects.exists()


def test_a_viewer_may_look_and_not_save(viewer: Client) -> None:
    page = viewer.get("/plans/new/").content.decode()
    assert "Only operators can save plans" in page
    assert "<fieldset" in page
    assert viewer.post("/plans/new/", form()).status_code == 403
    assert not Plan.objects.exists()


def test_it_answers_fast_for_5_000_trials_and_sends_one_page(viewer: Client, target: Target) -> None:
    grid = {
        "pattern": "randread, randwrite",
        "block_size": "512..4M *2",
        "iodepth": "1..64 *2",
        "numjobs": "1,2,4,8,16",
    }
    part = Part(name="a", factors=grid | {"ioengine": "io_uring, libaio", "size": "1G"})
    plan = msgspec.structs.replace(PLAN, parts=(part,), common={"runtime": "3s"}, repeats=3)
    answer = answer_to(viewer, form(plan) | {"target": str(target.id)})
    assert answer.said == "5880 trials"
    assert answer.html.count("data-trial=") == 25
    assert len(answer.html) < 100_000


def test_every_document_of_the_database_can_be_opened(operator: Client) -> None:
    odd = PlanDocument(title="Odd", parts=(Part(name="<b>", factors={"gone": "1", "pattern": "x"}, on=("disk",)),))
    plan = Plan.objects.create(slug="odd", title="Odd")
    PlanVersion.objects.create(plan=plan, number=1, document=write(odd))
    page = operator.get("/plans/odd/edit/").content.decode()
    assert "gone (unknown)" in page
    assert 'value="&lt;b&gt;"' in page
    assert operator.get("/plans/odd/").status_code == operator.get("/plans/").status_code == 200
