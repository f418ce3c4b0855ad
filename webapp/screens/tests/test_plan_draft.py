"""What the editor shows and sends is the document, whatever it says."""

from dataclasses import replace
from pathlib import Path

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.document import Order, Part, PlanDocument, export_plan, import_plan
from webapp.plans.engines import ENGINES
from webapp.plans.factors import FACTORS
from webapp.plans.grids import document_problems
from webapp.plans.services import BUILTIN
from webapp.screens.plans.draft import Draft, DraftPart, FactorRow, checked, data_of, draft_from, draft_of
from webapp.screens.plans.editor_views import stepped

PLAN = PlanDocument(
    title="T",
    common={"size": "64M", "runtime": "3s", "ioengine": "psync"},
    parts=(Part(name="a", factors={"pattern": "randread", "scheduler": "none", "block_size": "4k"}),),
)


def posted(draft: Draft) -> Draft:
    """Through a form, as a browser would send it."""
    return draft_from(QueryDict(data_of(draft).urlencode()))


def saved(draft: Draft) -> PlanDocument:
    made = checked(posted(draft))
    document, problems = made.document, made.problems
    assert problems == ()
    assert document is not None
    return document


def problems_of(**changes: object) -> list[tuple[str, str]]:
    made = checked(posted(replace(draft_of(PLAN), **changes)))  # type: ignore[arg-type]
    document, problems = made.document, made.problems
    assert (document is None) is bool(problems)
    return [(problem.place, problem.message) for problem in problems]


@pytest.mark.parametrize("file", sorted(BUILTIN.glob("*.yaml")), ids=lambda path: path.stem)
def test_opening_and_saving_a_built_in_plan_changes_nothing(file: Path) -> None:
    plan = import_plan(file.read_text())
    assert saved(draft_of(plan)) == plan
    assert export_plan(saved(draft_of(plan))) == export_plan(plan)


names = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=1, max_size=15)
levels = st.sampled_from(["4k", " 1,10 , 40", "512..4M *2", "randread", "none, mq-deadline", "nonsense", "on"])
factors = st.dictionaries(st.sampled_from([*FACTORS, "unknown.factor"]), levels, max_size=6)
parts = st.builds(
    Part, name=names, factors=factors, on=st.lists(st.sampled_from(["block", "directory", "file", "disk"])).map(tuple)
)
plans = st.builds(
    PlanDocument,
    title=names,
    parts=st.lists(parts, min_size=1, max_size=3).map(tuple),
    common=factors,
    question=names.map(str.strip),
    note=names,
    repeats=st.integers(1, 100),
    order=st.sampled_from(Order),
    drop_caches=st.booleans(),
    retries=st.integers(0, 5),
    stop_after=st.integers(0, 1000),
    spread_percent=st.integers(0, 50),
    decide_percent=st.integers(0, 50),
    decide=st.lists(st.sampled_from(sorted(FACTORS)), unique=True, max_size=3).map(tuple),
    repeats_min=st.integers(2, 100),
    sequence=st.lists(st.sampled_from(sorted(FACTORS)), unique=True, max_size=4).map(tuple),
    version=st.integers(-3, 3),
)


@given(plans)
def test_the_form_can_say_every_document(plan: PlanDocument) -> None:
    """What is unsound too: it is shown as it is, with what is wrong, and nothing of it is lost."""
    draft = draft_of(plan)
    assert posted(draft) == draft
    made = checked(posted(draft))
    document, problems = made.document, made.problems
    assert {problem.place for problem in problems} == {problem.place for problem in document_problems(plan)}
    assert document in (None, plan)
    assert (document is None) is bool(problems)


def test_rows_that_are_moved_become_the_sequence_and_back_again() -> None:
    draft = draft_of(PLAN)
    assert [row.factor for row in draft.parts[0].rows] == ["scheduler", "pattern", "block_size"]
    moved = saved(stepped(draft, "move:0:2:0"))
    assert moved.sequence == ("size", "ioengine", "runtime", "block_size", "scheduler", "pattern")
    assert saved(draft_of(moved)) == moved
    assert [row.factor for row in draft_of(moved).parts[0].rows] == ["block_size", "scheduler", "pattern"]


def test_steps_add_take_out_and_move() -> None:
    draft = draft_of(PLAN)
    assert [row.levels for row in stepped(draft, "add:common", "iodepth").common if row.factor == "iodepth"] == ["1"]
    assert stepped(draft, "add:common", "Queue depth") == stepped(draft, "add:common:iodepth")
    assert stepped(draft, "add:0", "nothing like it").parts[0].rows[-1].factor == ""
    assert [row.factor for row in stepped(draft, "remove:0:0").parts[0].rows] == ["pattern", "block_size"]
    two = stepped(draft, "add-part")
    assert [part.name for part in two.parts] == ["a", "Part 2"]
    assert [part.name for part in stepped(two, "move-part:1:0").parts] == ["Part 2", "a"]
    assert stepped(two, "remove-part:1") == draft
    saved(two)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_any_engine_can_be_added(engine: str) -> None:
    draft = draft_of(PlanDocument(title="t", parts=PLAN.parts, common={"engine": engine}))
    assert stepped(draft, "add-part").parts[-1].rows[0].factor == ENGINES[engine].REQUIRED


@pytest.mark.parametrize(
    "step", ["", "odd", "add:9", "add:x", "remove:common", "remove:common:99", "move:0:0:99", "move:0:x:1",
             "move-part:0:7", "remove-part:x", "preview", "page:2"]
)  # fmt: skip
def test_a_step_that_makes_no_sense_changes_nothing(step: str) -> None:
    assert stepped(draft_of(PLAN), step, "iodepth") == draft_of(PLAN)


def test_what_is_wrong_is_told_at_its_field() -> None:
    assert problems_of(title="") == [("title", "Give the plan a title.")]
    assert problems_of(repeats="many", retries="9") == [
        ("repeats", "Enter a whole number from 1 to 100."),
        ("retries", "Enter a whole number from 0 to 5."),
    ]
    assert problems_of(parts=())[0] == ("", "A plan needs at least one part: add one.")
    assert problems_of(title="x" * 201)[0][0] == "title"


def test_rows_that_say_nothing_or_twice_the_same_are_named() -> None:
    rows = (("size", "64M"), ("size", "1G"), ("", "4k"), ("iodepth", " "), ("", ""))
    found = problems_of(common=tuple(type(draft_of(PLAN).common[0])(*row) for row in rows))
    assert found == [
        ("common.size", "This factor appears twice: remove one row."),
        ("common.", "Choose the factor of these levels, or remove the row."),
        ("common.iodepth", "Enter at least one level, or remove the row."),
    ]


@pytest.mark.parametrize(
    "step", ["remove-part:" + "1" * 5000, "move:" + "1" * 5000 + ":0:0", "add:²", "remove:0:" + "9" * 99]
)
def test_a_step_with_an_odd_number_fails_nothing(step: str) -> None:
    assert stepped(draft_of(PLAN), step).common == draft_of(PLAN).common


def test_steps_and_rules_are_lines_of_a_part() -> None:
    parts = (Part(name="a", factors={"pattern": "randread"}, before=("once flush", "pause 5s"), rules=()),)
    plan = PlanDocument(title="T", common={"runtime": "3s"}, parts=parts)
    assert saved(draft_of(plan)) == plan
    wrong = (DraftPart("a", ("block",), (FactorRow("pattern", "randread"),), before="flush\r\nwipe"),)
    ((place, message),) = problems_of(parts=wrong)
    assert place == "parts.0.before"
    assert "`wipe` is not a step" in message
