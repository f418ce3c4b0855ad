"""The status of `make truth`."""

from collections.abc import Callable

import pytest

from dev.bench.figures import figure
from dev.truth import __main__ as command
from dev.truth.drive import Disturbed, NotPossible


def done(_options: object) -> int:
    return 0


def missed(_options: object) -> int:
    return 1


def impossible(_options: object) -> int:
    raise NotPossible("no loop device")


def disturbed(_options: object) -> int:
    raise Disturbed(["step down: late"], [figure("of the others", "", [0], "0", met=True)])


def disturbed_and_missed(_options: object) -> int:
    raise Disturbed(["step down: late"], [figure("of the others", "", [1], "0", met=False)])


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"one": done, "two": done}, 0),
        ({"one": missed, "two": done}, 1),
        ({"one": impossible, "two": done}, 3),
        ({"one": impossible, "two": missed}, 1),
        ({"one": disturbed, "two": done}, 3),
        ({"one": disturbed_and_missed, "two": done}, 1),
    ],
)
def test_a_part_that_is_not_possible_has_not_passed(
    monkeypatch: pytest.MonkeyPatch, parts: dict[str, Callable[[object], int]], status: int
) -> None:
    monkeypatch.setattr(command, "PARTS", parts)
    assert command.main([]) == status


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(SystemExit):
        command.main(["drivers"])
