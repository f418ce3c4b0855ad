import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.plans.document import MAX_BYTES, Order, PlanDocument, PlanFileRefused, export_plan, import_plan
from webapp.plans.tests.helpers import document, part

MINIMAL = "title: T\nparts:\n  - name: a\n    factors: {pattern: read}\n"


def test_it_reads_back_what_it_writes() -> None:
    plan = document(
        part("a", on=("block",), direct="off", block_split="4k/60:8k/40", scheduler="none"),
        part("b", iodepth="1..64 *2"),
        note="Some *words*: with a colon\nand lines, × and –",
        repeats=7,
        order=Order.LISTED,
        drop_caches=True,
        retries=0,
    )
    text = export_plan(plan)
    assert import_plan(text) == plan
    assert "version" not in text


def test_texts_stay_what_they_look_like() -> None:
    plan = import_plan(MINIMAL + "    on: [directory]\ncommon: {direct: off, iodepth: 1, block_split: 4k/50:8k/50}\n")
    assert plan.common == {"direct": "off", "iodepth": "1", "block_split": "4k/50:8k/50"}
    assert plan.parts[0].on == ("directory",)


def test_levels_may_be_a_list() -> None:
    assert import_plan(MINIMAL + "common: {block_size: [4k, 8k]}").common == {"block_size": "4k, 8k"}


def test_it_reads_json() -> None:
    plan = import_plan('{"title": "T", "repeats": 2, "parts": [{"name": "a", "factors": {"pattern": "read"}}]}')
    assert (plan.title, plan.repeats) == ("T", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expected `object`"),
        ("[]", "Expected `object`"),
        ("title: [", "not YAML"),
        ("title: T", "missing required field `parts`"),
        (MINIMAL + "colour: red", "unknown field `colour`"),
        (MINIMAL + "repeat: 3", "unknown field `repeat`. Did you mean repeats? Use budget, "),
        (MINIMAL + "repeats: many", "$.repeats"),
        (MINIMAL + "repeats: 0", "$.repeats"),
        ("title: T\nparts: [{name: a, factors: {Pattern: read}}]", "Expected `str` matching regex"),
        ("title: &a T\nnote: *a\n", "Line 2: aliases"),
        ("title: !!python/object/apply:os.system [id]", "This is not a valid plan"),
        ("x" * (MAX_BYTES + 1), "over the limit of 256 KiB"),
        ("[" * 5000, "not valid YAML"),
    ],
)
def test_it_says_why_a_file_is_no_plan(text: str, words: str) -> None:
    with pytest.raises(PlanFileRefused) as caught:
        import_plan(text)
    assert words in caught.value.message
    assert caught.value.code == "plan_file_refused"


@given(st.text(max_size=200) | st.text(alphabet="title: [{}]-\n&*!|>'\"parts", max_size=120))
def test_it_never_fails_otherwise(text: str) -> None:
    with contextlib.suppress(PlanFileRefused):
        assert isinstance(import_plan(text), PlanDocument)
