"""The library and the versions: who sees what, what each button does, and what it does the second time."""

import re
import time
from collections.abc import Callable

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from webapp.analysis import run_findings
from webapp.plans.document import read
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.services import BUILTIN, delete_plan, load_builtin_plans
from webapp.results.models import Result
from webapp.runs.models import Run, RunState
from webapp.screens.findings import as_heading
from webapp.screens.plans.library import OWN, TOPICS, Row
from webapp.tests.factories.hosts import a_host, a_target, storage1_scratch
from webapp.tests.factories.plans import FIRST_LOOK, a_version, first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run


def text_of(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_it_says_what_to_do_while_there_is_no_plan(operator: Client, viewer: Client) -> None:
    assert 'No plans yet. <a href="/plans/new/">Create one</a>' in text_of(operator, "/plans/")
    assert "operators create new ones" in text_of(viewer, "/plans/")


def listed(client: Client, address: str = "/plans/") -> dict[str, Row]:
    """The rows of the list by the name of the plan, in their order."""
    return {row.plan.slug: row for row in client.get(address).context["rows"]}


def test_a_plan_without_a_question_says_what_it_measures(operator: Client) -> None:
    first_look()
    row = listed(operator)["first-look"]
    assert row.question == "random read and write · 4 KiB · io_uring, psync · queue depth 1, 32 · 3 s each"
    assert not row.is_question
    assert row.outline is not None
    assert row.outline.trials_high == 36
    assert (row.last, row.took_s, row.written_bytes) == (None, None, None)
    page = text_of(operator, "/plans/")
    assert "≈ 2 min</td>" in page
    assert "<h1>1 plan, not answered yet</h1>" in page


def test_plans_of_one_title_are_told_apart_by_their_names(operator: Client) -> None:
    first_look()
    a_version(slug="other")
    assert not any(row.shares_title for row in listed(operator).values())
    a_version(slug="other-2")
    assert [slug for slug, row in listed(operator).items() if row.shares_title] == ["other", "other-2"]
    assert '<div class="muted">other-2</div>' in text_of(operator, "/plans/")


def test_each_built_in_plan_has_a_question_and_a_topic(operator: Client) -> None:
    load_builtin_plans()
    first_look(slug="mine")
    rows = listed(operator)
    assert next(iter(rows)) == "mine"
    assert [row.topic for row in rows.values()] == [OWN, *(topic for topic, names in TOPICS.items() for _ in names)]
    assert {name for names in TOPICS.values() for name in names} == {path.stem for path in BUILTIN.glob("*.yaml")}
    assert all(row.is_question for row in rows.values() if row.plan.builtin)
    assert "/plans/bm-flash-grid/edit/" not in text_of(operator, "/plans/")


def test_it_says_which_plans_overwrite_drives(operator: Client) -> None:
    load_builtin_plans()
    notes = {version.plan.slug: read(version.document).note for version in PlanVersion.objects.select_related("plan")}
    rows = listed(operator)
    assert {name for name, row in rows.items() if row.overwrites} == {
        name for name, note in notes.items() if "destroys all data" in " ".join(note.split())
    }


@pytest.mark.parametrize(("repeats", "describes"), [(1, True), (2, True), (3, False)])
def test_it_says_which_plans_only_describe(operator: Client, repeats: int, describes: bool) -> None:
    first_look(msgspec.structs.replace(FIRST_LOOK, repeats=repeats))
    assert listed(operator)["first-look"].only_describes is describes


def test_its_heading_counts_the_plans_that_are_listed_and_those_with_an_answer(operator: Client) -> None:
    def heading(query: str = "") -> str:
        return str(operator.get(f"/plans/{query}").context["heading"])

    assert heading() == "No plan yet"
    first_look(), a_version(slug="other"), a_version(slug="third")
    assert heading() == "3 plans, none answered yet"
    target = storage1_scratch(a_host("storage1"))
    before = heading()
    for slug in ("first-look", "other"):
        finish_run(run := first_look_run(PlanVersion.objects.get(plan__slug=slug), [target]))
        assert heading() == before, "findings that are being made are no answer"
        run_findings.make(run)
        before = heading()
    assert heading() == "3 plans, 2 answered"
    assert heading("?q=first") == "1 plan found, answered"
    assert heading("?q=nothing") == "No plan found"
    assert heading("?show=builtin") == "No built-in plan"
    delete_plan(plan=Plan.objects.get(slug="third"), by=None)
    assert heading() == "2 plans, both answered"
    assert heading("?show=own") == "2 plans of our own, both answered"
    assert heading("?show=deleted") == "1 deleted plan, not answered yet"


def test_the_heading_of_a_plan_is_its_last_answer_before_that_its_question(operator: Client) -> None:
    def heading() -> str:
        return str(operator.get("/plans/first-look/").context["heading"])

    version = first_look()
    assert heading() == "First look"
    version = first_look(msgspec.structs.replace(FIRST_LOOK, question="How fast is it?"))
    assert heading() == "How fast is it?"
    target = storage1_scratch(a_host("storage1"))
    finish_run(run := first_look_run(version, [target]))
    run_findings.make(run)
    (first, *_) = run_findings.findings_of([run])[1]
    assert heading() == as_heading(first.claim)
    page = text_of(operator, "/plans/first-look/")
    assert 'Last answer, of <a href="/runs/1/">run 1</a> on storage1/scratch.' in page
    assert not first.doubt or f"It {first.doubt}." in page
    later = first_look_run(version, [target])  # not done: the answer stays
    Run.objects.filter(pk=later.pk).update(state=RunState.FAILED, ended_at=timezone.now())
    assert heading() == as_heading(first.claim)


def test_it_shows_the_answer_and_the_writes_of_the_last_run_that_ended(operator: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target])
    finish_run(run)
    first_look_run(first_look(), [target])
    row = listed(operator)["first-look"]
    assert row.last == run
    assert row.written_bytes == sum(
        result.bytes or 0 for result in Result.objects.filter(run=run) if result.direction == "write"
    )
    assert row.written_bytes > 0
    assert row.took_s is not None
    assert 'href="/runs/1/"' in text_of(operator, "/plans/")


