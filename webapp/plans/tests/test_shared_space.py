"""What several directories on one file system need together."""

import pytest

from webapp.plans.document import Part
from webapp.plans.expand import Expansion, expand
from webapp.plans.fitness import TargetFacts, space_warnings
from webapp.plans.tests.helpers import GIB, directory, document, part

ON = ("directory",)


def two(**given: object) -> list[TargetFacts]:
    common: dict[str, object] = {"file_system": "8:1", "size_bytes": 10 * GIB}
    first, second = ({"id": name, "name": f"a/{name}", "path": f"/srv/{name}"} | common for name in ("x", "y"))
    return [directory(**(first | given)), directory(**(second | given))]


def expanded(targets: list[TargetFacts], **factors: str) -> Expansion:
    return expand(document(part("main", factors, on=ON), common={"runtime": "3s"}), targets, seed=1)


def test_two_directories_need_their_files_together() -> None:
    assert not expanded(two(), size="5G").problems
    found = expanded(two(), size="6G")
    assert [(space.needed_bytes, space.room_bytes, space.always) for space in found.shared_spaces] == [
        (12 * GIB, 10 * GIB, True)
    ]
    assert len(found.problems) == 1
    assert not expanded(two()[:1], size="6G").problems
    first, second = two()
    others = (
        directory(id="y", file_system="8:2"),
        directory(id="y", file_system="8:1", host_id="b"),
        directory(id="y"),
    )
    for other in others:
        assert not expanded([first, other], size="6G").problems
    assert expanded([first, second, others[0]], size="6G").problems


def test_directories_that_are_used_at_once_need_their_files_together() -> None:
    assert expanded(two(), size="6G", at_once="2").problems
    assert not expanded(two(), size="5G", at_once="2").problems


@pytest.mark.parametrize("factors", [
    {"engine": "pgbench", "script": "tpcb-like", "scale": "300"}, {"engine": "file_copy", "size": "3G"},
])  # fmt: skip
def test_temporary_files_are_needed_together_only_at_once(factors: dict[str, str]) -> None:
    """A database and the copies of files are removed after their trial."""

    def problems(**more: str) -> int:
        plan = document(Part(name="main", on=ON, factors=factors | more), common={})
        return len(expand(plan, two(size_bytes=7 * GIB), seed=1).problems)

    assert (problems(), problems(at_once="2")) == (0, 1)


def test_files_that_exist_are_used_again() -> None:
    """The same plan fits a second time: the size of a directory contains its test files."""
    full = two(size_bytes=7 * GIB, test_file_bytes=6 * GIB)
    assert not expanded(full, size="6G").shared_spaces
    assert expanded(full, size="7G").problems


def test_files_of_several_sizes_may_fill_the_file_system_before_the_other_directory() -> None:
    found = expanded(two(), size="2G, 5G")
    assert not found.problems
    assert [(space.needed_bytes, space.always) for space in found.shared_spaces] == [(12 * GIB, False)]
    assert not expanded(two(), size="1G, 4G").shared_spaces
    assert not expanded(two(), size="5G", numjobs="1, 5").shared_spaces


def test_the_warning_is_at_the_size() -> None:
    targets = two()
    in_part = document(part("one", on=ON, size="64M"), part("two", on=ON, size="6G"), common={"runtime": "3s"})
    common = document(part("one", on=ON), common={"size": "6G", "runtime": "3s"})
    places = [
        [warning.place for warning in space_warnings(plan, expand(plan, targets, seed=1).shared_spaces)]
        for plan in (in_part, common)
    ]
    assert places == [["parts.0.factors.size", "parts.1.factors.size"], ["common.size"]]
