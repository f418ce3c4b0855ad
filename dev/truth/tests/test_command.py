"""The status of `make truth`."""

from collections.abc import Callable

import pytest

from dev.truth import __main__ as command
from dev.truth.drive import NotPossible


def impossible() -> int:
    raise NotPossible("no loop device")


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"one": lambda: 0, "two": lambda: 0}, 0),
        ({"one": lambda: 1, "two": lambda: 0}, 1),
        ({"one": impossible, "two": lambda: 0}, 3),
        ({"one": impossible, "two": lambda: 1}, 1),
    ],
)
def test_a_part_that_is_not_possible_has_not_passed(
    monkeypatch: pytest.MonkeyPatch, parts: dict[str, Callable[[], int]], status: int
) -> None:
    monkeypatch.setattr(command, "PARTS", parts)
    assert command.main([]) == status


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit):
        command.main(["drivers"])
