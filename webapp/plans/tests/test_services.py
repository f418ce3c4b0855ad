from collections import Counter
from pathlib import Path

import msgspec
import pytest

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry, Role, User
from webapp.plans import services
from webapp.plans.document import Part, read
from webapp.plans.estimate import estimate
from webapp.plans.expand import expand
from webapp.plans.grids import PlanRefused, document_problems
from webapp.plans.models import Plan, PlanVersion
from webapp.plans.selectors import plans_list, version_of
from webapp.plans.services import (
    copy_plan,
    create_plan,
    delete_plan,
    load_builtin_plans,
    restore_version,
    save_version,
    undelete_plan,
)
from webapp.plans.tests.helpers import device, directory, document, part

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    return User.objects.create(username="olga", role=Role.OPERATOR)


def test_it_makes_a_plan_with_a_first_version(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    version = version_of("test")
    assert (plan.slug, plan.title, version.number, version.created_by) == ("test", "Test", 1, operator)
    assert read(version.document) == document(part())
    assert AuditEntry.objects.filter(action="plan.create", label="test", actor=operator).count() == 1


def test_it_numbers_slugs_made_from_titles_and_refuses_a_taken_one(operator: User) -> None:
    slugs = [create_plan(document=document(part()), by=operator).slug for _ in range(3)]
    assert slugs == ["test", "test-2", "test-3"]
    with pytest.raises(Refusal) as caught:
        create_plan(document=document(part()), by=operator, slug="test-2")
    assert caught.value.code == "plan_exists"
    with pytest.raises(Refusal) as caught:
        create_plan(document=document(part()), by=operator, slug="No Slug")
    assert caught.value.code == "slug_refused"
    assert create_plan(document=document(part(), title="Ü ✓"), by=operator).slug == "u"
    assert create_plan(document=document(part(), title="✓"), by=operator).slug == "plan"


def test_saving_makes_the_next_version_and_leaves_the_old_one(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    saved = save_version(plan=plan, document=document(part(), title="New", repeats=5), by=operator)
    assert saved.number == 2
    assert version_of("test").plan.title == "New"
    assert read(version_of("test", 1).document).repeats == 2


def test_saving_what_is_there_already_makes_no_version(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    assert save_version(plan=plan, document=document(part()), by=operator).number == 1
    assert PlanVersion.objects.count() == 1


def test_a_deleted_plan_keeps_its_versions_and_comes_back(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    delete_plan(plan=plan, by=operator)
    delete_plan(plan=plan, by=operator)
    assert not plans_list().exists()
    assert version_of("test").number == 1
    undelete_plan(plan=plan, by=operator)
    assert [(p.slug, p.latest, p.run_count) for p in plans_list()] == [("test", 1, 0)]
    assert AuditEntry.objects.filter(action="plan.delete").count() == 1


def test_an_unknown_plan_is_refused_by_name() -> None:
    with pytest.raises(Refusal) as caught:
        version_of("nothing", 3)
    assert (caught.value.code, caught.value.message) == ("plan_unknown", "There is no plan nothing version 3.")


def test_builtin_plans_are_loaded_once_and_again_only_when_their_text_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: User
) -> None:
    monkeypatch.setattr(services, "BUILTIN", tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text("title: A\nparts: [{name: a, factors: {pattern: read}}]")
    load_builtin_plans()
    load_builtin_plans()
    plan = Plan.objects.get(slug="mine")
    assert plan.versions.count() == 1
    file.write_text("title: B\nparts: [{name: a, factors: {pattern: write}}]")
    load_builtin_plans()
    assert (version_of("mine").number, version_of("mine").plan.title) == (2, "B")


def test_a_builtin_plan_is_copied_and_not_changed(operator: User) -> None:
    load_builtin_plans()
    version = version_of("bm-flash-grid")
    with pytest.raises(Refusal) as caught:
        save_version(plan=version.plan, document=document(part()), by=operator)
    assert caught.value.code == "plan_builtin"
    copies = [copy_plan(version=version, by=operator) for _ in range(2)]
    assert [copy.title for copy in copies] == ["bm-flash grid (copy)", "bm-flash grid (copy 2)"]
    assert [copy.builtin for copy in copies] == ["", ""]
    assert read(version_of(copies[0].slug).document).parts == read(version.document).parts
    saved = save_version(plan=copies[0], document=document(part()), by=operator)
    assert saved.number == 2


def test_a_plan_of_somebodys_own_is_no_builtin_one(operator: User) -> None:
    mine = create_plan(document=document(part()), by=operator, slug="first-look")
    load_builtin_plans()
    assert Plan.objects.get(builtin="first-look").slug == "first-look-2"
    assert mine.versions.count() == 1


def test_a_builtin_plan_that_was_not_marked_yet_is_found_again() -> None:
    load_builtin_plans()
    Plan.objects.update(builtin="")
    count = Plan.objects.count()
    load_builtin_plans()
    assert Plan.objects.exclude(builtin="").count() == Plan.objects.count() == count


def test_an_older_version_is_restored_as_the_next_one(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    save_version(plan=plan, document=document(part(), repeats=5), by=operator)
    assert restore_version(plan=plan, number=1, by=operator).number == 3
    assert read(version_of("test").document).repeats == 2
    assert restore_version(plan=plan, number=3, by=operator).number == 3
    assert AuditEntry.objects.filter(action="plan.save", detail={"version": 3, "restored": 1}).count() == 1


def test_what_somebody_else_saved_meanwhile_is_not_overwritten_unseen(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    save_version(plan=plan, document=document(part(), repeats=5), by=operator, base=1)
    with pytest.raises(Refusal) as caught:
        save_version(plan=plan, document=document(part(), repeats=6), by=operator, base=1)
    assert caught.value.code == "plan_changed"
    assert "olga saved version 2" in caught.value.message
    assert save_version(plan=plan, document=document(part(), repeats=6), by=operator, base=2).number == 3


def test_a_deleted_plan_is_not_changed(operator: User) -> None:
    plan = create_plan(document=document(part()), by=operator)
    delete_plan(plan=plan, by=operator)
    with pytest.raises(Refusal) as caught:
        save_version(plan=plan, document=document(part(), repeats=5), by=operator)
    assert caught.value.code == "plan_deleted"


def test_addresses_of_pages_are_no_names_of_plans(operator: User) -> None:
    assert create_plan(document=document(part(), title="New"), by=operator).slug == "new-2"
    with pytest.raises(Refusal):
        create_plan(document=document(part()), by=operator, slug="import")


@pytest.mark.parametrize(
    ("wrong", "place", "words"),
    [
        ({"title": " "}, "title", "Give the plan a title."),
        ({"common": {"blok_size": "4k"}}, "common.blok_size", "Did you mean `block_size`?"),
        ({"common": {"block_size": "4q"}}, "common.block_size", "Block size: `4q` is not understood"),
        ({"parts": (part(iodepth="x"),)}, "parts.0.factors.iodepth", "Queue depth: `x` is not a whole number."),
        ({"parts": (part("a"), part("a"))}, "parts.0.name", "Two parts are called a"),
        ({"parts": (part(on=()),)}, "parts.0.on", "Choose at least one kind of target."),
        ({"parts": (part(on=("disk",)),)}, "parts.0.on", "`on` names disk"),
        ({"parts": (Part(name="a", factors={"ioengine": "psync"}),)}, "parts.0", "`pattern` is missing"),
        ({"common": {"read_percent": "70"}}, "parts.0", "has no effect"),
        ({"parts": (part(block_size="4k", block_split="4k/50:8k/50"),)}, "parts.0.factors.block_split", "exclude each"),
    ],
)
def test_a_plan_that_can_run_nowhere_is_refused_with_the_place(
    operator: User, wrong: dict[str, object], place: str, words: str
) -> None:
    unsound = msgspec.structs.replace(document(part()), **wrong)
    with pytest.raises(PlanRefused) as caught:
        create_plan(document=unsound, by=operator)
    assert caught.value.problems[0].place == place
    assert words in str(caught.value.problems[0])
    assert not Plan.objects.exists()


def test_a_problem_of_a_common_factor_appears_once_whatever_the_order_of_factors() -> None:
    """How many unknown factors get a suggestion depends on the order."""
    shared = dict.fromkeys(("engine", "pattern", "read_percent", "block_split", "copy_method", "stream"), "4k")
    places = [problem.place for problem in document_problems(document(part(), common=shared))]
    assert places.count("common.stream") == 1
    assert "parts.0" not in places


def test_a_deleted_builtin_plan_stays_deleted() -> None:
    for plan in load_builtin_plans():
        delete_plan(plan=plan, by=None)
    load_builtin_plans()
    assert not plans_list().exists()


def test_the_first_look_takes_under_three_minutes_on_a_directory_and_a_device() -> None:
    load_builtin_plans()
    made = expand(read(version_of("first-look").document), [directory(), device(destroy=False)], seed=1)
    assert made.problems == ()
    assert Counter(trial.target_id for trial in made.trials) == {"dir": 36, "loop": 6}
    assert estimate(made).seconds < 150
    assert all(trial.workload.prefill for trial in made.trials)
    assert Counter(t.point["ioengine"] for t in made.trials if t.target_id == "dir") == {"io_uring": 18, "psync": 18}


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
def test_text_that_the_database_cannot_keep_is_refused(operator: User, text: str) -> None:
    with pytest.raises(Refusal) as caught:
        create_plan(document=document(part(), note=text), by=operator)
    assert caught.value.code == "text_refused"
