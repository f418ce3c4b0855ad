from webapp.plans.document import Order, differences
from webapp.plans.tests.helpers import document, part


def told(before: object, after: object) -> list[tuple[str, str, str, str, str]]:
    return [(d.where, d.what, d.before, d.after, d.verb) for d in differences(before, after)]  # type: ignore[arg-type]


def test_two_equal_plans_differ_in_nothing() -> None:
    assert told(document(part()), document(part())) == []


def test_fields_of_the_plan_are_named_in_words() -> None:
    after = document(part(), repeats=5, order=Order.LISTED, drop_caches=True, title="New")
    assert told(document(part()), after) == [
        ("", "Title", "Test", "New", "changed"),
        ("", "Repeats", "2", "5", "changed"),
        ("", "Order", "randomised within each repeat", "as listed", "changed"),
        ("", "Caches dropped before each trial", "no", "yes", "changed"),
    ]


def test_factors_come_go_and_change() -> None:
    before = document(part(iodepth="1, 2", ioengine="psync"))
    after = document(part(iodepth="1, 4", block_size="8k"), common={"size": "64M"})
    assert told(before, after) == [
        ("", "Time", "3s", "", "removed"),
        ("main", "Block size", "", "8k", "added"),
        ("main", "I/O engine", "psync", "", "removed"),
        ("main", "Queue depth", "1, 2", "1, 4", "changed"),
    ]


def test_a_part_that_is_gone_or_new_is_told_with_what_it_said() -> None:
    found = told(document(part("a")), document(part("b", on=("block",))))
    assert ("", "Order of parts", "a", "b", "changed") in found
    assert ("a", "Pattern", "randread", "", "removed") in found
    assert ("b", "Runs on", "", "block", "added") in found