def test_a_last_run_that_only_read_says_nothing_of_a_plan_that_writes_elsewhere(operator: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    finish_run(run)
    Result.objects.filter(run=run).update(direction="read")
    row = listed(operator)["first-look"]
    assert (row.writes, row.written_bytes) == (True, None)
    page = text_of(operator, "/plans/")
    assert "on some targets" in page
    assert "0 B" not in page


def test_it_takes_as_many_queries_for_many_plans_as_for_one(queries_of: Callable[[str], int]) -> None:
    first_look()
    one = queries_of("/plans/")
    for number in range(4):
        first_look(slug=f"plan-{number}")
    assert queries_of("/plans/") == one


def test_it_finds_plans_by_words_in_title_or_sentence(operator: Client) -> None:
    first_look()
    first_look(msgspec.structs.replace(FIRST_LOOK, title="Other", note="about kyber"), slug="other")
    assert "plans/other/" not in text_of(operator, "/plans/?q=first+LOOK")
    assert "plans/first-look/" not in text_of(operator, "/plans/?q=kyber")
    assert "No plan contains “nothing like it”" in text_of(operator, "/plans/?q=nothing+like+it")
    assert operator.get("/plans/?show=odd&page=x").status_code == 200


def test_it_lists_own_built_in_and_deleted_plans_separately(operator: Client) -> None:
    load_builtin_plans()
    first_look(slug="mine")
    assert "/plans/mine/" not in text_of(operator, "/plans/?show=builtin")
    assert "/plans/first-look/" not in text_of(operator, "/plans/?show=own")
    assert "No deleted plans." in text_of(operator, "/plans/?show=deleted")


def test_it_deletes_with_a_button_to_undo_it(operator: Client) -> None:
    first_look()
    page = operator.post("/plans/first-look/delete/", follow=True).content.decode()
    assert "First look is deleted" in page
    assert 'action="/plans/first-look/undelete/"' in page
    assert "/plans/first-look/edit/" not in page
    assert 'action="/plans/first-look/undelete/"' in text_of(operator, "/plans/?show=deleted")
    assert "was already deleted" in operator.post("/plans/first-look/delete/", follow=True).content.decode()
    assert "First look is restored" in operator.post("/plans/first-look/undelete/", follow=True).content.decode()
    assert "is not deleted" in operator.post("/plans/first-look/undelete/", follow=True).content.decode()
    assert Plan.objects.get().deleted_at is None


def test_a_deleted_plan_can_still_be_read(operator: Client) -> None:
    first_look()
    operator.post("/plans/first-look/delete/")
    page = text_of(operator, "/plans/first-look/")
    assert "This plan was deleted" in page
    assert "/plans/first-look/edit/" not in page
    assert operator.get("/plans/first-look/versions/").status_code == 200
    assert operator.get("/plans/first-look/edit/")["Location"] == "/plans/first-look/"


def test_start_leads_to_the_choice_of_targets(operator: Client, viewer: Client) -> None:
    first_look()
    target = storage1_scratch(a_host("storage1"))
    assert 'href="/plans/first-look/#where"' in text_of(operator, "/plans/")
    assert "#where" not in text_of(viewer, "/plans/")
    _, _, after = text_of(operator, "/plans/first-look/").partition('id="where"')
    assert f'name="target" value="{target.pk}"' in after


def test_it_copies_into_the_editor(operator: Client) -> None:
    load_builtin_plans()
    response = operator.post("/plans/first-look/copy/")
    assert response["Location"] == "/plans/first-look-copy/edit/"
    copied = PlanVersion.objects.get(plan__slug="first-look-copy")
    assert read(copied.document).title == "First look (copy)"
    assert copied.created_by is not None


def test_it_offers_a_copy_with_sizes_that_fit(operator: Client) -> None:
    load_builtin_plans()
    target = a_target(size_bytes=2**30)
    page = text_of(operator, f"/plans/bm-flash-grid/?target={target.id}")
    assert "4 GiB are needed" in page
    assert 'name="most_bytes" value="536870912"' in page
    operator.post("/plans/bm-flash-grid/copy/", {"most_bytes": "536870912"})
    copied = read(PlanVersion.objects.get(plan__slug="bm-flash-grid-copy").document)
    assert copied.common["size"] == "512M"
    assert "most_bytes" not in text_of(operator, f"/plans/bm-flash-grid-copy/?target={target.id}")


@pytest.fixture
def two_versions(db: None) -> PlanVersion:
    first_look()
    return first_look(msgspec.structs.replace(FIRST_LOOK, repeats=7))


def test_it_shows_what_changed_between_two_versions(operator: Client, two_versions: PlanVersion) -> None:
    page = text_of(operator, "/plans/first-look/versions/")
    assert re.search(r"Repeats.*?<td class=\"says\">3</td><td class=\"says\">7</td>", page, re.DOTALL)
    assert "are equal" in text_of(operator, "/plans/first-look/versions/?before=2&after=2")
    assert operator.get("/plans/first-look/versions/?before=x&after=99").status_code == 200


def test_it_restores_an_older_version_as_the_next_one(operator: Client, two_versions: PlanVersion) -> None:
    page = operator.post("/plans/first-look/restore/", {"version": "1"}, follow=True).content.decode()
    assert "Version 1 is restored as version 3" in page
    assert read(PlanVersion.objects.get(number=3).document).repeats == 3
    again = operator.post("/plans/first-look/restore/", {"version": "1"}, follow=True).content.decode()
    assert "Nothing to restore: version 3, the newest, has the same content" in again
    assert operator.post("/plans/first-look/restore/", {"version": "9"}).status_code == 404
    assert PlanVersion.objects.count() == 3


def test_it_restores_nothing_of_a_built_in_plan(operator: Client, two_versions: PlanVersion) -> None:
    Plan.objects.update(builtin="first-look")
    page = operator.post("/plans/first-look/restore/", {"version": "1"}, follow=True).content.decode()
    assert "is built in" in page
    assert PlanVersion.objects.count() == 2


def test_it_takes_as_many_queries_for_many_versions(
    queries_of: Callable[[str], int], two_versions: PlanVersion
) -> None:
    two = queries_of("/plans/first-look/versions/")
    for _ in range(3):
        first_look()
    assert queries_of("/plans/first-look/versions/") == two


@pytest.mark.parametrize("action", ["copy", "delete", "undelete", "restore", "edit"])
def test_a_viewer_changes_nothing(viewer: Client, two_versions: PlanVersion, action: str) -> None:
    Plan.objects.update(deleted_at=timezone.now() if action == "undelete" else None)
    before = list(Plan.objects.values_list("slug", "deleted_at"))
    assert viewer.post(f"/plans/first-look/{action}/", {"version": "1"}).status_code == 403
    assert list(Plan.objects.values_list("slug", "deleted_at")) == before
    assert PlanVersion.objects.count() == 2


def test_it_exports_any_version_as_a_file(viewer: Client, two_versions: PlanVersion) -> None:
    yaml = viewer.get("/plans/first-look/yaml/?version=2")
    assert yaml["Content-Disposition"] == 'attachment; filename="first-look-v2.yaml"'
    assert b"repeats: 7" in yaml.content
    job = viewer.get("/plans/first-look/job-file/?version=1")
    assert job["Content-Disposition"] == 'attachment; filename="first-look-v1.fio"'
    assert b"[random 1]\nstonewall\nrw=randread" in job.content
    assert viewer.get("/plans/first-look/yaml/?version=9").status_code == 404


def test_a_plan_with_too_many_points_is_no_job_file(operator: Client) -> None:
    many = replace_factor("block_size", "512..200k +512")
    first_look(many)
    page = operator.get("/plans/first-look/job-file/", follow=True).content.decode()
    assert "the maximum of a job file" in page


def replace_factor(name: str, levels: str):  # type: ignore[no-untyped-def]
    part = FIRST_LOOK.parts[0]
    changed = msgspec.structs.replace(part, factors=part.factors | {name: levels})
    return msgspec.structs.replace(FIRST_LOOK, parts=(changed,))


def test_plans_with_full_lists_of_levels_do_not_hold_the_list(operator: Client) -> None:
    plain = msgspec.to_builtins(FIRST_LOOK)
    depths = ",".join(map(str, range(1, 257)))[:999].rpartition(",")[0]
    factors = {**plain["parts"][0]["factors"], "iodepth": depths, "numjobs": depths, "block_size": depths}
    factors |= {"block_size": ",".join(f"{size}k" for size in range(4, 204, 1))[:999].rpartition(",")[0]}
    plain["parts"] = [{**plain["parts"][0], "name": f"part {number}", "factors": factors} for number in range(50)]
    document = msgspec.convert(plain, type(FIRST_LOOK))
    for number in range(11):
        a_version(msgspec.structs.replace(document, title=f"Large {number}"), f"large-{number}")  # before the limit
    started_at = time.process_time()
    page = text_of(operator, "/plans/")
    assert time.process_time() - started_at < 5
    assert page.count("too many levels to count here") == 11
    assert "Large 10" in page
