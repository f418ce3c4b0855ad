"""Tests with many cases: a part of them in `make test`, all of them in `make fuzz`."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")


def part_of(cases: Sequence[Case], number: int, parts: int) -> Sequence[Case]:
    """Every `parts`-th case, starting with case `number`; with the Hypothesis profile `fuzz`, every case."""
    return cases if settings.get_current_profile_name() == "fuzz" else cases[number % parts :: parts]
