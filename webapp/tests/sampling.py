"""Tests with many cases: a part of them in `make test`, another one each time, and all of them in `make fuzz`."""

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

from dev.testing.pytest_plugin import SAMPLE_SEED_VARIABLE

Case = TypeVar("Case")


def part_of(cases: Sequence[Case], number: int, parts: int) -> Sequence[Case]:
    """Every `parts`-th case: part `number` + seed. With the Hypothesis profile `fuzz`, every case."""
    first = (number + int(os.environ[SAMPLE_SEED_VARIABLE])) % parts
    return cases if settings.get_current_profile_name() == "fuzz" else cases[first::parts]
