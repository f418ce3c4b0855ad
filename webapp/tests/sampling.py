"""Tests with many cases: `make test` runs a part of them, which a seed chooses; `make fuzz` runs all."""

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

from dev.testing.pytest_plugin import SAMPLE_SEED_VARIABLE

Case = TypeVar("Case")


def part_of(cases: Sequence[Case], number: int, parts: int) -> Sequence[Case]:
    """Every `parts`-th case; `number` and the seed decide the first one. With the profile `fuzz`, all cases."""
    first = (number + int(os.environ[SAMPLE_SEED_VARIABLE])) % parts
    return cases if settings.get_current_profile_name() == "fuzz" else cases[first::parts]
